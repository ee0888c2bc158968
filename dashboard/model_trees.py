"""Trees of models as a page draws them: places, clades of a lineage, wrong edges; pure."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int


MIXED = ""
"""Lineage of a clade whose models go back to several roots, or to unknown ones."""


@dataclass(frozen=True)
class ModelTree:
    """A rooted tree; nodes are rows of its table, leaves carry a model."""

    models: tuple[str, ...]
    """Model of each node; empty for inner ones."""
    parent: Int[np.ndarray, " nodes"]
    """Row of the node above; -1 for the top."""
    height: Float[np.ndarray, " nodes"]
    """Length of the way from the top."""
    line: Float[np.ndarray, " nodes"]
    """Place among leaves, from 0."""
    lineage: tuple[str, ...]
    """Root that every leaf below goes back to; MIXED where they do not agree."""
    wrong: Bool[np.ndarray, " nodes"]
    """Whether the edge above a node puts it apart from a larger clade of its lineage."""

    @property
    def order(self) -> list[str]:
        """Models in the order of the leaves."""
        rows = [(self.line[k], name) for k, name in enumerate(self.models) if name]
        return [name for _, name in sorted(rows)]


def tree_of(rows: pd.DataFrame, roots: Mapping[str, str]) -> ModelTree:
    """The tree of a table, with what is right and wrong of it.

    A clade is of one lineage where all its models go back to the same root. Where the models of a
    root make several such clades, each but the largest is apart from its own: the edge above it is
    wrong. That counts what would have to be moved, and depends on where the tree is rooted only
    for the lineage that lies around the top.

    Args:
        rows: node, parent, length and model of one tree; every parent is a node of it.
        roots: Root of each model; empty where unknown.
    """
    place = {int(node): k for k, node in enumerate(rows["node"])}
    parent = np.array(
        [-1 if pd.isna(above) else place[int(above)] for above in rows["parent"]], dtype=np.int64
    )
    models = tuple(str(model) for model in rows["model"])
    children: dict[int, list[int]] = defaultdict(list)
    for node, above in enumerate(parent):
        if above >= 0:
            children[int(above)].append(node)
    down = _from_the_top(parent, children)
    lineage = _lineages(models, down, children, roots)
    height, line = _places(rows["length"].to_numpy(np.float64), parent, down, children)
    return ModelTree(
        models, parent, height, line, lineage, _wrong(models, parent, down, children, lineage)
    )


def _from_the_top(parent: np.ndarray, children: Mapping[int, list[int]]) -> list[int]:
    """Nodes, each after the one above it."""
    found = [int(k) for k in np.flatnonzero(parent < 0)]
    for node in found:  # grows while it is read
        found.extend(children.get(node, ()))
    return found


def _lineages(
    models: tuple[str, ...],
    down: list[int],
    children: Mapping[int, list[int]],
    roots: Mapping[str, str],
) -> tuple[str, ...]:
    found = [MIXED] * len(models)
    for node in reversed(down):
        below = children.get(node)
        if not below:
            found[node] = roots.get(models[node], MIXED)
            continue
        names = {found[child] for child in below}
        found[node] = names.pop() if len(names) == 1 else MIXED
    return tuple(found)


def _places(
    length: np.ndarray, parent: np.ndarray, down: list[int], children: Mapping[int, list[int]]
) -> tuple[np.ndarray, np.ndarray]:
    """Way from the top, and place among leaves; of two children the larger stands first."""
    n_leaves = np.ones(len(parent), dtype=np.int64)
    for node in reversed(down):
        if node in children:
            n_leaves[node] = sum(n_leaves[child] for child in children[node])
    height, first = np.zeros(len(parent)), np.zeros(len(parent))
    for node in down:
        start = first[node]
        for child in sorted(children.get(node, ()), key=lambda k: (-n_leaves[k], k)):
            height[child] = height[node] + max(0.0, length[child])
            first[child] = start
            start += n_leaves[child]
    line = first.copy()
    for node in reversed(down):
        if node in children:
            line[node] = np.mean([line[child] for child in children[node]])
    return height, line


def _wrong(
    models: tuple[str, ...],
    parent: np.ndarray,
    down: list[int],
    children: Mapping[int, list[int]],
    lineage: tuple[str, ...],
) -> np.ndarray:
    """Edges above all but the largest of the clades that a root's models make."""
    size = np.array([1 if name else 0 for name in models])
    for node in reversed(down):
        size[node] += sum(size[child] for child in children.get(node, ()))
    pieces: dict[str, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for node in down:
        above = int(parent[node])
        if lineage[node] != MIXED and (above < 0 or lineage[above] == MIXED):
            pieces[lineage[node]][above].append(node)  # joined at one node, they are together
    wrong = np.zeros(len(models), dtype=bool)
    for own in pieces.values():
        largest = max(own, key=lambda above: (sum(size[k] for k in own[above]), -above))
        wrong[[k for above, nodes in own.items() if above != largest for k in nodes]] = True
    return wrong


def clustered(cosines: Float[np.ndarray, "models models"]) -> list[int]:
    """An order in which alike models stand together (average linkage), where there is no tree."""
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import squareform

    if len(cosines) < 3:
        return list(range(len(cosines)))
    apart = np.clip(1 - cosines, 0, None)
    np.fill_diagonal(apart, 0)
    ways = linkage(
        squareform((apart + apart.T) / 2, checks=False), "average", optimal_ordering=True
    )
    return [int(k) for k in leaves_list(ways)]
