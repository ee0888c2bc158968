"""How heavy the tail of a head's influence is: shares, Gini coefficient, power-law exponent.

One side at a time: the samples that raise a head's score, or those that lower it. The power law is
p(x) ∝ x^-alpha from xmin on; alpha by maximum likelihood, xmin by the smallest Kolmogorov-Smirnov
distance, the rival is a log-normal truncated at the same xmin (Clauset, Shalizi, Newman 2009,
sections 3 and 5).
"""

import math
import warnings
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray

from engine.config import require


SIGNS = ("positive", "negative")
"""Sides of the influence: samples that raise the head's score, and samples that lower it."""
TOP_SHARE = 0.1
"""Share of a side's samples that counts as its top."""
CANDIDATES = 100
"""Values tried as xmin: quantiles of the side, spaced evenly in rank."""
SHORTEST_TAIL = 50
"""Samples that a fitted tail has at least; a side with fewer than twice as many is not fitted."""
RESAMPLES = 200
"""Bootstrap resamples behind the exponent's interval."""


@dataclass(frozen=True)
class Tail:
    """One side of a head's influence; NaN where it could not be computed.

    n: samples of the side. low, high: 95 % percentile interval of the exponent when samples are
    drawn anew, xmin being chosen again each time. lognormal_ratio: log-likelihood ratio of power
    law to log-normal on the tail, negative prefers the log-normal; lognormal_p: p-value of its
    being 0 (Vuong).
    """

    n: int
    top10_share: float
    gini: float
    exponent: float
    low: float
    high: float
    xmin: float
    n_tail: int
    ks: float
    lognormal_ratio: float
    lognormal_p: float


def side_of(
    influence: Float[np.ndarray, " samples"], sign: str
) -> Float[np.ndarray, " side_samples"]:
    """Size of the influence of the samples of one side; zeros and NaN belong to none.

    Raises:
        ConfigError: the sign is neither positive nor negative.
    """
    require(sign in SIGNS, f"The sign is {sign!r}; it must be one of {', '.join(SIGNS)}.")
    values = np.asarray(influence, np.float64)
    values = values if sign == "positive" else -values
    return values[np.isfinite(values) & (values > 0)]


def tail_of(scores: Float[np.ndarray, " samples"], *, seed: int = 0) -> Tail:
    """The tail of the positive scores; give `-scores` for those of the negative side.

    Scores that are 0, negative or not finite belong to no tail. A side of fewer than
    2 `SHORTEST_TAIL` samples, or without two different values in its tail, has shares but no
    exponent; an empty one has NaN everywhere.

    Args:
        scores: influence of each sample.
        seed: seed of the bootstrap.
    """
    values = np.sort(side_of(scores, "positive"))
    share, gini = top_share(values), gini_of(values)
    if len(values) < 2 * SHORTEST_TAIL or not _varies(values):
        nan = math.nan
        return Tail(len(values), share, gini, nan, nan, nan, nan, 0, nan, nan, nan)
    logs = np.log(values)
    first, exponent, distance = fit_tail(logs)
    low, high = _interval(logs, seed)
    ratio, p = lognormal_ratio(values[first:])
    return Tail(
        n=len(values),
        top10_share=share,
        gini=gini,
        exponent=exponent,
        low=low,
        high=high,
        xmin=float(values[first]),
        n_tail=len(values) - first,
        ks=distance,
        lognormal_ratio=ratio,
        lognormal_p=p,
    )


def top_share(values: Float[np.ndarray, " samples"], share: float = TOP_SHARE) -> float:
    """Part of the sum of positive values that the largest ones carry; their number rounds up."""
    if len(values) == 0:
        return math.nan
    count = math.ceil(share * len(values) - 1e-9)
    return float(np.sort(values)[len(values) - count :].sum() / values.sum())


def gini_of(values: Float[np.ndarray, " samples"]) -> float:
    """Gini coefficient of positive values: 0 where all are equal, near 1 where one has all."""
    n = len(values)
    if n == 0:
        return math.nan
    ranks = np.arange(1, n + 1)
    return float(2 * (ranks * np.sort(values)).sum() / (n * values.sum()) - (n + 1) / n)


def fit_tail(
    logs: Float[np.ndarray, " samples"], candidates: int = CANDIDATES
) -> tuple[int, float, float]:
    """First sample of the tail, exponent and Kolmogorov-Smirnov distance of the best xmin.

    Args:
        logs: logarithms of the positive values, ascending.
        candidates: ranks tried, evenly spaced from the first to the last that leaves
            `SHORTEST_TAIL` samples.
    """
    last = len(logs) - SHORTEST_TAIL
    tried = np.unique(np.linspace(0, last, candidates).round().astype(int))
    # a tail begins at the first of equal values
    tried = np.unique(np.searchsorted(logs, logs[tried]))
    sums = np.cumsum(logs[::-1])[::-1]
    fits = [(int(i), *_power_law(logs[i:], float(sums[i]))) for i in tried if logs[i] < logs[-1]]
    return min(fits, key=lambda fit: fit[2])


def _power_law(tail: NDArray[np.float64], total: float) -> tuple[float, float]:
    """Exponent of a tail that begins at its first value, and its distance from the fit."""
    n = len(tail)
    steepness = n / (total - n * tail[0])
    theory = -np.expm1(-steepness * (tail - tail[0]))
    seen = np.arange(n + 1) / n
    distance = max(float((seen[1:] - theory).max()), float((theory - seen[:-1]).max()))
    return 1 + float(steepness), distance


def _interval(logs: NDArray[np.float64], seed: int) -> tuple[float, float]:
    """Interval of the exponent when samples are drawn anew, from half as many candidates."""
    generator = np.random.default_rng(seed)
    found = []
    for _ in range(RESAMPLES):
        drawn = np.sort(logs[generator.integers(len(logs), size=len(logs))])
        if _varies(drawn):
            found.append(fit_tail(drawn, CANDIDATES // 2)[1])
    low, high = np.quantile(found, [0.025, 0.975])
    return float(low), float(high)


def _varies(values: NDArray[np.float64]) -> bool:
    """Whether sorted values differ, beyond rounding, within every tail that could be fitted."""
    return bool(values[-SHORTEST_TAIL] < values[-1])


def lognormal_ratio(tail: Float[np.ndarray, " samples"]) -> tuple[float, float]:
    """Log-likelihood ratio of power law to truncated log-normal on a whole tail, and its p-value.

    By the package `powerlaw`, on values in units of the tail's first; NaN where it finds no fit.
    """
    import powerlaw  # loads matplotlib, which takes seconds

    with warnings.catch_warnings():
        # the log-normal that fits a true power law lies at the edge of what can be computed
        warnings.simplefilter("ignore")
        # its own default lets no exponent pass 3
        ranges = {"alpha": [1.0, None]}
        fit = powerlaw.Fit(tail / tail[0], xmin=1.0, verbose=0, parameter_ranges=ranges)
        ratio, p = fit.distribution_compare("power_law", "lognormal")
    known = math.isfinite(ratio) and math.isfinite(p)
    return (float(ratio), float(p)) if known else (math.nan, math.nan)


def ccdf_points(
    values: Float[np.ndarray, " samples"], most: int = 400
) -> tuple[Float[np.ndarray, " points"], Float[np.ndarray, " points"]]:
    """Points of the complementary distribution: value, and share of values at least as large.

    At most about `most` points, spaced evenly in the logarithm of the rank from the largest, so
    that the tail keeps every sample.
    """
    n = len(values)
    ordered = np.sort(np.asarray(values, np.float64))[::-1]
    if n == 0:
        return ordered, ordered
    ranks = np.unique(np.geomspace(1, n, most).round().astype(int))
    chosen = ordered[ranks - 1]
    ascending = ordered[::-1]
    at_least = n - np.searchsorted(ascending, chosen, side="left")
    return chosen, at_least / n


def lorenz_points(
    values: Float[np.ndarray, " samples"], most: int = 200
) -> tuple[Float[np.ndarray, " points"], Float[np.ndarray, " points"]]:
    """Lorenz curve of positive values, the largest first: share of samples, share of their sum.

    From (0, 0) to (1, 1); equal values lie on the diagonal, heavy tails above it.
    """
    n = len(values)
    if n == 0:
        return np.zeros(1), np.zeros(1)
    sums = np.concatenate([[0.0], np.cumsum(np.sort(np.asarray(values, np.float64))[::-1])])
    at = np.unique(np.linspace(0, n, min(most, n) + 1).round().astype(int))
    return at / n, sums[at] / sums[-1]
