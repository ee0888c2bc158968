"""How much embeddings depend on how many probes, and which, were asked.

For so many probes several sets are drawn. `probe_count` holds the cosines that a set gives against
those of all probes; `convergence` holds those of two disjoint sets of one size against each other,
whose difference falls with the square root of the size where the probes are draws from a common
source (ABLE, arXiv 2606.07524, states that embeddings concentrate; it gives no rate).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from engine.atlas.similarity import (
    Cosines,
    agreement,
    cosines,
    lineage_auc,
    neighbours_kept,
    pairs,
)


NEIGHBOURS = 10
"""Neighbours of a model that are compared."""


@dataclass(frozen=True)
class Drawn:
    """One measure of one draw."""

    study: str
    """probe_count or convergence."""
    n_probes: int
    """Probes in the set."""
    measure: str
    """agreement, neighbours_kept, lineage_auc or half_gap."""
    value: float
    """Its value."""


def probe_sizes(n_probes: int, smallest: int = 8) -> list[int]:
    """Doubling numbers of probes from the smallest, and all of them."""
    sizes: list[int] = []
    size = min(smallest, n_probes)
    while size < n_probes:
        sizes.append(size)
        size *= 2
    return [*sizes, n_probes]


def probe_curves(
    vectors: Float[np.ndarray, "models columns"],
    probe_of: Int[np.ndarray, " columns"],
    related: Bool[np.ndarray, "models models"],
    n_draws: int = 20,
    seed: int = 0,
) -> Iterator[Drawn]:
    """Measures of sets of probes of growing size.

    Args:
        vectors: Attributions of models, not projected.
        probe_of: Probe of each column, counted from 0.
        related: Whether pairs share a root.
        n_draws: Sets drawn of each size; all probes are one set.
        seed: Seed of the draws.
    """
    n_probes = int(probe_of.max()) + 1
    usual = cosines(vectors)
    for size in probe_sizes(n_probes):
        for draw in range(1 if size == n_probes else n_draws):
            order = np.random.default_rng([seed, size, draw]).permutation(n_probes)
            first = _of_probes(vectors, probe_of, order[:size])
            yield Drawn("probe_count", size, "agreement", agreement(usual, first))
            kept = neighbours_kept(usual, first, NEIGHBOURS)
            yield Drawn("probe_count", size, "neighbours_kept", kept)
            auc = lineage_auc(first, related)
            if auc is not None:
                yield Drawn("probe_count", size, "lineage_auc", auc)
            if 2 * size <= n_probes:
                second = _of_probes(vectors, probe_of, order[size : 2 * size])
                yield Drawn("convergence", size, "half_gap", half_gap(first, second))


def half_gap(first: Cosines, second: Cosines) -> float:
    """Root mean square difference of the pairs' cosines."""
    return float(np.sqrt(((pairs(first) - pairs(second)) ** 2).mean()))


def decay(sizes: Float[np.ndarray, " n"], gaps: Float[np.ndarray, " n"]) -> float:
    """Exponent p of the power law gap = c · size^p that fits best in logarithms.

    -1/2 where the gap is that of means of independent draws.
    """
    return float(np.polyfit(np.log(sizes), np.log(gaps), 1)[0])


def _of_probes(
    vectors: Float[np.ndarray, "models columns"],
    probe_of: Int[np.ndarray, " columns"],
    chosen: Int[np.ndarray, " chosen"],
) -> Cosines:
    return cosines(vectors[:, np.isin(probe_of, chosen)])
