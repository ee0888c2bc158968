"""Intervals of claims: paired bootstrap over the units that could have been others."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float


RESAMPLES = 10_000
SEED = 0
_BLOCK = 500

Columns = Float[np.ndarray, "units columns"]
Resampled = Float[np.ndarray, "resamples units columns"]
Figures = Float[np.ndarray, " resamples"]
Statistic = Callable[[Resampled], Figures]
"""The figure of each resample."""


def figure(columns: Columns, statistic: Statistic) -> float:
    """The statistic of the columns themselves."""
    return float(statistic(columns[None])[0])


def bootstrap(
    columns: Columns, statistic: Statistic, *, resamples: int = RESAMPLES
) -> tuple[float, float]:
    """95 % percentile interval of a statistic of paired columns.

    Args:
        columns: A unit is drawn with all its columns, so pairs stay pairs.
        statistic: Computes the figure of each resample.
        resamples: Resamples drawn, with a fixed seed.

    Returns:
        Lower and upper end, in the unit of the statistic.
    """
    generator = np.random.default_rng(SEED)
    n_units = len(columns)
    values = []
    for start in range(0, resamples, _BLOCK):
        drawn = generator.integers(n_units, size=(min(_BLOCK, resamples - start), n_units))
        values.append(statistic(columns[drawn]))
    low, high = np.quantile(np.concatenate(values), [0.025, 0.975])
    return float(low), float(high)


def mean_difference(columns: Resampled) -> Figures:
    """Mean of the first column minus mean of the second."""
    means = columns.mean(axis=-2)
    return means[..., 0] - means[..., 1]


def relative_drop(columns: Resampled) -> Figures:
    """1 - mean of the second column over mean of the first."""
    means = columns.mean(axis=-2)
    return 1 - means[..., 1] / np.maximum(means[..., 0], np.finfo(np.float64).tiny)


def geometric_ratio(columns: Resampled) -> Figures:
    """Geometric mean of the second column over that of the first."""
    logs = np.log(columns).mean(axis=-2)
    return np.exp(logs[..., 1] - logs[..., 0])


def weighted_ratio(columns: Resampled) -> Figures:
    """Mean of the first over the second column, both weighted by the third, minus 1."""
    weighted = (columns[..., :2] * columns[..., 2:3]).sum(axis=-2)
    return weighted[..., 0] / weighted[..., 1] - 1


def ratio_of_sums(columns: Resampled) -> Figures:
    """Sum of the first column over sum of the second."""
    sums = columns.sum(axis=-2)
    return sums[..., 0] / sums[..., 1]
