"""How far heads share their most influential samples."""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from scipy.stats import rankdata

from engine.mda.tails import TOP_SHARE


@dataclass(frozen=True)
class Overlaps:
    """Every pair of heads.

    overlap: share of the top samples of the one that are top of the other, as many of each; chance
        is the share that counts as top.
    spearman: rank correlation over all samples; 0 where a head's influence does not vary.
    n_samples: samples that every head has a finite score of.
    """

    overlap: Float[np.ndarray, "heads heads"]
    spearman: Float[np.ndarray, "heads heads"]
    n_samples: int


def head_overlaps(
    influence: Float[np.ndarray, "samples heads"], share: float = TOP_SHARE
) -> Overlaps:
    """Overlap of the samples that raise two heads most, and rank correlation.

    Samples without a finite score of some head count for none. Without two samples left, all is 0.

    Args:
        influence: by sample and head, positive where the sample raises the head's score.
        share: share of the samples that counts as top; their number rounds up.
    """
    values = np.asarray(influence, np.float64)
    values = values[np.isfinite(values).all(axis=1)]
    n, heads = values.shape
    if n < 2:
        return Overlaps(np.zeros((heads, heads)), np.zeros((heads, heads)), n)
    top = top_mask(values, share).astype(np.float64)
    ranks = rankdata(values, axis=0)
    ranks -= ranks.mean(axis=0)
    norms = np.sqrt((ranks**2).sum(axis=0))
    units = np.divide(ranks, norms, out=np.zeros_like(ranks), where=norms > 0)
    return Overlaps(top.T @ top / top[:, 0].sum(), units.T @ units, n)


def top_mask(
    values: Float[np.ndarray, "samples heads"], share: float = TOP_SHARE
) -> Bool[np.ndarray, "samples heads"]:
    """Each head's largest values, whose number rounds up; of equal ones the first.

    Args:
        values: finite.
        share: share of the samples.
    """
    count = math.ceil(share * len(values) - 1e-9)
    order = np.argsort(-values, axis=0, kind="stable")[:count]
    found = np.zeros(values.shape, bool)
    np.put_along_axis(found, order, True, axis=0)
    return found
