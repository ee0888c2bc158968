"""Means over seeds with their t-intervals."""

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy import stats


CONFIDENCE = 0.95
"""Probability that an interval holds the mean."""


class Interval(NamedTuple):
    """A mean with its 95 % interval; the ends are NaN where one value is all there is."""

    mean: float
    low: float
    high: float
    n: int
    """Values that the mean is taken over."""


def t_interval(values: Float[np.ndarray, " values"]) -> Interval:
    """Mean and Student's t-interval of independent values; NaN among them is left out.

    Without any value everything is NaN and n is 0.
    """
    values = np.asarray(values, np.float64)
    values = values[np.isfinite(values)]
    n = len(values)
    if n < 2:
        return Interval(float(values[0]) if n else math.nan, math.nan, math.nan, n)
    mean = float(values.mean())
    error = float(values.std(ddof=1)) / math.sqrt(n)
    half = float(stats.t.ppf((1 + CONFIDENCE) / 2, n - 1)) * error
    return Interval(mean, mean - half, mean + half, n)


def log_t_interval(values: Float[np.ndarray, " values"]) -> Interval:
    """Geometric mean of positive values, with the t-interval of their logarithms."""
    values = np.asarray(values, np.float64)
    logs = t_interval(np.log(values[np.isfinite(values) & (values > 0)]))
    return Interval(math.exp(logs.mean), math.exp(logs.low), math.exp(logs.high), logs.n)
