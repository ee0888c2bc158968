"""Scores held against retraining: linear datamodeling score, noise ceiling, planted recall.

A score matrix predicts the outcome of training on a subset by the sum of its members' scores. What
was measured is the negative summed loss of each query after training on that subset, the mean over
the seeds it was trained with. The linear datamodeling score (LDS) of a query is Spearman's rank
correlation of the two over subsets (Park et al., TRAK, section 2: "linear datamodeling score").
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped
from scipy.stats import rankdata


RESAMPLES = 2000
"""Bootstrap resamples behind an interval."""

Predicted = Float[np.ndarray, "subsets queries"]
"""Outcome of each subset for each query: the higher, the lower the loss."""


class Interval(NamedTuple):
    """A mean and its 95 % percentile bootstrap interval."""

    mean: float
    low: float
    high: float


def predicted_outcomes(
    scores: Float[np.ndarray, "queries pool"], members: Bool[np.ndarray, "subsets pool"]
) -> Predicted:
    """Sum of the scores of each subset's members, in float64."""
    return members.astype(np.float64) @ scores.astype(np.float64).T


def measured_outcomes(losses: Float[np.ndarray, "seeds subsets queries"]) -> Predicted:
    """Negative loss, the mean over seeds: the higher, the better the query was learned."""
    return -losses.mean(axis=0)


def domain_counts(
    members: Bool[np.ndarray, "subsets pool"], domain: Shaped[np.ndarray, " pool"]
) -> Float[np.ndarray, "subsets domains"]:
    """Members of each domain in each subset, domains in the order of their names."""
    inside = members.astype(np.float64)
    return np.stack([inside[:, domain == name].sum(1) for name in np.unique(domain)], axis=1)


def partial_out(
    values: Predicted, counts: Float[np.ndarray, "subsets domains"]
) -> Float[np.ndarray, "subsets queries"]:
    """What of an outcome the number of members of each domain does not explain.

    For every query, the residual of least squares over subsets of its outcome on a constant and
    the counts of all domains. Applied alike to predicted and to measured outcomes, and to both
    seeds of the ceiling, it leaves what depends on WHICH sequences of each domain are members: a
    method that only knows the domain of a sequence predicts nothing of it.
    """
    design = np.column_stack([np.ones(len(counts)), counts - counts.mean(axis=0)])
    fitted = design @ np.linalg.lstsq(design, values, rcond=None)[0]
    residual = values - fitted
    rounding = 1e-9 * np.maximum(np.abs(values).max(axis=0), 1e-300)
    return np.where(np.abs(residual).max(axis=0) > rounding, residual, 0.0)


def centred_ranks(values: Predicted) -> Float[np.ndarray, "subsets queries"]:
    """Ranks over subsets, ties shared, minus their mean."""
    ranks = rankdata(values, axis=0)
    return ranks - ranks.mean(axis=0)


def rank_correlations(first: Predicted, second: Predicted) -> Float[np.ndarray, " queries"]:
    """Spearman's correlation over subsets, query by query; 0 where one side is constant."""
    weights = np.ones((1, len(first)))
    return _weighted_correlations(centred_ranks(first), centred_ranks(second), weights)[0]


def mean_over_queries(
    correlations: Float[np.ndarray, " queries"], *, resamples: int = RESAMPLES, seed: int = 0
) -> Interval:
    """Mean over queries, and its interval when queries are drawn anew."""
    generator = np.random.default_rng(seed)
    drawn = generator.integers(len(correlations), size=(resamples, len(correlations)))
    return _interval(float(correlations.mean()), correlations[drawn].mean(axis=1))


def mean_over_subsets(
    first: Predicted, second: Predicted, *, resamples: int = RESAMPLES, seed: int = 0
) -> Interval:
    """The same mean over queries, and its interval when the SUBSETS are drawn anew.

    Every resample correlates the ranks that the subsets have among all of them.
    """
    generator = np.random.default_rng(seed)
    n_subsets = len(first)
    weights = generator.multinomial(n_subsets, np.full(n_subsets, 1 / n_subsets), resamples)
    ranks = centred_ranks(first), centred_ranks(second)
    means = _weighted_correlations(*ranks, weights.astype(np.float64)).mean(axis=1)
    return _interval(float(rank_correlations(first, second).mean()), means)


def mean_difference(
    first: Float[np.ndarray, " queries"],
    second: Float[np.ndarray, " queries"],
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Interval:
    """Mean over queries of first - second, paired, with its interval over queries."""
    return mean_over_queries(first - second, resamples=resamples, seed=seed)


def noise_ceiling(
    losses: Float[np.ndarray, "seeds subsets queries"],
    counts: Float[np.ndarray, "subsets domains"] | None = None,
) -> Float[np.ndarray, " queries"]:
    """Spearman's correlation of one seed's outcomes with another's, the mean over pairs of seeds.

    It says how far one training of a subset tells another one of it. The mean over two seeds is
    less noisy than either, so a method may pass it: were all that a subset determines known, the
    correlation with the mean of m seeds would be about sqrt(m r / (1 + (m - 1) r)) for a ceiling r.

    Args:
        losses: Of two seeds at least.
        counts: Members of each domain, to be partialled out of both sides; None leaves them in.
    """
    outcomes = [-each if counts is None else partial_out(-each, counts) for each in losses]
    pairs = [(i, j) for i in range(len(outcomes)) for j in range(i)]
    return np.mean([rank_correlations(outcomes[i], outcomes[j]) for i, j in pairs], axis=0)


def ranks_of(
    scores: Float[np.ndarray, "queries pool"], wanted: Int[np.ndarray, " queries"]
) -> Int[np.ndarray, " queries"]:
    """Rank by score, 1 first, of one sequence for each query; ties count against it."""
    own = scores[np.arange(len(scores)), wanted]
    return (scores >= own[:, None]).sum(axis=1)


def recall_at(ranks: Int[np.ndarray, " queries"], n: int) -> float:
    """Share of queries whose sequence is among the first n."""
    return float((ranks <= n).mean())


def mean_reciprocal_rank(ranks: Int[np.ndarray, " queries"]) -> float:
    """Mean of 1 / rank."""
    return float((1 / ranks).mean())


def _weighted_correlations(
    first: Float[np.ndarray, "subsets queries"],
    second: Float[np.ndarray, "subsets queries"],
    weights: Float[np.ndarray, "resamples subsets"],
) -> Float[np.ndarray, "resamples queries"]:
    """Pearson's correlation over subsets with weights; 0 where a side does not vary."""
    total = weights.sum(axis=1, keepdims=True)

    def mean(values: np.ndarray) -> np.ndarray:
        return weights @ values / total

    of_first, of_second = mean(first), mean(second)
    covariance = mean(first * second) - of_first * of_second
    variances = (mean(first**2) - of_first**2) * (mean(second**2) - of_second**2)
    return np.divide(
        covariance,
        np.sqrt(np.maximum(variances, 0)),
        out=np.zeros_like(covariance),
        where=variances > 1e-9,
    )


def _interval(mean: float, resampled: Float[np.ndarray, " resamples"]) -> Interval:
    low, high = np.quantile(resampled, [0.025, 0.975])
    return Interval(mean, float(low), float(high))
