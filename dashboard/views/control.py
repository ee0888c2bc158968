"""The Control page: what controllers over prototypes gain, their weights, the answers they turn."""

import pandas as pd
import streamlit as st

from dashboard import data, state, text, text_control
from dashboard.components.control_corrections import correction, corrections_panel
from dashboard.components.control_downstream import downstream_panel
from dashboard.components.control_results import gain_facts, results_export, results_panel
from dashboard.components.control_weights import open_card, weights_panel
from dashboard.components.facts import page_head
from dashboard.components.panel import empty_state, panel
from dashboard.figures.control import MEAN, set_name


def page() -> None:
    """Draw the page; it opens on the set that gains most and its first corrected question."""
    ref = data.current()
    page_head("Control", text_control.CONTROL, text_control.CONTROL_HOW)
    run = data.run_of(ref)
    if run.kind == "dense":
        empty_state(text.DENSE)
        return
    if not data.has(ref, "control_gains"):
        empty_state(text_control.NO_CONTROL, run.command_for("control_gains"))
    else:
        _results(ref)
        _one_controller(ref)
    if run.kind == "prism":
        with st.container(border=data.has(ref, "downstream")):
            _downstream(ref)


@panel
def _results(ref: data.RunRef) -> None:
    gains = data.table(ref, "control_gains")
    results = data.table(ref, "control_results")
    n_prototypes = data.run_of(ref).tables.get("prototypes", {}).get("rows", 0)
    gain_facts(gains, results, n_prototypes)
    results_panel(ref, gains, results)
    results_export(ref, gains, results)


@panel
def _one_controller(ref: data.RunRef) -> None:
    """One set and split: its weights beside the answers they turned."""
    gains = data.table(ref, "control_gains", where=(("comparison", "prototypes-none"),))
    ranked = gains[gains["set"] != MEAN].sort_values("gain", ascending=False)
    names = {set_name(str(name)): str(name) for name in ranked["set"]}
    results = data.table(ref, "control_results", ("set", "condition", "seed", "nonzeros"))
    seeds = sorted(int(seed) for seed in results["seed"].unique())
    first = opening_split(results, next(iter(names.values())))
    st.markdown("### One controller")
    state.read_choice("questions", names, next(iter(names)))
    splits = [str(seed) for seed in seeds]
    state.read_choice("split", splits, first)
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        shown = st.selectbox(
            "Question set", list(names), key="questions", bind="query-params", width=220
        )
        split = st.segmented_control(
            "Split",
            splits,
            default=first,
            required=True,
            key="split",
            bind="query-params",
            help="Each split draws training, validation and test questions anew and trains a "
            "controller of its own.",
        )
    chosen, seed = names[shown], int(split or first)
    left, right = st.columns([9, 11], gap="large")
    with left:
        weights_panel(ref, chosen, seed)
    with right:
        number = corrections_panel(ref, chosen, seed)
    if number is not None:
        with st.container(border=True):
            correction(ref, chosen, seed, number)
    open_card(ref)


def opening_split(results: pd.DataFrame, name: str) -> str:
    """The first split of a set whose controller has a weight to show; the first of all if none."""
    own = results[(results["set"] == name) & (results["condition"] == "prototypes")]
    shown = own[own["nonzeros"] > 0]
    return str(int((own if shown.empty else shown)["seed"].min()))


@panel
def _downstream(ref: data.RunRef) -> None:
    downstream_panel(ref)
