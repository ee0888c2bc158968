"""Cached reads of a map of models for the page Routing, and the router that a run keeps."""

import threading
from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from dashboard import data, routing_rows, service_pair, text_routing as text
from dashboard.data import RunRef
from engine.errors import PackageMissing


if TYPE_CHECKING:
    from engine.live.routing import QuestionRouter, RankedModels

_opening = threading.Lock()


def results(ref: RunRef) -> pd.DataFrame:
    """Rows of `model_routing_results`."""
    return data.table(ref, "model_routing_results")


@st.cache_data(max_entries=16, show_spinner=False)
def routers(ref: RunRef) -> tuple[str, ...]:
    """Routers with predictions, able first."""
    found = data.ask(ref, "SELECT DISTINCT router FROM model_routes ORDER BY router")["router"]
    known = [str(name) for name in found]
    order = [r for r in text.ROUTERS if r in known]
    return (*order, *(r for r in known if r not in order))


@st.cache_resource(max_entries=8, show_spinner="Reading the routes …")
def routes(ref: RunRef, router: str) -> pd.DataFrame:
    """Rows of `model_routes` of a router; read-only."""
    columns = ("router", "question", "model", "predicted", "correct")
    return data.table(ref, "model_routes", columns, (("router", router),))


@st.cache_resource(max_entries=16, show_spinner=False)
def chosen(ref: RunRef, router: str) -> pd.DataFrame:
    """The model a router sends each question to; read-only."""
    return routing_rows.choices(routes(ref, router))


@st.cache_resource(max_entries=16, show_spinner=False)
def calibration(ref: RunRef, router: str) -> pd.DataFrame:
    """How often predictions of a router came true, by their size; read-only."""
    rows = routes(ref, router)
    return routing_rows.calibration(
        rows["predicted"].to_numpy(float), rows["correct"].to_numpy(bool)
    )


@st.cache_resource(max_entries=8, show_spinner=False)
def questions(ref: RunRef) -> pd.DataFrame:
    """Rows of `model_questions`, with the question as index; read-only."""
    return data.table(ref, "model_questions", order_by="question").set_index("question")


@st.cache_resource(max_entries=8, show_spinner=False)
def right(ref: RunRef) -> pd.DataFrame:
    """Which questions each embedded model answers right, a row a model; read-only."""
    found = routing_rows.right_of(data.table(ref, "model_answers"))
    found.columns = questions(ref).index
    return found[found.index.isin(service_pair.models(ref))]


@st.cache_resource(max_entries=8, show_spinner=False)
def parameters(ref: RunRef) -> pd.Series:
    """Parameters by model; 0 where they are not known."""
    name = "model_cards" if data.has(ref, "model_cards") else "model_catalogue"
    rows = data.table(ref, name, ("model", "n_parameters"))
    return rows.set_index("model")["n_parameters"].astype("int64")


def ranking(ref: RunRef, router: str, question: int) -> pd.DataFrame:
    """Models by what a router expects of them on a question of the run.

    Returns:
        model, predicted, share, low, high (how often such predictions came true), correct,
        parameters; likeliest first.
    """
    rows = routes(ref, router)
    own = rows[rows["question"] == question].sort_values(
        ["predicted", "model"], ascending=[False, True], kind="stable", ignore_index=True
    )
    held = routing_rows.came_true(calibration(ref, router), own["predicted"].to_numpy(float))
    found = pd.concat([own[["model", "predicted", "correct"]], held], axis=1)
    return with_parameters(ref, found)


def with_parameters(ref: RunRef, rows: pd.DataFrame) -> pd.DataFrame:
    """Rows with the parameters of their models."""
    return rows.assign(parameters=parameters(ref).reindex(rows["model"]).fillna(0).to_numpy())


@st.cache_data(max_entries=64, show_spinner=False)
def single_best(ref: RunRef, allowed: tuple[str, ...] | None = None) -> str:
    """The model with the most right answers over all questions; of those allowed, where given."""
    shares = right(ref).mean(axis=1)
    return str((shares if allowed is None else shares[shares.index.isin(allowed)]).idxmax())


@st.cache_data(max_entries=16, show_spinner=False)
def opening_question(ref: RunRef, router: str) -> int:
    """The first held-out question that the router gets right and the single best does not."""
    rows = chosen(ref, router).set_index("question")["correct"]
    best = right(ref).loc[single_best(ref)].reindex(rows.index)
    held = ~questions(ref)["is_probe"].reindex(rows.index).astype(bool)
    index = rows.index.to_numpy()
    gained = rows.to_numpy(bool) & ~best.to_numpy(bool)
    for kept in (gained & held.to_numpy(bool), gained, rows.to_numpy(bool)):
        if kept.any():
            return int(index[kept.argmax()])
    return int(index[0])


@st.cache_data(max_entries=64, show_spinner=False)
def calls(ref: RunRef, router: str, allowed: tuple[str, ...] | None = None) -> pd.Series:
    """How often a router calls each model, where it chooses among those allowed alone."""
    if allowed is None:
        return chosen(ref, router).groupby("model").size()
    rows = routes(ref, router)
    own = rows[rows["model"].isin(allowed)]
    return routing_rows.choices(own).groupby("model").size()


# --- live ---------------------------------------------------------------------------------------


def keeps_router(ref: RunRef) -> bool:
    """Whether the run keeps a router for questions that are typed."""
    return "routing" in data.run_of(ref).arrays


def reader(ref: RunRef) -> "QuestionRouter":
    """The router that the run keeps, shared by every session."""
    with _opening:
        return _reader(ref)


@st.cache_resource(max_entries=4, show_spinner="Reading the router …")
def _reader(ref: RunRef) -> "QuestionRouter":
    try:
        from engine.live.routing import QuestionRouter
    except ImportError as error:
        raise PackageMissing(
            f"Live work needs the package {error.name}, which is not installed; run `make setup`."
        ) from error
    return QuestionRouter.open(ref.path)


@st.cache_data(max_entries=128, show_spinner=False)
def ranked(ref: RunRef, question: str, budget: int | None) -> "RankedModels":
    """Models for a typed question, and the known questions most like it."""
    return reader(ref).rank(question, max_parameters=budget)
