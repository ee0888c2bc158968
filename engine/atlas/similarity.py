"""Cosines of models with one another, and how alike two such sets of cosines are."""

import numpy as np
from jaxtyping import Bool, Float, Int
from sklearn.metrics import roc_auc_score


Cosines = Float[np.ndarray, "models models"]
"""Cosine of every model with every other, in [-1, 1]."""


def unit_rows(vectors: Float[np.ndarray, "models d"]) -> Float[np.ndarray, "models d"]:
    """Rows brought to length 1; a row of zeros stays one."""
    rows = np.asarray(vectors, dtype=np.float64)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths > 0, lengths, 1.0)


def cosines(vectors: Float[np.ndarray, "models d"]) -> Cosines:
    """Cosine of every row with every other."""
    rows = unit_rows(vectors)
    return np.clip(rows @ rows.T, -1.0, 1.0)


def pairs(square: Float[np.ndarray, "models models"]) -> Float[np.ndarray, " pairs"]:
    """Entries above the diagonal: each pair once."""
    return square[np.triu_indices(len(square), 1)]


def agreement(first: Cosines, second: Cosines) -> float:
    """Pearson correlation of the pairs' cosines, in [-1, 1]; 0 where one of them is constant."""
    a, b = pairs(first), pairs(second)
    a, b = a - a.mean(), b - b.mean()
    lengths = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / lengths if lengths > 0 else 0.0


def nearest(square: Cosines, n: int) -> Int[np.ndarray, "models n"]:
    """The `n` models of largest cosine with each, itself left out, the nearest first."""
    own = square.copy()
    np.fill_diagonal(own, -np.inf)
    return np.argsort(-own, axis=1, kind="stable")[:, :n]


def neighbours_kept(first: Cosines, second: Cosines, n: int) -> float:
    """Share of each model's `n` nearest by the first that are among those by the second."""
    n = min(n, len(first) - 1)
    if n < 1:
        return 1.0
    before, after = nearest(first, n), nearest(second, n)
    kept = (before[:, :, None] == after[:, None, :]).any(2)
    return float(kept.mean())


def shared_roots(roots: list[list[str]]) -> Bool[np.ndarray, "models models"]:
    """Whether two models go back to a common root; a model of unknown roots to none."""
    sets = [set(own) for own in roots]
    return np.array([[bool(a & b) for b in sets] for a in sets], dtype=bool)


def lineage_auc(square: Cosines, related: Bool[np.ndarray, "models models"]) -> float | None:
    """Probability that a related pair has a larger cosine than an unrelated one.

    Returns:
        The area under the curve, in [0, 1]; None where there are no pairs of one of the kinds.
    """
    labels = related[np.triu_indices(len(related), 1)]
    if labels.all() or not labels.any():
        return None
    return float(roc_auc_score(labels, pairs(square)))
