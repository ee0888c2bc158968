"""The Models page: a map of models, relatives documented and predicted, and how true it all is."""

from collections.abc import Callable

import pandas as pd
import streamlit as st

from dashboard import data, models_report, service_models as service, state, text_models as text
from dashboard.components.elsewhere import no_models
from dashboard.components.facts import page_head
from dashboard.components.models_card import card, neighbours_panel
from dashboard.components.models_controls import ModelsView, controls
from dashboard.components.models_export import export_panel
from dashboard.components.models_map import map_panel, rows_of, table_panel
from dashboard.components.models_results import relations_panel, stability_panel
from dashboard.components.models_twins import bases_panel, heatmap_panel, tree_panel
from dashboard.components.panel import panel, plain_errors
from dashboard.data import RunRef


Draw = Callable[[RunRef, pd.DataFrame, ModelsView], None]
PANELS: dict[str, Draw] = {
    "Tree": tree_panel,
    "Heat map": heatmap_panel,
    "Relations": lambda ref, _, view: relations_panel(ref, view),
    "Bases": bases_panel,
    "Stability": lambda ref, _, __: stability_panel(ref),
    "Export": export_panel,
}
"""What each tab draws."""


def page() -> None:
    """Draw the page; it opens on the map and the model that most others were made of."""
    ref = data.current()
    if not data.has(ref, "model_embeddings") or service.cards(ref).empty:
        page_head("Models", text.MODELS, text.HOW)
        no_models()
        return
    frame = service.cards(ref)
    page_head(models_report.title_of(ref, frame), text.MODELS, text.HOW)
    view = controls(ref, frame)
    rows = rows_of(ref, frame, view)
    left, right = st.columns([13, 5], gap="medium")
    with left, plain_errors():
        map_panel(ref, frame, rows, view)
    with right, st.container(border=True), plain_errors():
        card(ref, frame, view)
    left, right = st.columns(2, gap="medium")
    with left, plain_errors():
        table_panel(ref, rows, view)
    with right, plain_errors():
        neighbours_panel(ref, frame, view)
    _tabs(ref, frame, view)


def _tabs(ref: RunRef, frame: pd.DataFrame, view: ModelsView) -> None:
    """Only the tab that is open is drawn."""
    state.read_choice("panel", text.TABS, text.TABS[0])
    tabs = st.tabs(text.TABS, key="panel", on_change="rerun", bind="query-params")
    for tab, name in zip(tabs, text.TABS, strict=True):
        if tab.open:
            with tab:
                _panel(ref, frame, view, name)


@panel
def _panel(ref: RunRef, frame: pd.DataFrame, view: ModelsView, name: str) -> None:
    PANELS[name](ref, frame, view)
