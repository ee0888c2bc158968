"""Cached reads of a map of models for the page Models: cards, places, edges, trees."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import streamlit as st
from jaxtyping import Float, Int

from dashboard import data, model_rows, service_pair
from dashboard.data import RunRef
from dashboard.model_trees import ModelTree, tree_of


@st.cache_resource(max_entries=16, show_spinner=False)
def cards(ref: RunRef) -> pd.DataFrame:
    """Embedded models with what is documented and measured of each; read-only.

    Columns of `model_cards` and of `model_catalogue`, `root` (names with commas between; empty
    where unknown), `held_out` (share of the questions outside the probes that are answered right;
    NaN where not known) and `place` (row).
    """
    names = service_pair.models(ref)
    found = pd.DataFrame({"model": list(names)})
    measured = data.table(ref, "model_catalogue") if data.has(ref, "model_catalogue") else None
    known = data.table(ref, "model_cards") if data.has(ref, "model_cards") else None
    found = model_rows.joined(found, known, measured)
    found["held_out"] = found["model"].map(_held_out(ref))
    found["place"] = np.arange(len(found))
    return found


def _held_out(ref: RunRef) -> dict[str, float]:
    """Share of the questions that are no probes and answered right, by model."""
    if not (data.has(ref, "model_answers") and data.has(ref, "model_questions")):
        return {}
    questions = data.table(ref, "model_questions", ("question", "is_probe", "answer"))
    ordered = questions.sort_values("question")
    outside = ~ordered["is_probe"].to_numpy(bool)
    if not outside.any():
        return {}
    found = {}
    for row in data.table(ref, "model_answers").to_dict("records"):
        right = model_rows.right_answers(row, ordered["answer"].to_numpy())
        found[str(row["model"])] = float(right[outside].mean())
    return found


def n_failed(ref: RunRef) -> int:
    """Models of the catalogue that could not be embedded."""
    if not data.has(ref, "model_catalogue"):
        return 0
    return int(data.table(ref, "model_catalogue", ("status",))["status"].eq("failed").sum())


@st.cache_resource(max_entries=12, show_spinner="Comparing the models …")
def cosines(ref: RunRef, variant: str) -> Float[np.ndarray, "models models"]:
    """Cosines of embeddings in the order of the cards, before any picture; read-only."""
    rows = service_pair.vectors(ref, variant).reindex(list(service_pair.models(ref)))
    matrix = np.nan_to_num(rows.to_numpy(np.float64))
    return matrix @ matrix.T


@st.cache_data(max_entries=16, show_spinner=False)
def layouts(ref: RunRef) -> dict[str, tuple[str, ...]]:
    """Pictures by way of embedding; none where the map was not drawn."""
    if not data.has(ref, "model_layouts"):
        return {}
    keys = data.table(ref, "model_layouts", ("variant", "layout")).drop_duplicates()
    found: dict[str, list[str]] = {}
    for variant, layout in keys.itertuples(index=False, name=None):
        found.setdefault(str(variant), []).append(str(layout))
    return {variant: tuple(names) for variant, names in found.items()}


@st.cache_resource(max_entries=32, show_spinner=False)
def plane(ref: RunRef, variant: str, layout: str) -> pd.DataFrame:
    """x, y, `added` and `kept` of each card in order; NaN where a model has no place; read-only.

    `kept` is the share of a model's nearest models by cosine that are nearest on the picture too.
    """
    where = (("variant", variant), ("layout", layout))
    rows = data.table(ref, "model_layouts", where=where).set_index("model")
    found = rows[["x", "y", "added"]].reindex(list(service_pair.models(ref))).reset_index(drop=True)
    found["added"] = [bool(a) if a == a else False for a in found["added"]]
    xy = found[["x", "y"]].to_numpy(np.float64)
    found["kept"] = model_rows.neighbours_kept(cosines(ref, variant), xy)
    return found


def quality(ref: RunRef, variant: str, layout: str) -> pd.Series | None:
    """Row of `model_layout_results` of a picture; None where it was not judged."""
    if not data.has(ref, "model_layout_results"):
        return None
    where = (("variant", variant), ("layout", layout))
    rows = data.table(ref, "model_layout_results", where=where)
    return None if rows.empty else rows.iloc[0]


@dataclass(frozen=True)
class Edges:
    """Edges between places of cards."""

    documented: Int[np.ndarray, "edges 2"]
    """Parent and child."""
    copies: np.ndarray
    """Whether the child has weights of the parent, by edge."""
    predicted: Int[np.ndarray, "predictions 2"]
    """Predicted base and model."""
    right: np.ndarray
    """Whether the prediction is among the documented bases."""
    missed: Int[np.ndarray, " missed"]
    """Places of models with a documented base for which none was predicted."""


@st.cache_resource(max_entries=32, show_spinner=False)
def edges(ref: RunRef, method: str) -> Edges:
    """Documented edges, and those a method predicts; read-only.

    Args:
        ref: Run.
        method: Method of `model_parents`; empty for none.
    """
    frame = cards(ref)
    documented, copies = model_rows.documented_edges(frame)
    rows = parents(ref, method)
    places = dict(zip(frame["model"], frame["place"], strict=True))
    made = rows[(rows["predicted"] != "") & rows["predicted"].isin(list(places))]
    made = made[made["model"].isin(list(places))]
    predicted = [
        (places[b], places[m]) for b, m in zip(made["predicted"], made["model"], strict=True)
    ]
    none = rows[(rows["predicted"] == "") & ~rows["correct"].astype(bool)]
    missed = [places[m] for m in none["model"] if m in places]
    right = made["correct"].to_numpy(bool)
    return Edges(documented, copies, np.array(predicted, int).reshape(-1, 2), right,
                 np.array(missed, int))  # fmt: skip


@st.cache_data(max_entries=16, show_spinner=False)
def parent_methods(ref: RunRef) -> tuple[str, ...]:
    """Methods that a base was predicted by."""
    if not data.has(ref, "model_parents"):
        return ()
    return tuple(
        dict.fromkeys(str(m) for m in data.table(ref, "model_parents", ("method",))["method"])
    )


def parents(ref: RunRef, method: str) -> pd.DataFrame:
    """Rows of `model_parents` of a method; none where it predicted nothing."""
    if not method or not data.has(ref, "model_parents"):
        return pd.DataFrame(columns=["model", "predicted", "correct", "p_value", "rank_of_parent"])
    return data.table(ref, "model_parents", where=(("method", method),))


@st.cache_resource(max_entries=12, show_spinner=False)
def tree(ref: RunRef, variant: str) -> ModelTree | None:
    """The tree of a way of embedding; None where none was made."""
    if not data.has(ref, "model_trees"):
        return None
    rows = data.table(ref, "model_trees", where=(("variant", variant),), order_by="node")
    if rows.empty:
        return None
    frame = cards(ref)
    return tree_of(rows, dict(zip(frame["model"], frame["root"], strict=True)))


def neighbours(ref: RunRef, variant: str, model: str) -> pd.DataFrame:
    """Rows of `model_neighbours` of a model, by rank; none where they were not computed."""
    if not data.has(ref, "model_neighbours"):
        return pd.DataFrame()
    where = (("variant", variant), ("model", model))
    return data.table(ref, "model_neighbours", where=where, order_by="rank")
