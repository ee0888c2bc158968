"""Scores told and true under both regimes, residuals by group, and every baseline."""

import pandas as pd
import streamlit as st

from dashboard import data, forecast_rows, text_forecast as text, theme
from dashboard.components.chart import chart
from dashboard.components.export import export_buttons
from dashboard.components.facts import Fact, chips, facts
from dashboard.components.forecast_controls import ForecastView, grouped, named
from dashboard.data import RunRef
from dashboard.figures import forecast as figures
from dashboard.figures.attribution_validity import interval_alt, interval_dots


RESIDUAL_GROUPS = 18
"""Groups whose residuals are drawn."""


def forecast_facts(results: pd.DataFrame, view: ForecastView) -> None:
    """Spearman under both regimes, what is lost between them, and that of the best baseline."""
    found = [
        forecast_rows.figure_of(results, view.target, regime, view.method, "spearman")
        for regime in view.regimes
    ]
    items = [
        Fact(f"Spearman, {text.regime_words(regime)}", *_spearman(results, view, regime))
        for regime in view.regimes
    ]
    first, last = found[0], found[-1]
    if first is not None and last is not None and len(view.regimes) > 1:
        lost = float(first["value"]) - float(last["value"])
        items.append(Fact(text.lost_words(view.regimes[-1]), theme.signed(-lost, 2), "of Spearman"))
    facts([*items, *_best_other(results, view)])


def _best_other(results: pd.DataFrame, view: ForecastView) -> list[Fact]:
    """The best other way of telling under the stricter regime."""
    rows = results[
        (results["target"] == view.target)
        & (results["regime"] == view.regimes[-1])
        & (results["metric"] == "spearman")
        & (results["method"] != view.method)
        & results["value"].notna()
    ]
    if rows.empty:
        return []
    best = rows.sort_values("value", ascending=False, kind="stable").iloc[0]
    name = f"Best other, {text.regime_words(view.regimes[-1])}"
    return [Fact(name, f"{float(best['value']):.2f}", text.method_words(str(best["method"])))]


def _spearman(results: pd.DataFrame, view: ForecastView, regime: str) -> tuple[str, str]:
    """Spearman and its interval; in words where it is not defined."""
    if forecast_rows.says_the_same(results, view.target, regime, view.method):
        return text.UNDEFINED, text.SAME_OF_ALL
    row = forecast_rows.figure_of(results, view.target, regime, view.method, "spearman")
    return _value(row), _interval(row)


def _value(row: pd.Series | None) -> str:
    return "–" if row is None else f"{float(row['value']):.2f}".replace("-", "−")


def _interval(row: pd.Series | None) -> str:
    if row is None or pd.isna(row["low"]):
        return ""
    return f"[{float(row['low']):.2f}, {float(row['high']):.2f}]".replace("-", "−")


def scatters(ref: RunRef, view: ForecastView, results: pd.DataFrame) -> None:
    """Predicted over true scores, one regime beside the other, on the same axes."""
    rows, groups, shades = grouped(ref, view)
    reach = figures.reach_of(rows)
    counts = rows.loc[rows["regime"] == view.regimes[0], "group"].value_counts()
    undefined = False
    for column, regime in zip(st.columns(len(view.regimes), gap="large"), view.regimes,
                              strict=True):  # fmt: skip
        own = rows[rows["regime"] == regime]
        value, note = _spearman(results, view, regime)
        undefined = undefined or value == text.UNDEFINED
        interval = "" if value == text.UNDEFINED else f" {note}"
        subtitle = (
            f"Spearman {value}{interval}, n = {len(own):,} models; "
            f"{text.REGIME_NOTES.get(regime, '')}"
        )
        with column:
            chart(
                figures.told_and_true(
                    own,
                    shades,
                    dark=theme.is_dark(),
                    title=f"{view.target}: {text.regime_words(regime)}",
                    subtitle=subtitle,
                    reach=reach,
                ),
                key=f"forecast_{regime}",
                alt=figures.told_alt(own, subtitle),
                file_name=f"{ref.name}-forecast-{view.target}-{regime}",
            )
    said = [text.BEYOND, text.UNBOUNDED, *([text.NO_ORDER] if undefined else [])]
    st.caption(" ".join(said))
    chips((g, shades.get(g, theme.palette().rest), int(counts[g])) for g in groups)


def residuals(ref: RunRef, view: ForecastView) -> None:
    """Residuals by group, one regime beside the other."""
    rows, groups, shades = grouped(ref, view)
    shown = groups[:RESIDUAL_GROUPS]
    reach = float(rows["residual"].abs().max()) if len(rows) else 1.0
    for column, regime in zip(st.columns(len(view.regimes), gap="large"), view.regimes,
                              strict=True):  # fmt: skip
        own = rows[rows["regime"] == regime]
        with column:
            chart(
                figures.residual_strips(
                    own,
                    shown,
                    shades,
                    dark=theme.is_dark(),
                    title=text.regime_words(regime).capitalize(),
                    reach=reach,
                ),
                key=f"residuals_{regime}",
                alt=figures.residuals_alt(own),
                file_name=f"{ref.name}-residuals-{view.target}-{regime}",
            )
    hidden = len(groups) - len(shown)
    more = f" {hidden} smaller groups are in the table alone." if hidden else ""
    st.caption(text.RESIDUALS + more)
    with st.expander("All models as a table", icon=":material/table_rows:"):
        _table(ref, view, rows)


def _table(ref: RunRef, view: ForecastView, rows: pd.DataFrame) -> None:
    wide = rows.pivot_table(
        index=["model", "group", "true"], columns="regime", values="predicted"
    ).reset_index()
    wide.columns = [str(name) for name in wide.columns]
    shares = ["true", *view.regimes]
    shown = wide.assign(**{name: 100 * wide[name] for name in shares})
    st.dataframe(
        shown,
        key="forecast_table",
        hide_index=True,
        height=theme.table_height(len(shown), 320),
        column_config={
            "model": st.column_config.TextColumn("Model", width=280),
            "group": st.column_config.TextColumn(view.by.capitalize()),
            "true": st.column_config.NumberColumn("True (%)", format="%.1f"),
            **{
                regime: st.column_config.NumberColumn(
                    f"{text.regime_words(regime)} (%)", format="%.1f"
                )
                for regime in view.regimes
            },
        },
        alt=f"True and predicted scores of {len(shown)} models.",
    )
    export_buttons(rows, name=f"{ref.name}-forecast-{view.target}", key="forecast_file")


def baselines(ref: RunRef, view: ForecastView, results: pd.DataFrame) -> None:
    """Every way of telling under every regime, for the target and over all targets."""
    metrics = {m: w for m, w in text.METRICS.items() if m in set(results["metric"])}
    targets = [view.target]
    if text.OVER_ALL in set(results["target"]):
        targets.append(text.OVER_ALL)
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        metric = named("Measure", "measure", metrics, 220)
        words = {t: "mean over all targets" if t == text.OVER_ALL else t for t in targets}
        target = named("Of", "over", words, 230)
    regimes = [r for r in text.REGIMES if r in set(results["regime"])]
    rows = forecast_rows.method_rows(
        results, {"target": target, "metric": metric}, regimes, "regime"
    )
    if rows.empty:
        st.caption("This run holds no such figures.")
        return
    axes = {r: f"{text.METRIC_AXES[metric]}, {text.regime_words(r)}" for r in regimes}
    shown = rows.assign(method=rows["method"].map(text.method_words))
    chart(
        interval_dots(
            shown,
            dark=theme.is_dark(),
            title=f"Every way of telling: {words[target]}",
            subtitle="bars: 95 % interval; the accent: the way shown above",
            axes=axes,
            chosen=text.method_words(view.method),
            least_first=metric in ("mae", "best_rank"),
        ),
        key="forecast_methods",
        alt=interval_alt(shown, regimes[0], f"{metrics[metric]}, {regimes[0]}"),
        file_name=f"{ref.name}-forecast-methods",
    )
    own = data.table(ref, "model_forecast_results")
    export_buttons(own, name=f"{ref.name}-forecast-results", key="forecast_results_file")
