"""What attribution takes and returns: frozen values, no torch."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pandas as pd


@dataclass(frozen=True)
class AttributionQuery:
    """A prediction, some of them, or a whole generation, whose summed loss is traced.

    Without span and generation it is the prediction of `target` after `position`.
    """

    prompt: str
    target: str | int | None = None
    """Token predicted there; the likeliest where None."""
    position: int = -1
    """Token after which it is predicted; negative counts from the end."""
    span: tuple[int, int] | None = None
    """First and last token of the prompt that are traced, both included, each as predicted."""
    generation: tuple[int, ...] = ()
    """Token ids that continue the prompt; all of them are traced, unless there is a span."""


@dataclass(frozen=True)
class AttributionPool:
    """What can be searched."""

    n_sequences: int
    n_tokens: int
    """Predicted tokens of all sequences."""
    bits: int
    """Bits of a stored number of errors and states."""
    length: int
    """Tokens of a sequence, the separator in front included."""
    domains: tuple[str, ...]
    """Domains of the sequences, in alphabetical order."""
    variants: tuple[str, ...]
    """Ways to score from what is stored."""
    default: str
    """The one taken where none is named."""
    model: str
    """Fingerprint of the model it was made with."""


@dataclass(frozen=True)
class AttributionScores:
    """A whole pool scored for one query by one method."""

    frame: pd.DataFrame
    """sequence, document (row in the corpus's own table, -1 where it is not in it), doc_id,
    domain, position (of the first predicted token in its document), n_tokens, score; in the order
    of the pool."""
    method: str
    unit: str
    """Unit of the scores. Nats, without conditioning: by how much the query's summed loss falls, to
    first order, for a step of size 1 down the gradient of the sequence's summed loss. Scores are
    positive where the sequence lowers the loss of the query."""
    target: str
    """Text of the tokens traced."""
    target_ids: tuple[int, ...]
    loss: float
    """Sum of -log p over the traced tokens, nats."""
    seconds: Mapping[str, float]
    """Wall time by part: `pass` (the query's own), `preparation` (its gradient, conditioned),
    `search` (of the pool)."""
    notices: tuple[str, ...] = ()

    @property
    def n_sequences(self) -> int:
        """Sequences of the pool."""
        return len(self.frame)

    @property
    def n_tokens(self) -> int:
        """Predicted tokens of the pool."""
        return int(self.frame["n_tokens"].sum())


@dataclass(frozen=True)
class Attribution:
    """The training sequences of largest score."""

    results: pd.DataFrame
    """rank (from 1), sequence, document, doc_id, domain, position, n_tokens, score; by falling
    score."""
    shares: pd.DataFrame
    """rank, prototype, share: the prototypes that add most to each result's score, by falling
    absolute share, in the unit of the score; empty for methods that have no prototypes."""
    query: AttributionQuery
    scores: AttributionScores = field(repr=False)

    @property
    def method(self) -> str:
        """Variant of the cached statistics, or name of another method."""
        return self.scores.method

    @property
    def seconds(self) -> Mapping[str, float]:
        """Wall time by part."""
        return self.scores.seconds

    @property
    def notices(self) -> tuple[str, ...]:
        """What a reader should know of the result."""
        return self.scores.notices
