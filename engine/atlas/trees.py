"""Trees of models: neighbour joining, and how much of the documented tree it finds.

    Q(i, j) = (n - 2) d(i, j) - Σ_k d(i, k) - Σ_k d(j, k)

The pair of smallest Q is joined again and again (Saitou and Nei 1987). With d = 1 - cosine, half
the squared distance of unit vectors, distances add up along a tree whose edges are independent
steps; that choice is ours. An edge that comes out negative counts as 0.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from jaxtyping import Float, Int
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, dijkstra


@dataclass(frozen=True)
class Tree:
    """A rooted tree; leaves are nodes 0 to `n_leaves - 1`."""

    parent: Int[np.ndarray, " nodes"]
    """Node above each node; -1 for the top."""
    length: Float[np.ndarray, " nodes"]
    """Length of the edge to it; 0 for the top."""
    n_leaves: int

    @cached_property
    def paths(self) -> list[list[int]]:
        """Nodes from each leaf up to the top."""
        found: list[list[int]] = []
        for leaf in range(self.n_leaves):
            path = [leaf]
            while self.parent[path[-1]] >= 0:
                path.append(int(self.parent[path[-1]]))
            found.append(path)
        return found

    @cached_property
    def clades(self) -> frozenset[frozenset[int]]:
        """Leaves below every node that has two or more."""
        below: dict[int, set[int]] = {}
        for leaf, path in enumerate(self.paths):
            for node in path[1:]:
                below.setdefault(node, set()).add(leaf)
        return frozenset(frozenset(leaves) for leaves in below.values() if len(leaves) > 1)

    @cached_property
    def shared(self) -> Int[np.ndarray, "leaves leaves"]:
        """Nodes that the paths of two leaves to the top have in common."""
        found = np.zeros((self.n_leaves, self.n_leaves), np.int64)
        sets = [set(path) for path in self.paths]
        for a, b in combinations(range(self.n_leaves), 2):
            found[a, b] = found[b, a] = len(sets[a] & sets[b])
        return found

    @cached_property
    def distances(self) -> Float[np.ndarray, "leaves leaves"]:
        """Length of the path between two leaves."""
        below = np.flatnonzero(self.parent >= 0)
        edges = [(int(k), int(self.parent[k]), float(self.length[k])) for k in below]
        found = dijkstra(_graph(edges), directed=False, indices=np.arange(self.n_leaves))
        return found[:, : self.n_leaves]


def neighbour_joining(distances: Float[np.ndarray, "leaves leaves"]) -> Tree:
    """The tree that neighbour joining makes, its top in the middle of its longest path.

    Args:
        distances: Symmetric, of three or more leaves; zeros on the diagonal.
    """
    n = len(distances)
    edges: list[tuple[int, int, float]] = []
    active = list(range(n))
    left = np.array(distances, dtype=np.float64)
    while len(active) > 2:
        a, b, first, second = _next_pair(left)
        node = n + (n - len(active))
        edges += [(active[a], node, first), (active[b], node, second)]
        rest = [k for k in range(len(active)) if k not in (a, b)]
        joined = (left[a, rest] + left[b, rest] - left[a, b]) / 2
        left = np.block([[left[np.ix_(rest, rest)], joined[:, None]], [joined, np.zeros(1)]])
        active = [active[k] for k in rest] + [node]
    edges.append((active[0], active[1], float(left[0, 1])))
    return _rooted(n, [(a, b, max(0.0, length)) for a, b, length in edges])


def _next_pair(left: Float[np.ndarray, "active active"]) -> tuple[int, int, float, float]:
    """The pair to join and the lengths of its two edges."""
    m = len(left)
    sums = left.sum(1)
    criterion = (m - 2) * left - sums[:, None] - sums[None]
    criterion[np.tril_indices(m)] = np.inf
    a, b = (int(place) for place in np.unravel_index(criterion.argmin(), criterion.shape))
    first = left[a, b] / 2 + (sums[a] - sums[b]) / (2 * (m - 2))
    return a, b, float(first), float(left[a, b] - first)


def _rooted(n_leaves: int, edges: list[tuple[int, int, float]]) -> Tree:
    """A tree of edges with a new top in the middle of the longest path between leaves."""
    lengths, before = dijkstra(
        _graph(edges), directed=False, indices=np.arange(n_leaves), return_predecessors=True
    )
    between = lengths[:, :n_leaves].copy()
    np.fill_diagonal(between, -1)
    start, end = (int(place) for place in np.unravel_index(between.argmax(), between.shape))
    far, half, below = lengths[start], between[start, end] / 2, end
    while far[before[start, below]] > half:
        below = int(before[start, below])
    above, top = int(before[start, below]), len(lengths[0])
    kept = [edge for edge in edges if {edge[0], edge[1]} != {above, below}]
    kept += [(below, top, far[below] - half), (above, top, half - far[above])]
    return _hung(kept, top, n_leaves)


def _hung(edges: list[tuple[int, int, float]], top: int, n_leaves: int) -> Tree:
    _, above = breadth_first_order(_graph(edges), top, directed=False)
    parent = np.where(above < 0, -1, above).astype(np.int64)
    known = {frozenset((a, b)): length for a, b, length in edges}
    length = [known[frozenset((k, int(p)))] if p >= 0 else 0.0 for k, p in enumerate(parent)]
    return Tree(parent, np.array(length, np.float64), n_leaves)


def _graph(edges: list[tuple[int, int, float]]) -> csr_array:
    """Edges as scipy reads them; sparse, so that an edge of length 0 stays an edge."""
    first, second, lengths = zip(*edges, strict=True)
    n = max(*first, *second) + 1
    return csr_array((np.array(lengths, np.float64), (first, second)), shape=(n, n))


def documented_tree(parents: list[int | None]) -> Tree:
    """The documented tree: every model a leaf at the node that stands for it and what it became.

    A model without a parent hangs on the top, a merge on its first parent. Every edge between
    nodes of models has length 1, that between a model and its node 0.

    Args:
        parents: Place of each model's parent; None without one.
    """
    n = len(parents)
    above = [2 * n if parent is None else n + parent for parent in parents]
    parent = np.array([*range(n, 2 * n), *above, -1], np.int64)
    length = np.array([0.0] * n + [1.0] * n + [0.0])
    return Tree(parent, length, n)


def tree_metrics(
    found: Tree,
    known: Tree,
    distances: Float[np.ndarray, "leaves leaves"],
    n_triplets: int = 20_000,
    seed: int = 0,
) -> dict[str, tuple[float, int]]:
    """How like the documented tree a tree is, each measure with what it is over.

    triplets: of drawn triplets that the documented tree resolves, the share with the same closest
    pair, a third by chance. splits_found: of the documented families, the share that an edge of
    the tree cuts off. robinson_foulds: splits of only one of the trees over splits of both,
    0 for equal trees. cophenetic: correlation of path lengths in both. kept_distances: correlation
    of path lengths with the distances the tree was made of.
    """
    upper = np.triu_indices(found.n_leaves, 1)
    right, count = _triplets(found, known, n_triplets, seed)
    mine, theirs = _splits(found), _splits(known)
    common, total = len(mine & theirs), len(mine) + len(theirs)
    lengths = found.distances[upper]
    return {
        "triplets": (right, count),
        "splits_found": (common / max(1, len(theirs)), len(theirs)),
        "robinson_foulds": ((total - 2 * common) / max(1, total), total),
        "cophenetic": (_correlation(lengths, known.distances[upper]), len(lengths)),
        "kept_distances": (_correlation(lengths, distances[upper]), len(lengths)),
    }


def _triplets(found: Tree, known: Tree, n: int, seed: int) -> tuple[float, int]:
    generator = np.random.default_rng([seed, 6])
    drawn = generator.integers(found.n_leaves, size=(n, 3))
    a, b, c = drawn[(np.diff(np.sort(drawn, 1), axis=1) > 0).all(1)].T
    depths = [np.stack([t.shared[a, b], t.shared[a, c], t.shared[b, c]]) for t in (found, known)]
    mine, theirs = (np.sort(depth, 0) for depth in depths)
    resolved = theirs[2] > theirs[1]
    same = (depths[0].argmax(0) == depths[1].argmax(0)) & (mine[2] > mine[1])
    return float((same & resolved).sum() / max(1, resolved.sum())), int(resolved.sum())


def _splits(tree: Tree) -> set[frozenset[int]]:
    """Sides without leaf 0 of all edges that leave two or more leaves on both."""
    everything = frozenset(range(tree.n_leaves))
    sides = {clade if 0 not in clade else everything - clade for clade in tree.clades}
    return {side for side in sides if 2 <= len(side) <= tree.n_leaves - 2}


def _correlation(a: Float[np.ndarray, " pairs"], b: Float[np.ndarray, " pairs"]) -> float:
    if a.std() == 0 or b.std() == 0:
        return 0.0
    return float(np.corrcoef(a, b)[0, 1])
