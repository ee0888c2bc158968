"""Rows of the table of stability: what passes, probes and projections did to embeddings."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int, UInt64

from engine.atlas.dimensions import dimension_measures, seed_agreements
from engine.atlas.probe_curves import probe_curves
from engine.atlas.similarity import agreement, cosines, lineage_auc, pairs, unit_rows
from engine.pipeline.models_stability_passes import USUAL, PassResults


Row = dict[str, Any]
SEEDS = tuple(range(8))
"""Seeds of projections that are compared."""
_SAME = 1e-6


@dataclass(frozen=True)
class MapVectors:
    """Attributions of all models of a map, not projected."""

    models: tuple[str, ...]
    """Names."""
    words: Float[np.ndarray, "models columns"]
    """Spaces stripped."""
    paper_words: Float[np.ndarray, "models columns"]
    """By the paper's rule for spaces."""
    probe_of: Int[np.ndarray, " columns"]
    """Probe of each column."""
    keys: UInt64[np.ndarray, " columns"]
    """Names of the columns."""
    related: Bool[np.ndarray, "models models"]
    """Whether two models share a root; nowhere where no lineage is documented."""
    tokenizers: tuple[str, ...]
    """Tokenizers; empty where unknown."""
    n_dimensions: int
    """Dimensions of the map's embeddings."""


def row(study: str, setting: str, x: float | None, measure: str, values: Iterable[float]) -> Row:
    """A row: mean, lowest and highest of draws."""
    found = np.array(list(values), dtype=np.float64)
    return _row(study, setting, x, measure, float(found.mean()), found)


def median_row(
    study: str, setting: str, x: float | None, measure: str, values: Float[np.ndarray, " models"]
) -> Row:
    """A row: median, lowest and highest of models."""
    return _row(study, setting, x, measure, float(np.median(values)), values)


def _row(
    study: str, setting: str, x: float | None, measure: str, value: float, found: np.ndarray
) -> Row:
    several = len(found) > 1
    return {
        "study": study,
        "setting": setting,
        "x": x,
        "measure": measure,
        "value": value,
        "low": float(found.min()) if several else None,
        "high": float(found.max()) if several else None,
        "n": len(found),
    }


def probe_rows(given: MapVectors) -> Iterator[Row]:
    """How embeddings settle as probes are added."""
    drawn: dict[tuple[str, int, str], list[float]] = {}
    for each in probe_curves(given.words, given.probe_of, given.related):
        key = (each.study, each.n_probes, each.measure)
        drawn.setdefault(key, []).append(each.value)
    for (study, n, measure), values in drawn.items():
        yield row(study, str(n), float(n), measure, values)


def projection_rows(given: MapVectors) -> Iterator[Row]:
    """What few dimensions, and other seeds, do."""
    found: dict[tuple[int | None, str], list[float]] = {}
    for k, measure, value in dimension_measures(given.words, given.keys, given.related, SEEDS):
        found.setdefault((k, measure), []).append(value)
    for (k, measure), values in found.items():
        setting, x = ("none", None) if k is None else (str(k), float(k))
        yield row("dimension", setting, x, measure, values)
        if measure == "relative_error" and k is not None:
            yield row("dimension", setting, x, "expected", [math.sqrt(2 / k)])
    by_seed: dict[str, list[float]] = {}
    for measure, value in seed_agreements(given.words, given.keys, given.n_dimensions, SEEDS):
        by_seed.setdefault(measure, []).append(value)
    for measure, values in by_seed.items():
        yield row("projector_seed", "other seeds", None, measure, values)


def space_rows(given: MapVectors) -> Iterator[Row]:
    """What the rule for spaces does."""
    own, paper = unit_rows(given.words), unit_rows(given.paper_words)
    yield median_row("space_rule", "paper", None, "cosine", (own * paper).sum(1))
    squares = {"stripped": cosines(own), "paper": cosines(paper)}
    alike = agreement(squares["stripped"], squares["paper"])
    yield row("space_rule", "paper", None, "agreement", [alike])
    for name, square in squares.items():
        auc = lineage_auc(square, given.related)
        if auc is not None:
            yield row("space_rule", name, None, "lineage_auc", [auc])
        gap = tokenizer_gap(square, given.related, given.tokenizers)
        if gap is not None:
            yield row("space_rule", name, None, "tokenizer_gap", [gap])


def tokenizer_gap(
    square: Float[np.ndarray, "models models"],
    related: Bool[np.ndarray, "models models"],
    tokenizers: Sequence[str],
) -> float | None:
    """Mean cosine of unrelated pairs of one tokenizer less that of pairs of two.

    Returns:
        The difference; None where no lineage or tokenizer is known, or one kind has no pairs.
    """
    known = np.array([bool(name) for name in tokenizers])
    if not related.any():
        return None
    names = np.array(tokenizers)
    same = pairs((names[:, None] == names[None, :]).astype(np.float64)) > 0
    both = pairs((known[:, None] & known[None, :]).astype(np.float64)) > 0
    apart = (pairs(related.astype(np.float64)) == 0) & both
    values = pairs(square)
    if not (apart & same).any() or not (apart & ~same).any():
        return None
    return float(values[apart & same].mean() - values[apart & ~same].mean())


def pass_rows(
    found: PassResults, pool: Float[np.ndarray, "models columns"], names: Sequence[str]
) -> Iterator[Row]:
    """What a pass did to the sampled models.

    Args:
        found: Its vectors.
        pool: Usual vectors of all models of the map over the same columns.
        names: Their names.
    """
    each = found.each
    start = (each.study, each.setting, each.x)
    own, usual = unit_rows(found.vectors), unit_rows(found.usual)
    distances = np.linalg.norm(own - usual, axis=1)
    yield median_row(*start, "cosine", (own * usual).sum(1))
    yield median_row(*start, "distance", distances)
    if each.study == "noise" and each.x:
        yield median_row(*start, "quotient", distances / each.x)
    if len(own) > 2:
        alike = agreement(cosines(usual), cosines(own))
        yield row(*start, "agreement", [alike]) | {"n": len(own)}
    if each.against == USUAL:
        hits = finds_itself(own, unit_rows(pool), found.models, names)
        share = _row(*start, "finds_itself", float(hits.mean()), hits[:1])
        yield share | {"n": len(hits)}


def finds_itself(
    own: Float[np.ndarray, "some columns"],
    pool: Float[np.ndarray, "models columns"],
    models: Sequence[str],
    names: Sequence[str],
) -> Float[np.ndarray, " some"]:
    """1 where a vector's own model is the nearest of all, or ties with the nearest; else 0.

    Args:
        own: Vectors of length 1 of some models.
        pool: Usual vectors of length 1 of all models.
        models: Names of the first.
        names: Names of all.
    """
    alike = own @ pool.T
    places = [list(names).index(model) for model in models]
    mine = alike[np.arange(len(own)), places]
    return (mine >= alike.max(1) - _SAME).astype(np.float64)


def homogeneity_rows(catalogue: pd.DataFrame) -> Iterator[Row]:
    """The product of input and gradient at the embedding, by the module that is attributed."""
    for hook, rows in catalogue.dropna(subset=["homogeneity"]).groupby("hook"):
        values = rows["homogeneity"].to_numpy(dtype=np.float64)
        yield median_row("hook", str(hook), None, "homogeneity", values)


def rewritten_rows(given: MapVectors, cards: pd.DataFrame) -> Iterator[Row]:
    """Distance of models of the map that compute their parent's function with other weights."""
    rows = unit_rows(given.words)
    places = {name: place for place, name in enumerate(given.models)}
    of_rewritten = cards[cards["relation"] == "rewritten"].to_dict("records")
    edges = [(card["model"], card["parents"][0]) for card in of_rewritten if len(card["parents"])]
    found = [
        float(np.linalg.norm(rows[places[child]] - rows[places[parent]]))
        for child, parent in edges
        if {child, parent} <= set(places)
    ]
    if found:
        yield median_row("rewrite", "models of the map", None, "distance", np.array(found))
