"""Co-usage in a form a page can draw: by category of label, and the pairs that stand out."""

import numpy as np
import pandas as pd
from jaxtyping import Float, Shaped

from engine.prism.curvature.sums import CurvatureSums


PAIRS = 200
"""Pairs kept."""
TOGETHER = 30
"""Tokens at which a pair must be active together: below, a cosine of co-usage is chance."""


def category_table(
    sums: CurvatureSums, categories: Shaped[np.ndarray, " prototypes"]
) -> pd.DataFrame:
    """Rows of `curvature_cousage`: both orders of every pair of categories.

    What is expected keeps how much each prototype is active and lets it meet every other alike:
    the mass of (i, j) in proportion to u_i u_j, u_i the sum of its activations.

    Args:
        sums: What was accumulated.
        categories: Category of each prototype's label.
    """
    names, member = np.unique(categories, return_inverse=True)
    belongs = np.eye(len(names))[member]
    usage = sums.usage.matrix
    own = usage.diagonal()
    mass = belongs.T @ usage @ belongs - np.diag(belongs.T @ own)
    active = belongs.T @ sums.activation
    expected = np.outer(active, active) - np.diag(belongs.T @ sums.activation**2)
    sizes = belongs.sum(0)
    pairs = np.outer(sizes, sizes) - np.diag(sizes)
    first, second = (axis.ravel() for axis in np.indices(mass.shape))
    return pd.DataFrame(
        {
            "category": names[first],
            "other": names[second],
            "n_pairs": pairs.ravel().round().astype(np.int64),
            "mass": np.maximum(mass, 0).ravel(),
            "share": _shares(mass),
            "expected_share": _shares(expected),
        }
    )


def _shares(mass: Float[np.ndarray, "rows rows"]) -> Float[np.ndarray, " cells"]:
    total = mass.sum()
    return np.maximum(mass, 0).ravel() / total if total > 0 else np.zeros(mass.size)


def pair_table(sums: CurvatureSums, pairs: int = PAIRS, together: int = TOGETHER) -> pd.DataFrame:
    """Rows of `curvature_pairs`: the largest C_ij / sqrt(C_ii C_jj), each pair once.

    Args:
        sums: What was accumulated.
        pairs: Pairs kept at most.
        together: Tokens at which both must be active.
    """
    usage, counts = sums.usage.matrix, sums.together.matrix
    first, second = np.nonzero(np.triu(counts >= together, k=1))
    own = usage.diagonal()
    cosines = usage[first, second] / np.sqrt(own[first] * own[second])
    order = np.argsort(-cosines, kind="stable")[:pairs]
    return pd.DataFrame(
        {
            "rank": np.arange(len(order)),
            "prototype": first[order],
            "neighbour": second[order],
            "cosine": cosines[order],
            "n_tokens": counts[first[order], second[order]].round().astype(np.int64),
        }
    )
