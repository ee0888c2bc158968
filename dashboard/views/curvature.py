"""The Curvature page: coupling and conditioning of a bank, by label and clustering strength."""

import streamlit as st

from dashboard import data, state, text, text_curvature
from dashboard.components.curvature_arms import arm_spectra, arms_of, strength_panel
from dashboard.components.curvature_run import (
    cousage_panel,
    own_row,
    pairs_panel,
    run_facts,
    run_spectra,
)
from dashboard.components.facts import page_head
from dashboard.components.panel import empty_state, panel


def page() -> None:
    """Draw the page; it opens on the Hessian at weights that are the same for every arm."""
    ref = data.current()
    page_head("Curvature", text_curvature.CURVATURE, text_curvature.CURVATURE_HOW)
    run = data.run_of(ref)
    if run.kind == "dense":
        empty_state(text.DENSE)
        return
    if not data.has(ref, "curvature"):
        empty_state(text_curvature.NO_CURVATURE, run.command_for("curvature"))
        return
    term = _term()
    own, arms = own_row(ref), arms_of(ref)
    run_facts(ref, own, term)
    if len(arms):
        strength_panel(ref, arms, term)
    left, right = st.columns([11, 9], gap="large")
    with left:
        _cousage(ref)
    with right:
        run_spectra(ref, own)
        if len(arms):
            arm_spectra(ref, arms, term)
    _pairs(ref)
    if arms.empty:
        empty_state(text_curvature.NO_ARMS, text_curvature.ARMS_COMMANDS.format(run=ref.name))


def _term() -> str:
    names = {name: term for term, name in text_curvature.TERMS.items()}
    first = next(iter(names))
    state.read_choice("term", names, first)
    shown = st.selectbox(
        "Part of the Hessian",
        list(names),
        key="term",
        bind="query-params",
        width=320,
        help=text_curvature.TERM_HELP,
    )
    return names[shown]


@panel
def _cousage(ref: data.RunRef) -> None:
    cousage_panel(ref, own_row(ref))


@panel
def _pairs(ref: data.RunRef) -> None:
    pairs_panel(ref)
