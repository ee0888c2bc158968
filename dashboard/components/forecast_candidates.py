"""Which base to adapt: bases in predicted order, and how good the order is against a random one."""

import pandas as pd
import streamlit as st

from dashboard import data, forecast_rows, text_forecast as text, theme
from dashboard.components.chart import chart
from dashboard.components.export import export_buttons
from dashboard.components.facts import Fact, facts
from dashboard.components.forecast_controls import in_order, named
from dashboard.components.panel import empty_state
from dashboard.data import RunRef
from dashboard.figures import forecast as figures
from dashboard.figures.attribution_validity import interval_alt, interval_dots


KEYS = ("target", "outcome", "regime", "method")
ROUNDING = 1e-9
"""Values nearer to 0 are rounding errors of a difference."""


def candidates_panel(ref: RunRef) -> None:
    """Every way of ranking; bases of one target in predicted order, drawn and as a table."""
    if not data.has(ref, "model_candidates") or not data.has(ref, "model_selection_results"):
        empty_state(text.NO_CANDIDATES, data.run_of(ref).command_for("model_selection_results"))
        return
    results = data.table(ref, "model_selection_results")
    keys = _controls(ref)
    rows = forecast_rows.ranked(data.table(ref, "model_candidates", where=tuple(keys.items())))
    if rows.empty:
        st.caption("No base was ranked this way.")
        return
    _facts(results, keys, len(rows))
    _methods(ref, results, keys)
    left, right = st.columns([3, 2], gap="large")
    with left:
        _bars(ref, rows, keys)
    with right:
        _table(ref, rows, keys)


def _controls(ref: RunRef) -> dict[str, str]:
    known = data.table(ref, "model_candidates", KEYS).drop_duplicates()
    orders = {"outcome": text.OUTCOMES, "regime": text.REGIMES, "method": text.METHODS}
    labels = {"target": "Adapted to", "outcome": "By", "regime": "Told with", "method": "Ranked by"}
    chosen: dict[str, str] = {}
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        for column, label in labels.items():
            order = orders.get(column, {})
            names = in_order(order, {str(name) for name in known[column]})
            words = {name: order.get(name, name.replace("_", " ")) for name in names}
            chosen[column] = named(label, f"candidate_{column}", words, 220)
    return chosen


def _own(results: pd.DataFrame, keys: dict[str, str], method: str, metric: str) -> pd.Series | None:
    kept = (results["metric"] == metric) & results["value"].notna()
    for column, value in (keys | {"method": method}).items():
        kept &= results[column] == value
    rows = results[kept]
    return rows.iloc[0] if len(rows) else None


def _facts(results: pd.DataFrame, keys: dict[str, str], n: int) -> None:
    items = [Fact("Bases", f"{n}", "each really adapted")]
    for metric, name in (("ndcg@10", "NDCG@10"), ("regret@1", "Regret of the first"),
                         ("regret@5", "Regret of five"),
                         ("trainings_saved", "Trainings saved")):  # fmt: skip
        own = _own(results, keys, keys["method"], metric)
        other = _own(results, keys, "random", metric)
        if own is None:
            continue
        note = f"random order {_said(other, metric)}" if other is not None else ""
        items.append(Fact(name, _said(own, metric), note, text.RANDOM if "ndcg" in metric else ""))
    facts(items)


def _said(row: pd.Series, metric: str) -> str:
    return figure_text(float(row["value"]), metric)


def figure_text(value: float, metric: str) -> str:
    """A figure as it is written: NDCG as a number, others as shares; 0 where it is rounding."""
    if abs(value) < ROUNDING:
        value = 0.0
    return f"{value:.3f}" if metric.startswith("ndcg") else theme.percent(value, 2)


def _bars(ref: RunRef, rows: pd.DataFrame, keys: dict[str, str]) -> None:
    outcome = text.OUTCOMES.get(keys["outcome"], keys["outcome"])
    chart(
        figures.candidate_bars(
            rows,
            dark=theme.is_dark(),
            title=f"{keys['target']}: bases in predicted order",
            subtitle=f"ranked by {text.method_words(keys['method'])}, n = {len(rows)}; "
            "strong: the first ten",
            axis=f"{outcome} (share of questions)",
        ),
        key="candidates",
        alt=figures.candidates_alt(rows),
        file_name=f"{ref.name}-candidates-{keys['target']}",
    )
    if keys["outcome"] != "gain":
        st.caption(text.UNBOUNDED)


def _methods(ref: RunRef, results: pd.DataFrame, keys: dict[str, str]) -> None:
    panels = [m for m in text.SELECTION_METRICS if m in set(results["metric"])]
    kept = {"target": keys["target"], "outcome": keys["outcome"], "regime": keys["regime"]}
    rows = forecast_rows.method_rows(results, kept, panels, "metric")
    if rows.empty:
        return
    shown = rows.assign(method=rows["method"].map(text.method_words))
    chart(
        interval_dots(
            shown,
            dark=theme.is_dark(),
            title="Every way of ranking",
            subtitle="NDCG@10: 1 is best; regret: a share, 0 is best; random: mean over all orders",
            axes={panel: text.SELECTION_METRICS[panel] for panel in panels},
            chosen=text.method_words(keys["method"]),
        ),
        key="candidate_methods",
        alt=interval_alt(shown, panels[0], panels[0]),
        file_name=f"{ref.name}-candidate-methods",
    )
    export_buttons(results, name=f"{ref.name}-selection-results", key="selection_results_file")


def _table(ref: RunRef, rows: pd.DataFrame, keys: dict[str, str]) -> None:
    found = rows[["place", "model", "predicted", "true", "true_place"]]
    if data.has(ref, "model_adaptations"):
        where = (("target", keys["target"]),)
        trained = data.table(ref, "model_adaptations", ("model", "before", "after"), where)
        found = found.merge(trained.groupby("model").mean().reset_index(), on="model", how="left")
    st.dataframe(
        found,
        key="candidates_table",
        hide_index=True,
        height=theme.table_height(len(found), 640),
        column_config={
            "place": st.column_config.NumberColumn("#", width=40),
            "model": st.column_config.TextColumn("Base", width=130),
            "predicted": st.column_config.NumberColumn("Predicted", format="%.3f"),
            "true": st.column_config.NumberColumn("True", format="%.3f"),
            "true_place": st.column_config.NumberColumn("True #", width=60),
            "before": st.column_config.NumberColumn("Before", format="%.3f"),
            "after": st.column_config.NumberColumn("After", format="%.3f"),
        },
        alt=f"{len(found)} bases in predicted order.",
    )
    export_buttons(found, name=f"{ref.name}-candidates-{keys['target']}", key="candidates_file")
