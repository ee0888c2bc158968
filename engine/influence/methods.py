"""The methods by name: what each compares and what its scores mean.

Every method is called as `method.score(model, pool, queries, progress, **settings)` and returns
float32 [queries, pool]. Positive: weighting the text up lowers the query's loss; for a similarity:
larger means more alike. Losses are sums over predicted tokens.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Float

from engine.corpus.documents import Progress, no_progress
from engine.errors import ConfigError
from engine.influence.ekfac import score_ekfac
from engine.influence.frame import Sequences
from engine.influence.gradients import score_gradient_cosine, score_gradient_dot
from engine.influence.neighbours import score_neighbours
from engine.influence.projected import score_projected
from engine.influence.prototype_gradients import score_full
from engine.influence.random_scores import score_random
from engine.influence.text_scores import score_bm25, score_tfidf
from engine.prism.attribution.gradient import VARIANTS
from engine.prism.attribution.scoring import score_sequences
from engine.prism.model import PrismForCausalLM


ScoreFunction = Callable[..., Float[np.ndarray, "queries pool"]]
"""Called with model, pool, queries, a progress, and the method's own settings by name."""


@dataclass(frozen=True)
class Method:
    """A way to score training texts for queries."""

    name: str
    score: ScoreFunction
    says: str
    """What it compares, in a few words."""
    unit: str
    """Unit of its scores."""


_NATS = "nats"
_REFERENCES = (
    Method("full", score_full, "gradients of the whole bank, exact", _NATS),
    Method("ekfac", score_ekfac, "block gradients over EK-FAC's curvature (Kronfluence)", _NATS),
    Method("projected", score_projected, "block gradients, projected (Bergson)", "cosine"),
    Method("gradient-dot", score_gradient_dot, "gradients of all the decoder's weights", _NATS),
    Method("gradient-cosine", score_gradient_cosine, "directions of those gradients", "cosine"),
    Method("knn", score_neighbours, "mean states of the texts", "cosine"),
    Method(
        "knn-last",
        partial(score_neighbours, states="last"),
        "states that predict the last token",
        "cosine",
    ),
    Method("tfidf", score_tfidf, "tokens and pairs of tokens, rare ones weighted up", "cosine"),
    Method("bm25", score_bm25, "tokens, rare ones weighted up", "BM25"),
    Method("random", score_random, "nothing: independent random numbers", "none"),
)


def _cached(variant: str) -> Method:
    score: ScoreFunction = partial(_score_cached, variant=variant)
    unit = _NATS if "unit" not in variant else "nats per length of gradient"
    unit = "activation" if variant.startswith("activations") else unit
    return Method(variant, score, f"cached statistics of tokens: {variant}", unit)


def _score_cached(
    model: PrismForCausalLM,
    pool: Sequences,
    queries: Sequences,
    progress: Progress = no_progress,
    *,
    variant: str,
    **settings: Any,
) -> Float[np.ndarray, "queries pool"]:
    """Scores from statistics cached in memory; `bits` says as what they are stored."""
    return score_sequences(model, pool, queries, variant, progress=progress, **settings)


METHODS: dict[str, Method] = {
    method.name: method for method in (*map(_cached, VARIANTS), *_REFERENCES)
}
"""Every method, by name."""


def method_named(name: str) -> Method:
    """The method of this name.

    Raises:
        ConfigError: There is none.
    """
    if name not in METHODS:
        raise ConfigError(f"There is no method {name}; choose one of {', '.join(METHODS)}.")
    return METHODS[name]
