"""The Routing page: a question in, models ranked; how well routers choose, and for whom."""

from collections.abc import Callable

import streamlit as st

from dashboard import data, state, text_routing as text
from dashboard.components import routing_results
from dashboard.components.elsewhere import no_models
from dashboard.components.facts import page_head
from dashboard.components.panel import empty_state, panel
from dashboard.components.routing_question import controls, stored_question
from dashboard.components.routing_typed import typed_question
from dashboard.data import RunRef


NEEDED = ("model_routes", "model_routing_results", "model_questions", "model_answers")
PANELS: dict[str, Callable[[RunRef], None]] = dict(
    zip(
        text.TABS,
        (
            routing_results.domains,
            routing_results.new_models,
            routing_results.budget,
            routing_results.models_used,
        ),
        strict=True,
    )
)
"""What each tab draws."""


def page() -> None:
    """Draw the page; it opens on a question the router gets right and the single best does not."""
    ref = data.current()
    page_head("Routing", text.ROUTING, text.ROUTING_HOW)
    if not data.has(ref, "model_embeddings"):
        no_models("model_routes")
        return
    if not all(data.has(ref, name) for name in NEEDED):
        empty_state(text.NO_ROUTES, data.run_of(ref).command_for("model_routes"))
        return
    _question(ref)
    _accuracy(ref)
    _tabs(ref)


@panel
def _question(ref: RunRef) -> None:
    with st.container(border=True):
        source, asked = controls(ref)
        if source == text.TYPED:
            typed_question(ref, asked)
        else:
            stored_question(ref, asked)


@panel
def _accuracy(ref: RunRef) -> None:
    routing_results.accuracy_panel(ref)


def _tabs(ref: RunRef) -> None:
    """Only the tab that is open is drawn."""
    state.read_choice("panel", text.TABS, text.TABS[0])
    tabs = st.tabs(text.TABS, key="panel", on_change="rerun", bind="query-params")
    for tab, name in zip(tabs, text.TABS, strict=True):
        if tab.open:
            with tab:
                _panel(ref, name)
    routing_results.results_table(ref)


@panel
def _panel(ref: RunRef, name: str) -> None:
    PANELS[name](ref)
