"""How far scores can be trusted: what retraining and the references say of every method."""

from typing import Any

import pandas as pd
import streamlit as st

from dashboard import data, text_attribution as text, theme, validity
from dashboard.components.attribution_badge import study_of
from dashboard.components.chart import chart
from dashboard.components.panel import empty_state, panel
from dashboard.data import RunRef
from dashboard.figures import attribution_validity as figures
from engine.store.pools import DEFAULT_VARIANT


def validity_section(ref: RunRef) -> None:
    """All that was measured, for every method: it reads tables alone."""
    with st.expander(text.VALIDITY_TITLE, icon=":material/verified:", key="validity"):
        _validity(ref)


@panel
def _validity(ref: RunRef) -> None:
    study = study_of(ref)
    everything = st.toggle("Every method", key="every", bind="query-params", help=text.EVERY)
    left, right = st.columns(2, gap="large")
    with left:
        if study is None:
            empty_state(text.NO_VALIDITY, text.RETRAIN_COMMAND, title=text.VALIDITY_LDS)
        else:
            _lds_chart(study, everything)
            _recall_chart(study, everything)
    with right:
        if study is not None:
            _removal_chart(study, everything)
        _agreement_chart(ref, study, everything)


def _optional(ref: RunRef, table: str) -> pd.DataFrame | None:
    return data.table(ref, table) if data.has(ref, table) else None


def _missing(ref: RunRef, title: str) -> None:
    empty_state(
        f"The study {ref.name} does not hold this part yet.", text.RETRAIN_COMMAND, title=title
    )


def _lds_chart(study: RunRef, everything: bool) -> None:
    rows = data.table(study, "attribution_validity")
    queries = _optional(study, "retraining_queries")
    each = _optional(study, "retraining_lds")
    empty = pd.DataFrame()
    limits = validity.ceilings(
        rows, empty if each is None else each, empty if queries is None else queries
    )
    first = rows.iloc[0]
    _dots(
        validity.shown(validity.lds_rows(rows), _default(rows), everything=everything),
        validity.SCOPES,
        title=text.VALIDITY_LDS,
        subtitle=f"{first['n_subsets']:,} retrained subsets, {first['n_queries']:,} queries; "
        "bars: 95 %, the wider of queries and subsets",
        chosen=_default(rows),
        ceilings=limits,
    )
    if "all" in limits:
        value, n_seeds = limits["all"][0], int(first["n_seeds"])
        st.caption(text.beyond_ceiling(value, n_seeds, validity.reachable(value, n_seeds)))
    whole = rows[rows["scope"] == "all"]
    lds = {
        str(name): float(value) for name, value in zip(whole["method"], whole["lds"], strict=True)
    }
    if _default(rows) in lds and DEFAULT_VARIANT in lds and _default(rows) != DEFAULT_VARIANT:
        st.caption(text.chosen_beside(_default(rows), DEFAULT_VARIANT, lds))


def _default(rows: pd.DataFrame) -> str:
    chosen = rows.loc[rows["is_default"], "method"]
    return str(chosen.iloc[0]) if len(chosen) else ""


def _removal_chart(study: RunRef, everything: bool) -> None:
    removal = _optional(study, "retraining_removal")
    if removal is None:
        _missing(study, text.VALIDITY_REMOVAL)
        return
    n = int(removal["n_removed"].max())
    chosen = _default(data.table(study, "attribution_validity"))
    _dots(
        validity.shown(validity.removal_rows(removal), chosen, everything=everything),
        ("top", "bottom"),
        title=text.VALIDITY_REMOVAL,
        subtitle=f"loss after retraining without {n:,} texts, minus without {n:,} random ones; "
        f"{removal['domain'].nunique()} groups of queries",
        chosen=chosen,
    )


def _recall_chart(study: RunRef, everything: bool) -> None:
    recall = _optional(study, "planted_recall")
    queries = _optional(study, "retraining_queries")
    if recall is None or queries is None:
        _missing(study, text.VALIDITY_RECALL)
        return
    n = recall["query"].nunique()
    chosen = _default(data.table(study, "attribution_validity"))
    _dots(
        validity.shown(validity.recall_rows(recall, queries), chosen, everything=everything),
        ("repeated", "rephrased"),
        title=text.VALIDITY_RECALL,
        subtitle=f"its document among the first {validity.RECALL_AT} of the pool; "
        f"n = {n:,} questions of invented facts",
        chosen=chosen,
    )


def _agreement_chart(ref: RunRef, study: RunRef | None, everything: bool) -> None:
    """Overlap with the references on this run's pool, or on the study's where this has none."""
    held = [
        run for run in (ref, study) if run is not None and data.has(run, "attribution_agreement")
    ]
    if not held:
        command = data.run_of(ref).command_for("attribution_agreement")
        empty_state(text.NO_AGREEMENT, command, title=text.VALIDITY_AGREEMENT)
        return
    agreement = data.table(held[0], "attribution_agreement")
    chosen = _default(data.table(study, "attribution_validity")) if study is not None else ""
    rows = validity.shown(validity.agreement_rows(agreement), chosen, everything=everything)
    panels = tuple(panel_ for panel_ in ("full", "ekfac") if (rows["panel"] == panel_).any())
    if not panels:
        st.caption(text.NO_REFERENCE)
        return
    _dots(
        rows,
        panels,
        title=text.VALIDITY_AGREEMENT,
        subtitle=f"run {held[0].name}: first {int(agreement['top'].max()):,} of the pool, "
        f"{agreement['query'].nunique():,} queries",
        chosen=chosen,
    )
    if data.has(held[0], "attribution_costs"):
        _costs(data.table(held[0], "attribution_costs"))


def _costs(costs: pd.DataFrame) -> None:
    """What each method keeps of a sequence and how long it took, in the study of agreement."""
    first = costs.iloc[0]
    st.caption(
        f"Costs of the same study: {int(first['queries']):,} queries against "
        f"{int(first['pool']):,} sequences of {int(first['pool_tokens']):,} tokens."
    )
    rows = costs.sort_values("cpu_seconds")[["method", "bytes_a_sequence", "cpu_seconds"]]
    st.dataframe(
        rows,
        key="validity_costs",
        hide_index=True,
        height=theme.table_height(len(rows), 280),
        column_config={
            "method": "Method",
            "bytes_a_sequence": st.column_config.NumberColumn(
                "Kept (bytes a sequence)", format="localized"
            ),
            "cpu_seconds": st.column_config.NumberColumn("CPU (s)", format="%.1f"),
        },
        alt="Bytes kept of a sequence and CPU seconds of every method, fastest first.",
    )


def _dots(rows: pd.DataFrame, panels: tuple[str, ...], *, title: str, **settings: Any) -> None:
    axes = {panel_: text.PANELS[panel_] for panel_ in panels}
    name = title.lower().replace(" ", "-").replace("(", "").replace(")", "")
    chart(
        figures.interval_dots(rows, dark=theme.is_dark(), title=title, axes=axes, **settings),
        key=f"validity_{panels[0]}",
        alt=figures.interval_alt(rows, panels[0], title),
        file_name=name,
    )
