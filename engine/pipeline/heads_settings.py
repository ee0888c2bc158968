"""Settings of an emergence study."""

from dataclasses import dataclass, field
from typing import Literal

from engine.config import require, require_positive
from engine.mda.settings import DecoderConfig, EkfacConfig, MixtureConfig, ProbeConfig


ARMS = (
    "delete_random",
    "augment_random",
    "delete_top",
    "augment_top",
    "replace_top",
    "replace_random",
    "synthetic",
    "synthetic_control",
)
"""Arms beside the baseline, in the order in which they are trained."""

RANDOM_ARMS = ARMS[:2]
"""Arms that belong to no kind of head."""


@dataclass(frozen=True, kw_only=True)
class HeadStudy:
    """One study: its decoder, its rows, its window and its arms."""

    corpus: str = "full"
    """Corpus name."""
    domain_weights: dict[str, float] = field(default_factory=lambda: {"code": 1.0})
    """Share of the natural rows by domain."""
    vocab_size: int = 257
    """Tokens of the byte-level BPE; 257 is every byte and the separator."""
    repeat_share: float = 0.3
    """Share of rows in which a random segment repeats."""
    n_layers: int = 2
    """Layers."""
    d_model: int = 64
    """Hidden size."""
    n_heads: int = 4
    """Heads a layer."""
    learning_rate: float = 3e-3
    """Constant learning rate."""
    context: int = 128
    """Tokens a row predicts."""
    batch_size: int = 16
    """Rows a step."""
    onset_score: float = 0.1
    """Prefix matching of any head at which heads count as forming."""
    lead_steps: int = 300
    """Steps before the onset at which the arms branch off and the window begins."""
    window_steps: int = 1000
    """Steps of the window."""
    longest_steps: int = 10000
    """Steps after which a seed without an onset is given up."""
    evaluate_every: int = 25
    """Steps between evaluations."""
    checkpoint_every: int = 100
    """Steps between the states that are kept."""
    top_share: float = 0.1
    """Share of the window's samples that an arm deletes or copies."""
    insertion_share: float = 0.5
    """Share of the window, from its start, over which added rows are dealt."""
    ekfac_samples: int = 2048
    """Samples of the window that the curvature is fitted on."""
    held_out_rows: int = 48
    """Held-out rows of a domain."""
    seeds: int = 5
    """Seeds with a baseline and random arms."""
    units: dict[str, int] = field(default_factory=lambda: {"induction": 5, "previous_token": 5})
    """Kinds of heads, each with the number of seeds, from the first, that have arms for it."""
    arms: str = ",".join(ARMS)
    """Arms beside the baseline, comma-separated."""
    exchange_seeds: int = 3
    """Seeds, from the first, with arms that replace or insert synthetic rows."""
    probe: ProbeConfig = field(default_factory=ProbeConfig)
    """Sizes and seed of the probes."""
    ekfac: EkfacConfig = field(default_factory=EkfacConfig)
    """Damping, floor and label seed of the curvature."""

    def __post_init__(self) -> None:
        names = ("context", "batch_size", "window_steps", "evaluate_every", "lead_steps")
        require_positive(self, *names, "checkpoint_every", "ekfac_samples", "seeds")
        require(0 < self.top_share < 1, f"top_share is {self.top_share}; it must lie in (0, 1).")
        unknown = sorted(set(self.arm_names) - set(ARMS))
        require(not unknown, f"There is no arm {unknown}; choose from {', '.join(ARMS)}.")

    @property
    def arm_names(self) -> tuple[str, ...]:
        """Arms beside the baseline, in the order given."""
        return tuple(name.strip() for name in self.arms.split(",") if name.strip())

    def branch_of(self, onset: int) -> int:
        """Step at which the arms branch off a baseline with this onset: a kept state."""
        every = self.checkpoint_every
        return max(0, (onset - self.lead_steps) // every * every)

    def window_of(self, branch: int) -> range:
        """Steps of the window."""
        return range(branch, branch + self.window_steps)

    def insertion_steps(self, branch: int) -> range:
        """Steps over which added rows are dealt."""
        return range(branch, branch + max(1, round(self.insertion_share * self.window_steps)))

    @property
    def n_selected(self) -> int:
        """Samples that an arm deletes or copies."""
        return round(self.top_share * self.window_steps * self.batch_size)

    def arms_of(self, seed: int) -> list[tuple[str, str]]:
        """Arms of a seed, each with its kind of head; random ones first, and of none."""
        found = [(arm, "") for arm in self.arm_names if arm in RANDOM_ARMS]
        for unit, seeds in self.units.items():
            if seed < seeds:
                found += [(arm, unit) for arm in self.arm_names if self._has(arm, seed)]
        return found

    def _has(self, arm: str, seed: int) -> bool:
        """Whether a kind of head has this arm at this seed."""
        plain = ("delete_top", "augment_top")
        return arm not in RANDOM_ARMS and (arm in plain or seed < self.exchange_seeds)

    def decoder(self, seed: int) -> DecoderConfig:
        """The decoder of a seed."""
        return DecoderConfig(
            n_layers=self.n_layers,
            d_model=self.d_model,
            n_heads=self.n_heads,
            learning_rate=self.learning_rate,
            seed=seed,
        )

    def mixture(self, seed: int) -> MixtureConfig:
        """The rows of a seed."""
        longest = min(60, self.context // 2)
        return MixtureConfig(
            domain_weights=self.domain_weights,
            repeat_share=self.repeat_share,
            shortest=min(8, longest),
            longest=longest,
            context=self.context,
            batch_size=self.batch_size,
            seed=seed,
        )


Action = Literal["delete", "augment", "replace"]
Side = Literal["top", "bottom", "random"]


@dataclass(frozen=True, kw_only=True)
class Intervention:
    """What is changed: which samples, and how."""

    action: Action = "delete"
    """delete, augment (copied) or replace (by random later rows)."""
    side: Side = "top"
    """Samples that raise the head most, that lower it most, or random ones."""
    unit: str = "induction"
    """Kind of head whose probe is asked."""
    head: tuple[int, int] | None = None
    """Layer and head; the one with the largest final score if None."""
    share: float = 0.1
    """Share of the window's samples."""

    def __post_init__(self) -> None:
        require(0 < self.share < 1, f"share is {self.share}; it must lie between 0 and 1.")
