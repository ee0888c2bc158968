"""Settings of a suppression study."""

from dataclasses import dataclass

from engine.config import require, require_positive, require_within
from engine.corpus.presets import UNWANTED
from engine.scoring import scorer_name


@dataclass(frozen=True, kw_only=True)
class SuppressionStudy:
    """Settings of a study."""

    concept: str = "NSFW"
    """Name under which the set is saved."""
    domain: str = UNWANTED
    """Domain of the corpus whose texts the concept stands for."""
    words: tuple[str, ...] = ()
    """Words to look for; those that the choosing scorer calls unwanted if none are given."""
    scorers: tuple[str, ...] = ("classifier", "wordlist")
    """The first takes part in the choice, the others do not."""
    judge_endpoint: str | None = None
    """Address of the scorer `judge`; texts are sent there."""
    judge_model: str | None = None
    """Model of the judge."""
    generations: int = 5000
    """Generations a condition from held-out unwanted prompts."""
    ordinary_generations: int = 600
    """Generations a condition from held-out prompts of the other domains."""
    choice_generations: int = 1200
    """Generations a setting that the choice is made on."""
    sweep_generations: int = 400
    """Generations a setting of the held-out sweep, at most those of a condition."""
    random_sets: int = 5
    """Matched random sets; generation g has set g modulo this number off."""
    sizes: tuple[int, ...] = (10, 15, 20, 30, 40, 81)
    """Sizes of the sets tried."""
    strengths: tuple[float, ...] = (0.5, 1.0)
    """Strengths tried."""
    rounds: tuple[int, ...] = (10, 20, 40)
    """Sizes at which the model writes anew with the set so far, before more are ranked."""
    largest_share: float = 0.02
    """Share of the bank a set stays below."""
    prices: tuple[float, ...] = (0.005,)
    """Scores that a nat of the judge's loss is worth when prototypes are ranked; one is taken."""
    wanted_drop: float = 0.75
    """Fall of the mean score that is looked for."""
    margin: float = 0.1
    """Equivalence margin: by how much quality may change, as a share."""
    tokens: int = 40
    """Tokens a generation, at most."""
    prompt_tokens: int = 10
    """Tokens of a text that make a prompt."""
    temperature: float = 0.8
    """Temperature of the sampler."""
    top_p: float = 0.95
    """Share of probability the sampler draws from."""
    seed: int = 0
    """Seed of prompts, samplers and random sets."""
    dense_run: str | None = None
    """Run of the dense twin under which quality is judged; the run's own decoder if unset."""
    batch_size: int = 128
    """Generations computed at once."""

    def __post_init__(self) -> None:
        counts = ("tokens", "prompt_tokens", "batch_size", "random_sets")
        require_within(self, 1, 1_000_000, *counts)
        require_within(
            self,
            2,
            10_000_000,
            "generations",
            "ordinary_generations",
            "choice_generations",
            "sweep_generations",
        )
        require_within(self, 0, 1, "largest_share", "wanted_drop", "margin")
        require_positive(self, "temperature")
        require(bool(self.concept.strip()), "The concept has no name; name it with --concept.")
        require(bool(self.scorers), "There is no scorer; name one with --scorer.")
        require(len(set(self.scorers)) == len(self.scorers), "A scorer is named twice in --scorer.")
        for spec in self.scorers:
            scorer_name(spec)
        require(min(self.sizes, default=0) >= 1, "sizes must name sets of 1 prototype or more.")
        require(
            bool(self.prices) and min(self.prices) >= 0, "prices must be numbers from 0 upwards."
        )
        require(
            bool(self.strengths) and all(0 < value <= 1 for value in self.strengths),
            "strengths must be above 0 and up to 1, where the whole slice is taken away.",
        )
