"""Rows of a map of models as its page shows them; pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int


TEXTS = ("place_of", "family", "relation", "evidence", "architecture", "tokenizer", "data", "size",
         "target", "root")  # fmt: skip
"""Text columns of a card; empty where nothing is said."""
NEIGHBOURS = 10
"""Nearest models that are compared between embeddings and picture."""
MADE_HERE = "made here"
"""Evidence of models that were derived on this machine."""


def joined(
    names: pd.DataFrame, known: pd.DataFrame | None, measured: pd.DataFrame | None
) -> pd.DataFrame:
    """Models in order with their cards and what was measured of them.

    Args:
        names: `model`.
        known: Rows of `model_cards`; None in a run without any.
        measured: Rows of `model_catalogue`; None in a run without any.
    """
    found = names
    if known is not None:
        found = found.merge(known.rename(columns={"place": "place_of"}), on="model", how="left")
    if measured is not None:
        own = measured.drop(columns=["place", "architecture"])
        own = own.rename(columns={"n_parameters": "counted"})
        found = found.merge(own, on="model", how="left")
    found = found.copy()
    for column in ("parents", "roots", "groups"):
        given = found[column] if column in found else [None] * len(found)
        found[column] = [tuple(map(str, v)) if v is not None and np.ndim(v) else () for v in given]
    found["root"] = [", ".join(roots) for roots in found["roots"]]
    for column in TEXTS:
        found[column] = found[column].fillna("") if column in found else ""
    found["copies_weights"] = [
        bool(flag) if flag == flag else False
        for flag in found.get("copies_weights", [True] * len(found))
    ]
    found["n_parameters"] = _parameters(found)
    if "accuracy" not in found:
        found["accuracy"] = np.nan
    return found


def _parameters(found: pd.DataFrame) -> np.ndarray:
    """Parameters counted when the model was loaded, else as documented, else 0."""
    counts = np.zeros(len(found))
    for column in ("n_parameters", "counted"):
        if column in found:
            given = found[column].fillna(0).to_numpy(np.float64)
            counts = np.where(given > 0, given, counts)
    return counts


def right_answers(row: Mapping[Any, Any], answers: Int[np.ndarray, " questions"]) -> np.ndarray:
    """Whether each answer of a row of `model_answers` is right."""
    if "correct" in row:
        return np.asarray(row["correct"], dtype=bool)
    return np.asarray(row["choices"]) == answers


def neighbours_kept(
    cosines: Float[np.ndarray, "models models"], xy: Float[np.ndarray, "models 2"]
) -> Float[np.ndarray, " models"]:
    """Share of each model's nearest by cosine that are nearest on the picture; NaN if not drawn."""
    placed = np.isfinite(xy.sum(1))
    found = np.full(len(xy), np.nan)
    own = np.flatnonzero(placed)
    k = min(NEIGHBOURS, len(own) - 1)
    if k < 1:
        return found
    near = cosines[np.ix_(own, own)].astype(np.float64)
    apart = ((xy[own][:, None] - xy[own][None]) ** 2).sum(-1)
    np.fill_diagonal(near, -np.inf)
    np.fill_diagonal(apart, np.inf)
    true = np.argsort(-near, axis=1, kind="stable")[:, :k]
    drawn = np.argsort(apart, axis=1, kind="stable")[:, :k]
    found[own] = [len(set(a) & set(b)) / k for a, b in zip(true, drawn, strict=True)]
    return found


def documented_edges(
    frame: pd.DataFrame,
) -> tuple[Int[np.ndarray, "edges 2"], Bool[np.ndarray, " edges"]]:
    """Places of parent and child of every documented edge between embedded models."""
    places = {str(m): int(p) for m, p in zip(frame["model"], frame["place"], strict=True)}
    pairs = [
        (places[parent], int(row["place"]), bool(row["copies_weights"]))
        for row in frame.to_dict("records")
        for parent in row["parents"]
        if parent in places
    ]
    rows = np.array(pairs, dtype=np.int64).reshape(-1, 3)
    return rows[:, :2], rows[:, 2].astype(bool)


@dataclass(frozen=True)
class Asked:
    """What filters of the page keep; an empty value filters nothing."""

    query: str = ""
    families: Sequence[str] = ()
    relations: Sequence[str] = ()
    tokenizers: Sequence[str] = ()
    data: Sequence[str] = ()

    def masks(self, frame: pd.DataFrame) -> dict[str, pd.Series]:
        """What each filter in use keeps, by the filter's name."""
        chosen = {
            "family": ("family", self.families),
            "derivation": ("relation", self.relations),
            "tokenizer": ("tokenizer", self.tokenizers),
            "data": ("data", self.data),
        }
        found = {
            name: frame[column].isin(list(values))
            for name, (column, values) in chosen.items()
            if values
        }
        words = self.query.lower().split()
        if words:
            keep = pd.Series(True, index=frame.index)
            texts = frame["model"].str.lower() + " " + frame["family"].str.lower()
            for word in words:
                keep &= texts.str.contains(word, regex=False)
            found["search"] = keep
        return found


@dataclass(frozen=True)
class Kept:
    """Which models pass, and what hides the others."""

    shown: Bool[np.ndarray, " models"]
    """What the filters leave."""
    said: str


def kept(frame: pd.DataFrame, asked: Asked) -> Kept:
    """Apply the filters, and say which of them hides how many."""
    masks = asked.masks(frame)
    keep = pd.Series(True, index=frame.index)
    for mask in masks.values():
        keep &= mask
    hidden = int((~keep).sum())
    if not hidden:
        return Kept(keep.to_numpy(bool), f"All {len(frame):,} models shown.")
    by = ", ".join(f"{name} ({int((~mask).sum()):,})" for name, mask in masks.items())
    return Kept(keep.to_numpy(bool), f"{hidden:,} of {len(frame):,} hidden by {by}.")


def is_synthetic(frame: pd.DataFrame) -> bool:
    """Whether every model was derived here, so that the map is of a made-up zoo."""
    return len(frame) > 0 and bool(frame["evidence"].isin((MADE_HERE, "synthetic")).all())


def landmark(frame: pd.DataFrame) -> str:
    """The model that most others name as a parent; the first where none does."""
    named = pd.Series([p for parents in frame["parents"] for p in parents], dtype=object)
    counts = named[named.isin(list(frame["model"]))].value_counts()
    return str(counts.index[0]) if len(counts) else str(frame["model"].iloc[0])
