"""Settings of an emergence study."""

import math
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from engine.config import (
    MAX_CONTEXT,
    MAX_VOCABULARY,
    require,
    require_positive,
    require_within,
)
from engine.mda.settings import DecoderConfig, EkfacConfig, MixtureConfig, ProbeConfig
from engine.pipeline.heads_influence_settings import HeadKind


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

MAX_SEEDS = 2**15 - 1
"""Seeds that the tables can tell apart."""


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
        names = ("batch_size", "window_steps", "evaluate_every", "lead_steps", "held_out_rows")
        require_positive(self, *names, "checkpoint_every", "ekfac_samples")
        require_within(self, 1, MAX_SEEDS, "seeds")
        require_within(self, 1, MAX_CONTEXT, "context")
        require_within(self, 1, MAX_VOCABULARY, "vocab_size")
        require_within(self, 0, 1, "onset_score")
        require_within(self, 0, math.inf, "exchange_seeds")
        require(0 < self.top_share < 1, f"top_share is {self.top_share}; it must lie in (0, 1).")
        require(
            0 < self.insertion_share <= 1,
            f"insertion_share is {self.insertion_share}; it must be above 0, and 1 at most.",
        )
        require(
            self.longest_steps >= self.evaluate_every,
            f"longest_steps is {self.longest_steps}; it must be evaluate_every "
            f"({self.evaluate_every}) or more, so that heads are measured once.",
        )
        self._check_names()
        self.decoder(0)  # this and the rows refuse what they cannot be made of
        self.mixture(0)

    def _check_names(self) -> None:
        """Refuse arms and kinds of heads that there are not."""
        unknown = sorted(set(self.arm_names) - set(ARMS))
        require(not unknown, f"There is no arm {unknown}; choose from {', '.join(ARMS)}.")
        kinds = get_args(HeadKind)
        for unit, seeds in self.units.items():
            require(
                unit in kinds,
                f"units names {unit!r}, which is no kind of head; choose from {', '.join(kinds)}.",
            )
            require(seeds >= 0, f"units gives {unit} {seeds} seeds; it must be 0 or more.")

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


@dataclass(frozen=True, kw_only=True)
class Mixture:
    """Rows that a study is tried on."""

    name: str
    """What they are, in words."""
    domain_weights: dict[str, float]
    """Share of the natural rows by domain."""
    repeat_share: float
    """Share of rows in which a random segment repeats."""
    seeds: int = 1
    """Seeds."""

    def __post_init__(self) -> None:
        require_within(self, 0, 1, "repeat_share")
        require_within(self, 1, MAX_SEEDS, "seeds")

    def of(self, study: HeadStudy) -> HeadStudy:
        """The study on these rows."""
        return replace(study, domain_weights=self.domain_weights, repeat_share=self.repeat_share)


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
