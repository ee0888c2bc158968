"""What models are compared by: cosines of embeddings and outputs, labels, chance.

Every comparison gives a matrix over models; what a classifier learns from is given by pair.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

from engine.able.columns import Columns
from engine.atlas.lineage import Card
from engine.atlas.similarity import cosines


def signed_root(values: Float[np.ndarray, "models columns"]) -> Float[np.ndarray, "models columns"]:
    """Signed square roots, so that no few entries dominate a cosine."""
    return np.sign(values) * np.sqrt(np.abs(values))


def probe_cosines(
    vectors: Float[np.ndarray, "models columns"],
    columns: Columns,
    a: Int[np.ndarray, " pairs"],
    b: Int[np.ndarray, " pairs"],
) -> Float[np.ndarray, "pairs probes"]:
    """Cosines of two models' entries, probe by probe; 0 where one has none."""
    found = np.zeros((len(a), len(columns.probes)), np.float32)
    for probe in range(len(columns.probes)):
        found[:, probe] = cosines(vectors[:, columns.block(probe)])[a, b]
    return found


def pair_features(
    vectors: Float[np.ndarray, "models columns"],
    a: Int[np.ndarray, " pairs"],
    b: Int[np.ndarray, " pairs"],
) -> Float[np.ndarray, "pairs features"]:
    """`|a - b|` and `a * b` of pairs, the same whichever of the two is first."""
    first, second = vectors[a], vectors[b]
    return np.concatenate([np.abs(first - second), first * second], axis=1).astype(np.float32)


def option_probabilities(
    log_probabilities: Float[np.ndarray, "models options"], columns: Columns
) -> Float[np.ndarray, "models options"]:
    """Probabilities of options among those of their probe; 0 in probes a model did not read."""
    found = np.zeros(log_probabilities.shape)
    for probe in range(len(columns.probes)):
        own = columns.options_of(probe)
        scores = log_probabilities[:, own].astype(np.float64)
        weights = np.exp(scores - scores.max(1, keepdims=True))
        found[:, own] = weights / weights.sum(1, keepdims=True)
    return np.nan_to_num(found)


def label_scores(cards: Sequence[Card], *labels: str) -> Float[np.ndarray, "models models"]:
    """1 where all the named labels of two models are known and equal, else 0: a mere look-up."""
    values = [tuple(getattr(card, label) for label in labels) for card in cards]
    known = np.array([all(value) for value in values])
    _, codes = np.unique(["\n".join(value) for value in values], return_inverse=True)
    same = codes[:, None] == codes[None]
    return (same & known[:, None] & known[None]).astype(np.float64)


def random_scores(n_models: int, seed: int = 0) -> Float[np.ndarray, "models models"]:
    """Chance: uniform numbers, the same for (a, b) and (b, a)."""
    drawn = np.random.default_rng([seed, 3]).random((n_models, n_models))
    upper = np.triu(drawn, 1)
    return upper + upper.T
