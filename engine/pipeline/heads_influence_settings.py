"""Settings of `headwater heads influence`; light to import."""

from dataclasses import dataclass, field
from typing import Literal

from engine.config import require, require_positive
from engine.mda.settings import EkfacConfig, ProbeConfig


HeadKind = Literal["induction", "previous_token", "duplicate_token"]
Order = Literal["run", "corpus"]


@dataclass(frozen=True, kw_only=True)
class InfluenceConfig:
    """How training samples are traced to the heads of a model."""

    unit: HeadKind = "induction"
    """Kind of head whose probe is asked: induction, previous_token or duplicate_token."""
    order: Order = "run"
    """Order of the samples: run, as the model's own training saw them; corpus, documents in order,
    where a step is so many windows in a row."""
    steps: str = ""
    """FIRST:LAST, steps whose samples are scored, LAST itself left out; unless given, all up to the
    checkpoint, or the whole corpus. In the order of a run LAST is the checkpoint's step at most."""
    samples: int = 0
    """Samples to score, in whole steps spread evenly; 0: all."""
    fit_samples: int = 2048
    """Samples the curvature is fitted on, in whole steps spread evenly over those that are
    scored."""
    context: int = 512
    """Tokens of a sample in the order of the corpus; a run's own samples have its context."""
    rows_a_step: int = 32
    """Samples of a step in the order of the corpus."""
    shard_samples: int = 1024
    """Samples after which the scores are kept; a stopped call loses no more."""
    batch_size: int = 8
    """Samples at once; halved whenever the memory is full."""
    top: int = 20
    """Samples listed at each end."""
    probe: ProbeConfig = field(default_factory=ProbeConfig)
    """Random sequences of the probe."""
    ekfac: EkfacConfig = field(default_factory=EkfacConfig)
    """Damping, floor and label seed of the curvature."""
    device: str = "auto"
    """auto, cpu, cuda or cuda:N."""

    def __post_init__(self) -> None:
        sizes = ("fit_samples", "context", "rows_a_step", "shard_samples", "batch_size", "top")
        require_positive(self, *sizes)
        require(self.samples >= 0, f"samples is {self.samples}; it must be 0 (all) or more.")
        self.window()

    def window(self) -> tuple[int, int | None]:
        """First step, and the step before which scoring ends where one is given.

        Raises:
            ConfigError: `steps` is not written FIRST:LAST, or holds none.
        """
        first, colon, last = self.steps.partition(":")
        if not self.steps:
            return 0, None
        whole = colon and first.isdecimal() and last.isdecimal() and int(first) < int(last)
        require(
            bool(whole),
            f"steps is {self.steps!r}; write FIRST:LAST, 0:800 for example, the first being less.",
        )
        return int(first), int(last)
