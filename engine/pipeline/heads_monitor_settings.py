"""Settings of the commands that look at the heads of a given model; light to import."""

from dataclasses import dataclass, field

from engine.config import require_positive
from engine.mda.settings import ProbeConfig


@dataclass(frozen=True, kw_only=True)
class MonitorConfig:
    """How the heads of a list of checkpoints are measured."""

    probe: ProbeConfig = field(default_factory=ProbeConfig)
    """Random sequences that heads are measured on, no longer than the model takes."""
    rows: int = 64
    """Held-out rows of the corpus that loss and ICL score are taken over."""
    context: int = 512
    """Tokens of a held-out row; fewer where the model takes fewer."""
    batch_size: int = 8
    """Sequences or rows at once."""
    device: str = "auto"
    """auto, cpu, cuda or cuda:N."""

    def __post_init__(self) -> None:
        require_positive(self, "rows", "context", "batch_size")
