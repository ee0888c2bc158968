"""When along training the influential samples come, beside the score that they raise."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from engine.mda.overlaps import top_mask
from engine.mda.tails import TOP_SHARE


@dataclass(frozen=True)
class Timing:
    """Where in the window the influence lies.

    edges: optimiser steps between which a bin lies; the last edge is the end of the window.
    density: share of a bin's samples that are top samples ÷ that share over all: 1 everywhere when
        they come evenly.
    mass: share of the sum of positive influence that a bin carries.
    lowering: share of the sum of negative influence that a bin carries.
    n_samples: samples of a bin.

    Bins without samples are NaN; so is a share of a sum that is 0.
    """

    edges: Float[np.ndarray, " edges"]
    density: Float[np.ndarray, " bins"]
    mass: Float[np.ndarray, " bins"]
    lowering: Float[np.ndarray, " bins"]
    n_samples: Int[np.ndarray, " bins"]


def timing(
    steps: Int[np.ndarray, " samples"],
    influence: Float[np.ndarray, " samples"],
    *,
    bins: int = 20,
    share: float = TOP_SHARE,
) -> Timing:
    """Density of top samples and mass of influence along training.

    Samples without a finite influence do not count.

    Args:
        steps: optimiser step of each sample.
        influence: on one head, positive where the sample raises its score.
        bins: intervals of equal length, at most one for each step.
        share: share of the samples that counts as top.
    """
    finite = np.isfinite(influence)
    at, values = steps[finite], np.asarray(influence, np.float64)[finite]
    if len(at) == 0:
        none = np.zeros(0)
        return Timing(np.zeros(1), none, none, none, np.zeros(0, np.int64))
    first, stop = int(at.min()), int(at.max()) + 1
    edges = np.linspace(first, stop, min(bins, stop - first) + 1)
    place = np.clip(np.searchsorted(edges, at, side="right") - 1, 0, len(edges) - 2)
    top = top_mask(values[:, None], share)[:, 0]
    count = np.bincount(place, minlength=len(edges) - 1)

    def summed(weights: Float[np.ndarray, " samples"]) -> Float[np.ndarray, " bins"]:
        return np.bincount(place, weights=weights, minlength=len(edges) - 1)

    def parts(weights: Float[np.ndarray, " samples"]) -> Float[np.ndarray, " bins"]:
        total = float(weights.sum())
        return summed(weights) / total if total > 0 else np.full(len(count), np.nan)

    rate = np.divide(
        summed(top.astype(np.float64)), count, out=np.full(len(count), np.nan), where=count > 0
    )
    return Timing(
        edges=edges,
        density=rate / top.mean(),
        mass=parts(np.maximum(values, 0)),
        lowering=parts(np.maximum(-values, 0)),
        n_samples=count,
    )
