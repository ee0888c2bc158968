"""How far two methods rank a pool alike: overlap of the first n, rank correlation, intervals."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from scipy import stats

from engine.errors import ConfigError


RESAMPLES = 10_000
"""Bootstrap resamples of the queries."""

Scores = Float[np.ndarray, "queries pool"]


def top_rows(scores: Scores, n: int) -> Int[np.ndarray, "queries n"]:
    """Rows of the `n` largest scores of each query, falling; of equal scores the earlier row.

    Raises:
        ConfigError: The pool has fewer than `n` sequences, or `n` is not positive.
    """
    if not 1 <= n <= scores.shape[1]:
        raise ConfigError(
            f"The first {n} were asked for and the pool has {scores.shape[1]} sequences; ask for "
            f"1 to {scores.shape[1]}, or take a larger pool."
        )
    return np.argsort(-scores, axis=1, kind="stable")[:, :n]


def top_overlap(first: Scores, second: Scores, n: int) -> Float[np.ndarray, " queries"]:
    """Share of the first `n` of one method that are among the first `n` of the other, by query.

    In [0, 1]; two independent rankings share n / pool on average.

    Raises:
        ConfigError: The pool has fewer than `n` sequences.
    """
    pairs = zip(top_rows(first, n), top_rows(second, n), strict=True)
    return np.array([len(np.intersect1d(a, b)) / n for a, b in pairs])


def rank_correlation(first: Scores, second: Scores) -> Float[np.ndarray, " queries"]:
    """Spearman's correlation over the whole pool, by query, in [-1, 1]; NaN for constant scores."""
    ranks = [stats.rankdata(scores, axis=1) for scores in (first, second)]
    centred = [rank - rank.mean(axis=1, keepdims=True) for rank in ranks]
    lengths = np.sqrt((centred[0] ** 2).sum(1) * (centred[1] ** 2).sum(1))
    with np.errstate(invalid="ignore"):
        return (centred[0] * centred[1]).sum(1) / np.where(lengths > 0, lengths, np.nan)


@dataclass(frozen=True)
class MeanOverQueries:
    """A mean over queries with its interval."""

    mean: float
    low: float
    """Lower end of the 95 % interval; NaN where fewer than two queries count."""
    high: float
    n: int
    """Queries that count: those with a number."""


def mean_over_queries(values: Float[np.ndarray, " queries"], seed: int = 0) -> MeanOverQueries:
    """Mean and 95 % percentile bootstrap interval over queries; NaN values count as absent."""
    known = values[np.isfinite(values)]
    if len(known) < 2:
        mean = float(known.mean()) if len(known) else float("nan")
        return MeanOverQueries(mean, float("nan"), float("nan"), len(known))
    interval = stats.bootstrap(
        (known,), np.mean, n_resamples=RESAMPLES, method="percentile", batch=500, rng=seed
    ).confidence_interval
    return MeanOverQueries(
        float(known.mean()), float(interval.low), float(interval.high), len(known)
    )
