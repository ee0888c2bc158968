"""Whether in-context learning follows the heads: both changes over the arms of a study."""

import math
from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy.stats import spearmanr


RESAMPLES = 2000
"""Bootstrap resamples behind an interval."""


class Coupling(NamedTuple):
    """Correlation of two changes over arms and seeds.

    low, high: 95 % percentile interval of Pearson's correlation when seeds are drawn anew, each
    with all of its arms; NaN with a single seed.
    """

    pearson: float
    low: float
    high: float
    spearman: float
    n_points: int
    n_seeds: int


def coupling(
    effects: pd.DataFrame,
    unit: str,
    measures: tuple[str, str] = ("score", "icl"),
    *,
    seed: int = 0,
) -> Coupling:
    """Correlation over arms and seeds of the change of a kind's score and of another measure.

    Every arm of a seed is a point, those that act on other kinds' samples too. The in-context
    score is more negative the more is learned in context, so a negative correlation says that the
    two go together.

    Args:
        effects: what `seed_effects` gives.
        unit: kind of head whose chosen head's score is taken.
        measures: the two.
        seed: seed of the bootstrap.
    """
    own = effects[(effects["unit"] == unit) & effects["measure"].isin(measures)]
    wide = own.pivot(index=["seed", "arm", "arm_unit"], columns="measure", values="effect")
    wide = wide.reindex(columns=list(measures)).dropna()
    points = wide.to_numpy(np.float64)
    seeds, first = np.unique(wide.index.get_level_values("seed"), return_inverse=True)
    if len(points) < 3 or len(seeds) == 0:
        nan = math.nan
        return Coupling(nan, nan, nan, nan, len(points), len(seeds))
    low, high = _interval([points[first == place] for place in range(len(seeds))], seed)
    spearman = float(spearmanr(points[:, 0], points[:, 1]).statistic)  # pyright: ignore[reportAttributeAccessIssue]
    return Coupling(_pearson(points), low, high, spearman, len(points), len(seeds))


def _interval(by_seed: list[Float[np.ndarray, "_arms 2"]], seed: int) -> tuple[float, float]:
    if len(by_seed) < 2:
        return math.nan, math.nan
    generator = np.random.default_rng(seed)
    drawn = generator.integers(len(by_seed), size=(RESAMPLES, len(by_seed)))
    found = [_pearson(np.concatenate([by_seed[i] for i in row])) for row in drawn]
    low, high = np.nanquantile(found, [0.025, 0.975])
    return float(low), float(high)


def _pearson(points: Float[np.ndarray, "points 2"]) -> float:
    """Pearson's correlation; NaN where one side does not vary."""
    centred = points - points.mean(axis=0)
    spread = np.sqrt((centred**2).sum(axis=0))
    return (
        float((centred[:, 0] * centred[:, 1]).sum() / spread.prod()) if spread.all() else math.nan
    )
