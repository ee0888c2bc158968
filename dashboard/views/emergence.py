"""The Emergence page: how heads form by arm, and what their samples have to do with it."""

from collections.abc import Callable

import streamlit as st

from dashboard import data, state, text_heads as text
from dashboard.components.elsewhere import no_heads
from dashboard.components.emergence_added import augmentation, mixtures
from dashboard.components.emergence_curves import (
    Comparison,
    comparison,
    emergence_figure,
    units_of,
)
from dashboard.components.emergence_effects import badge, effects_panel
from dashboard.components.emergence_panels import catalysts, transfer
from dashboard.components.facts import page_head
from dashboard.components.panel import empty_state, panel
from dashboard.data import RunRef


PANELS: dict[str, Callable[[RunRef, Comparison], None]] = dict(
    zip(text.TABS, (transfer, catalysts, augmentation, mixtures), strict=True)
)
"""What each tab draws."""


def page() -> None:
    """Draw the page; it opens on the induction head with its five main arms."""
    ref = data.current()
    page_head("Emergence", text.EMERGENCE, text.EMERGENCE_HOW)
    if not data.has(ref, "head_scores") or not data.has(ref, "head_losses"):
        no_heads()
        return
    compared = comparison(ref)
    badge(ref, compared.unit)
    _curves(ref, compared)
    if data.has(ref, "head_arms"):
        _effects(ref, compared)
    else:
        empty_state(text.NO_ARMS)
    _tabs(ref, compared)


@panel
def _curves(ref: RunRef, compared: Comparison) -> None:
    emergence_figure(ref, compared, units_of(ref))


@panel
def _effects(ref: RunRef, compared: Comparison) -> None:
    effects_panel(ref, compared.unit)


def _tabs(ref: RunRef, compared: Comparison) -> None:
    """Only the tab that is open is drawn."""
    state.read_choice("panel", text.TABS, text.TABS[0])
    tabs = st.tabs(text.TABS, key="panel", on_change="rerun", bind="query-params")
    for tab, name in zip(tabs, text.TABS, strict=True):
        if tab.open:
            with tab:
                _panel(ref, compared, name)


@panel
def _panel(ref: RunRef, compared: Comparison, name: str) -> None:
    PANELS[name](ref, compared)
