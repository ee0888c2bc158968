"""Rows of neighbours, parents and trees of a map."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from engine.atlas.pairs import Pairs
from engine.atlas.parents import Retrieval, is_right, parent_metrics, retrieve
from engine.atlas.relations import NO_CLASSIFIER, Result
from engine.atlas.similarity import nearest
from engine.atlas.trees import Tree, documented_tree, neighbour_joining, tree_metrics
from engine.atlas.verdicts import percentiles, verdict
from engine.pipeline.models_relations_reading import MapData


N_NEIGHBOURS = 10
_SMALLEST = 1e-3
"""Nei's similarities below it count as it, so that their logarithm stays finite."""
Similarity = Float[np.ndarray, "models models"]
Half = Int[np.ndarray, " models"]


def neighbour_frame(
    data: MapData, pairs: Pairs, variant: str, similarity: Similarity
) -> pd.DataFrame:
    """Rows of `model_neighbours` of one variant."""
    unrelated = pairs.of(similarity)[~pairs.related]
    ranked = nearest(similarity, min(N_NEIGHBOURS, len(data.names) - 1))
    found = percentiles(similarity, unrelated)
    rows: list[dict[str, Any]] = []
    for model, others in enumerate(ranked):
        for rank, other in enumerate(others):
            percentile = None if found is None else float(found[model, other])
            name, neighbour = data.names[model], data.names[other]
            rows.append(
                {
                    "variant": variant,
                    "model": name,
                    "rank": rank,
                    "neighbour": neighbour,
                    "cosine": float(similarity[model, other]),
                    "percentile_unrelated": percentile,
                    "verdict": verdict(percentile),
                    "known_relation": data.lineage.known(name, neighbour),
                }
            )
    return pd.DataFrame(rows)


def _retrieved(data: MapData, pairs: Pairs, similarity: Similarity, half: Half) -> list[Retrieval]:
    place = {name: number for number, name in enumerate(data.names)}
    cards = [data.lineage.by_name[name] for name in data.names]
    parents = [
        [place[parent] for parent in card.parents if parent in place and card.copies_weights]
        for card in cards
    ]
    bases = np.array([card.is_base for card in cards])
    return retrieve(similarity, parents, bases, pairs.unit, half)


def parent_frame(
    data: MapData, pairs: Pairs, method: str, similarity: Similarity, half: Half
) -> pd.DataFrame:
    """Rows of `model_parents` of one method."""
    rows: list[dict[str, Any]] = []
    for found in _retrieved(data, pairs, similarity, half):
        card = data.lineage.by_name[data.names[found.model]]
        rows.append(
            {
                "method": method,
                "model": card.name,
                "predicted": "" if found.predicted is None else data.names[found.predicted],
                "score": found.score,
                "p_value": found.p_value,
                "parents": list(card.parents),
                "roots": list(card.roots),
                "correct": is_right(found, data.names, data.lineage),
                "rank_of_parent": found.rank_of_parent,
            }
        )
    frame = pd.DataFrame(rows)
    return frame.astype({"rank_of_parent": "Int32", "correct": "boolean"})


def parent_results(
    data: MapData, pairs: Pairs, similarity: Similarity, half: Half
) -> Iterator[Result]:
    """How well parents are found by one method."""
    found = _retrieved(data, pairs, similarity, half)
    for metric, (value, n) in parent_metrics(found, data.names, data.lineage).items():
        yield Result(NO_CLASSIFIER, "parents", metric, value, n)


def tree_of(method: str, similarity: Similarity) -> tuple[Tree, Similarity]:
    """The tree of a method, and the distances it was made of: -log S of PhyloLM, else 1 - s."""
    if method == "phylolm":
        distances = -np.log(np.clip(similarity, _SMALLEST, 1))
    else:
        distances = 1 - similarity
    distances = (distances + distances.T) / 2
    np.fill_diagonal(distances, 0)
    return neighbour_joining(distances), distances


def tree_frame(data: MapData, method: str, similarity: Similarity) -> pd.DataFrame:
    """Rows of `model_trees` of one method."""
    tree, _ = tree_of(method, similarity)
    n = len(tree.parent)
    names = [*data.names, *[""] * (n - tree.n_leaves)]
    above = pd.Series(tree.parent).where(tree.parent >= 0).astype("Int32")
    return pd.DataFrame(
        {
            "variant": method,
            "node": range(n),
            "parent": above,
            "length": tree.length,
            "model": names,
        }
    )


def tree_results(data: MapData, method: str, similarity: Similarity) -> Iterator[Result]:
    """How like the documented tree the tree of a method is; nothing of fewer than four models."""
    if len(data.names) < 4:
        return
    place = {name: number for number, name in enumerate(data.names)}
    parents: list[int | None] = []
    for name in data.names:
        card = data.lineage.by_name[name]
        known = [place[p] for p in card.parents if p in place and card.copies_weights]
        parents.append(known[0] if known else None)
    tree, distances = tree_of(method, similarity)
    metrics = tree_metrics(tree, documented_tree(parents), distances)
    for metric, (value, n) in metrics.items():
        yield Result(NO_CLASSIFIER, "tree", metric, value, n)
