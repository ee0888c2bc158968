"""What a projection to few dimensions, and the seed of its signs, do to distances and cosines."""

from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Bool, Float, UInt64

from engine.able.projection import project
from engine.atlas.probe_curves import NEIGHBOURS
from engine.atlas.similarity import agreement, cosines, lineage_auc, neighbours_kept, unit_rows


DIMENSIONS = (32, 64, 128, 256, 512, 1024)
"""Dimensions that are tried."""


def projected(
    vectors: Float[np.ndarray, "models columns"],
    keys: UInt64[np.ndarray, " columns"],
    dimensions: Sequence[int],
    seed: int,
) -> dict[int, Float[np.ndarray, "models dimensions"]]:
    """Projections of vectors of length 1, those to fewer dimensions cut from that to the most.

    Signs of fewer dimensions are the first of more, so each is what `project` gives, but for its
    rounding.
    """
    most = max(dimensions)
    whole = project(vectors, keys, most, seed).astype(np.float64)
    return {k: whole[:, :k] * np.sqrt(most / k) for k in dimensions}


def relative_error(
    vectors: Float[np.ndarray, "models d"], short: Float[np.ndarray, "models k"]
) -> float:
    """Root mean square relative error of squared distances; sqrt(2 / k) is expected."""
    before, after = (_squared_distances(rows) for rows in (vectors, short))
    apart = before > 1e-9
    return float(np.sqrt(((after[apart] / before[apart] - 1) ** 2).mean()))


def dimension_measures(
    vectors: Float[np.ndarray, "models columns"],
    keys: UInt64[np.ndarray, " columns"],
    related: Bool[np.ndarray, "models models"],
    seeds: Sequence[int],
    dimensions: Sequence[int] = DIMENSIONS,
) -> Iterator[tuple[int | None, str, float]]:
    """Dimensions (None: no projection), measure and value, one for each seed."""
    rows = unit_rows(vectors)
    usual = cosines(rows)
    whole = lineage_auc(usual, related)
    if whole is not None:
        yield None, "lineage_auc", whole
    for seed in seeds:
        for k, short in projected(rows, keys, dimensions, seed).items():
            found = cosines(short)
            yield k, "relative_error", relative_error(rows, short)
            yield k, "agreement", agreement(usual, found)
            yield k, "neighbours_kept", neighbours_kept(usual, found, NEIGHBOURS)
            auc = lineage_auc(found, related)
            if auc is not None:
                yield k, "lineage_auc", auc


def seed_agreements(
    vectors: Float[np.ndarray, "models columns"],
    keys: UInt64[np.ndarray, " columns"],
    n_dimensions: int,
    seeds: Sequence[int],
) -> Iterator[tuple[str, float]]:
    """Measures of every projection against that of the first seed."""
    rows = unit_rows(vectors)
    first, *others = (cosines(project(rows, keys, n_dimensions, seed)) for seed in seeds)
    for other in others:
        yield "agreement", agreement(first, other)
        yield "neighbours_kept", neighbours_kept(first, other, NEIGHBOURS)


def _squared_distances(rows: Float[np.ndarray, "models d"]) -> Float[np.ndarray, " pairs"]:
    products = rows @ rows.T
    own = np.diag(products)
    square = own[:, None] + own[None, :] - 2 * products
    return square[np.triu_indices(len(rows), 1)]
