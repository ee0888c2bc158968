"""Intervals by drawing groups of units again: units of a group are no independent evidence."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy import stats


RESAMPLES = 2_000
_LEVELS = (0.025, 0.975)


class Estimate(NamedTuple):
    """A figure with its 95 % interval; the ends are None where there is none."""

    value: float
    low: float | None
    high: float | None
    n: int
    """What it is taken over."""


def grouped_mean(
    values: Float[np.ndarray, " units"],
    groups: Int[np.ndarray, " units"],
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Estimate:
    """Mean of units with the 95 % percentile interval of a bootstrap over their groups.

    Of two paired columns pass their difference; pairs then stay pairs.

    Args:
        values: One a unit, such as 1 where a question was answered right.
        groups: Number of each unit's group, such as the fact that a question is about.
        resamples: Resamples drawn.
        seed: Seed of the draws.
    """
    _, group = np.unique(groups, return_inverse=True)
    sums, counts = np.bincount(group, values), np.bincount(group)
    drawn = np.random.default_rng(seed).integers(len(sums), size=(resamples, len(sums)))
    means = sums[drawn].sum(1) / counts[drawn].sum(1)
    low, high = np.quantile(means, _LEVELS)
    return Estimate(float(np.mean(values)), float(low), float(high), len(values))


def group_draws(
    groups: Int[np.ndarray, " units"], resamples: int, seed: int = 0
) -> list[Int[np.ndarray, " drawn"]]:
    """Places of the units of each resample of the groups, for figures that are no means."""
    _, group = np.unique(groups, return_inverse=True)
    members = [np.flatnonzero(group == number) for number in range(group.max() + 1)]
    generator = np.random.default_rng(seed)
    draws = generator.integers(len(members), size=(resamples, len(members)))
    return [np.concatenate([members[number] for number in drawn]) for drawn in draws]


def t_mean(values: Float[np.ndarray, " values"]) -> Estimate | None:
    """Mean of independent values with Student's 95 % interval; NaN among them is left out.

    None without any value; without ends of one value alone.
    """
    known = values[np.isfinite(values)]
    if len(known) == 0:
        return None
    mean, n = float(known.mean()), len(known)
    if n == 1:
        return Estimate(mean, None, None, n)
    half = float(stats.t.ppf(_LEVELS[1], n - 1) * known.std(ddof=1) / np.sqrt(n))
    return Estimate(mean, mean - half, mean + half, n)
