"""What the live engine takes and returns: frozen values, no torch."""

from dataclasses import dataclass
from typing import Literal

import pandas as pd

from engine.errors import PromptError


Ending = Literal["", "length", "end of text"]


@dataclass(frozen=True)
class Token:
    """One token of a prompt; `text` keeps whitespace, bytes that are no character are U+FFFD."""

    position: int
    token_id: int
    text: str


@dataclass(frozen=True)
class Suppression:
    """Prototypes switched off, and how far: z' = z - strength * sum over i of a_i p_i."""

    prototypes: tuple[int, ...] = ()
    strength: float = 1.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.strength <= 1.0:  # also refuses NaN
            raise PromptError(
                f"Strength is {self.strength}; choose a value from 0 (off) to 1 (removed)."
            )
        object.__setattr__(self, "prototypes", tuple(sorted({int(i) for i in self.prototypes})))

    @property
    def active(self) -> bool:
        """Whether it changes anything: some prototype and a strength above 0."""
        return bool(self.prototypes) and self.strength > 0


@dataclass(frozen=True)
class Sampler:
    """How the next token is drawn; temperature 0 takes the likeliest one."""

    temperature: float = 0.8
    top_p: float = 0.95
    top_k: int = 0

    def __post_init__(self) -> None:
        if not 0.0 <= self.temperature <= 100.0:
            raise PromptError(
                f"Temperature is {self.temperature}; choose a value from 0 (greedy) to 100."
            )
        if not 0.0 < self.top_p <= 1.0:
            raise PromptError(f"top_p is {self.top_p}; choose a share above 0 and up to 1.")
        if self.top_k < 0:
            raise PromptError(f"top_k is {self.top_k}; choose 0 (no limit) or a positive number.")


@dataclass(frozen=True)
class Decomposition:
    """A logit as a sum over active prototypes and a residual.

    `logit` is the emitted W z; each slice a_i (W p_i)[target] and the residual (W r)[target] are
    computed independently of it in float32. sum(slices.logit) + other + residual + bias +
    gap_logit = logit. With a distractor every logit is the target's minus the distractor's.
    """

    tokens: tuple[Token, ...]
    position: int
    """Its state predicts the token after this position."""
    target_id: int
    target: str
    logit: float
    slices: pd.DataFrame
    """prototype, label, activation, logit; by falling absolute logit."""
    other: float
    """Sum of the slices that are not in `slices`."""
    n_other: int
    """How many those are."""
    residual: float
    """(W r)[target]."""
    residual_share: float
    """||r||^2 / ||z||^2 at this position."""
    gap_logit: float
    """Signed rounding error, in logits."""
    gap: float
    """|gap_logit| over the sum of absolute terms; dimensionless."""
    bias: float = 0.0
    """The head's own bias at the target; 0 for models without one."""
    distractor_id: int | None = None
    distractor: str | None = None
    notice: str | None = None
    """Says when the prompt was longer than the context."""


@dataclass(frozen=True)
class PromptActivations:
    """Active prototypes of every token of a prompt."""

    tokens: tuple[Token, ...]
    frame: pd.DataFrame
    """position, rank, prototype, label, activation; positions that the context holds."""
    residuals: pd.DataFrame
    """position, residual_share."""
    notice: str | None = None


@dataclass(frozen=True)
class GenerationStep:
    """One token drawn."""

    token_id: int
    text: str
    """Text that became whole with this token; empty in the middle of a character."""
    touched: bool
    """Whether a suppressed prototype was active where this token was drawn."""
    n_tokens: int
    """Tokens drawn so far, this one among them."""
    ending: Ending = ""
    """Why this is the last step; empty when it is not."""


@dataclass(frozen=True)
class Generation:
    """A finished generation."""

    text: str
    token_ids: tuple[int, ...]
    touched: tuple[bool, ...]
    ending: Ending
    notice: str | None = None

    @property
    def n_tokens(self) -> int:
        """Tokens drawn."""
        return len(self.token_ids)

    @property
    def tokens_touched(self) -> int:
        """Tokens at which a suppressed prototype was active."""
        return sum(self.touched)


@dataclass(frozen=True)
class Shift:
    """What a suppression does to one next-token distribution."""

    kl: float
    """KL(before || after), nats."""
    touched: tuple[int, ...]
    """Suppressed prototypes that are active at the position."""


@dataclass(frozen=True)
class SideEffects:
    """What a suppression does to benign text."""

    kl: float
    """Mean KL(before || after), nats per token."""
    perplexity_before: float
    perplexity_after: float
    tokens_touched_share: float
    """Share of predictions made where a suppressed prototype was active."""
    n_tokens: int
    """Predictions measured."""
    n_texts: int


@dataclass(frozen=True)
class Scores:
    """Scores of texts in [0, 1], higher is more unwanted; None where the scorer is not here."""

    classifier: tuple[float, ...] | None
    """Probability of unwanted content by the offline classifier."""
    wordlist: tuple[float, ...] | None
    """Share of words that stand on the word list."""
    missing: tuple[str, ...] = ()
    """One sentence for each scorer that could not be used."""
