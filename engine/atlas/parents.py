"""Which base a model goes back to, or that it goes back to none.

Candidates are the bases of the map, all of them but itself. How alike unrelated models and bases
are, among the other half of the roots, says how surprising the most alike base is; Holm's
correction pays for having looked at all of them. The decision follows model provenance testing;
the similarity and the null distribution are ours.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from engine.atlas.lineage import Lineage


LEVEL = 0.05
"""Corrected p-value up to which a base is named."""


@dataclass(frozen=True)
class Retrieval:
    """What a method says of one model."""

    model: int
    predicted: int | None
    """Base it is taken to go back to; None: none."""
    score: float
    p_value: float
    rank_of_parent: int | None
    """Rank of its most alike parent among all others, 1 first; None where none is there."""


def retrieve(
    similarity: Float[np.ndarray, "models models"],
    parents: list[list[int]],
    is_base: Bool[np.ndarray, " models"],
    unit: Int[np.ndarray, " models"],
    half: Int[np.ndarray, " models"],
) -> list[Retrieval]:
    """The likeliest base of every model, and where its parents rank.

    Args:
        similarity: Higher is more alike.
        parents: Places of each model's documented parents.
        is_base: Which models are bases.
        unit: Unit of each model; models of different units are unrelated.
        half: Half of each model, 0 or 1; a model is judged by unrelated pairs of the other.
    """
    nulls = [_null(similarity, is_base, unit, half == other) for other in (1, 0)]
    return [
        _of_model(similarity[model], model, parents[model], is_base, nulls[half[model]])
        for model in range(len(similarity))
    ]


def holm(p_values: Float[np.ndarray, " tests"]) -> Float[np.ndarray, " tests"]:
    """P-values corrected for their number by Holm's step-down rule."""
    order = np.argsort(p_values, kind="stable")
    count = len(p_values)
    stepped = np.maximum.accumulate(p_values[order] * np.arange(count, 0, -1))
    found = np.empty(count)
    found[order] = np.minimum(1.0, stepped)
    return found


def _null(
    similarity: Float[np.ndarray, "models models"],
    is_base: Bool[np.ndarray, " models"],
    unit: Int[np.ndarray, " models"],
    own: Bool[np.ndarray, " models"],
) -> Float[np.ndarray, " pairs"]:
    """How alike unrelated models and bases of one half are, in rising order."""
    apart = (unit[:, None] != unit[None]) & own[:, None] & (own & is_base)[None]
    return np.sort(similarity[apart])


def _of_model(
    row: Float[np.ndarray, " models"],
    model: int,
    parents: list[int],
    is_base: Bool[np.ndarray, " models"],
    null: Float[np.ndarray, " pairs"],
) -> Retrieval:
    candidates = np.flatnonzero(is_base & (np.arange(len(row)) != model))
    rank = None
    if parents:
        best = max(row[parent] for parent in parents)
        others = np.delete(row, model)
        rank = int((others > best).sum()) + 1
    if len(candidates) == 0:
        return Retrieval(model, None, 0.0, 1.0, rank)
    scores = row[candidates]
    above = len(null) - np.searchsorted(null, scores, side="left")
    corrected = holm((1 + above) / (1 + len(null)))
    top = int(np.argmax(scores))
    named = int(candidates[top]) if corrected[top] <= LEVEL else None
    return Retrieval(model, named, float(scores[top]), float(corrected[top]), rank)


def is_right(found: Retrieval, names: tuple[str, ...], lineage: Lineage) -> bool | None:
    """Whether the predicted base is documented, or none is named where none is in the map.

    None where the bases of the model are not documented.
    """
    card = lineage.by_name[names[found.model]]
    if not card.roots:
        return None
    there = (set(card.roots) - {card.name}) & set(names)
    return not there if found.predicted is None else names[found.predicted] in there


def parent_metrics(
    found: list[Retrieval], names: tuple[str, ...], lineage: Lineage
) -> dict[str, tuple[float, int]]:
    """Measures of retrieval, each with the number of models it is over.

    recall_at_1 and mean_reciprocal_rank: of the parent among all other models, over models with a
    parent in the map. precision: of named bases; recall: of models with a base in the map, the
    share whose base is named; no_parent_recall: of bases, the share for which none is named.
    Models whose bases are not documented are left out.
    """
    found = [r for r in found if lineage.by_name[names[r.model]].roots]
    ranks = np.array([r.rank_of_parent for r in found if r.rank_of_parent is not None])
    cards = [lineage.by_name[names[r.model]] for r in found]
    there = set(names)
    right = np.array([bool(is_right(r, names, lineage)) for r in found])
    named = np.array([r.predicted is not None for r in found])
    bases = np.array([card.is_base for card in cards])
    made = np.array([not card.is_base and bool(set(card.roots) & there) for card in cards])

    def share(hits: np.ndarray, of: np.ndarray) -> tuple[float, int]:
        count = int(of.sum())
        return (float((hits & of).sum()) / count if count else 0.0, count)

    n = len(ranks)
    return {
        "recall_at_1": (float((ranks == 1).mean()) if n else 0.0, n),
        "mean_reciprocal_rank": (float((1 / ranks).mean()) if n else 0.0, n),
        "precision": share(right, named),
        "recall": share(right, made),
        "no_parent_recall": share(~named, bases),
    }
