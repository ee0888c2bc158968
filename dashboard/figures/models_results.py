"""How well methods tell related models apart, and how firm embeddings are."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from dashboard import text_models as text, theme
from dashboard.figures.model_marks import LEGEND_TEXT
from dashboard.figures.tokens import escaped


ROW = 22
"""Pixels of a method or a group."""
_LABELS = ("tokenizer", "architecture_size", "architecture_tokenizer", "random")
_OUTPUTS = ("log_likelihoods", "option_probabilities", "phylolm", "weights")
OWN_SCALE = ("quotient",)
"""Measures that are no shares, cosines or distances of unit vectors."""
MOST_TICKS = 6
_SETTINGS = {
    "probe_count": "probes",
    "convergence": "probes of each half",
    "dimension": "dimensions",
    "noise": "noise over weight (norms)",
}
CHANCE = {"auc": 0.5, "accuracy": 0.5}
"""Values that guessing gives on balanced pairs."""


def kind_of(method: str) -> str:
    """What a method compares models by."""
    if method in _LABELS:
        return text.KINDS_OF_METHOD[2]
    return text.KINDS_OF_METHOD[1 if method in _OUTPUTS else 0]


def kind_colour(kind: str, colours: theme.Palette) -> str:
    """Accent for embeddings, blue for outputs and weights, grey for labels."""
    shades = (colours.accent, colours.raises, colours.rest)
    return shades[text.KINDS_OF_METHOD.index(kind)]


def in_order(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows by kind of method, then the best first."""
    kinds = rows["method"].map(kind_of).map(text.KINDS_OF_METHOD.index)
    return rows.assign(kind=kinds).sort_values(
        ["kind", "value", "method"], ascending=[True, False, True], kind="stable"
    )


def spread(rows: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """How far bars reach below and above a value: one sd, or to the ends of the interval."""
    value, sd, low, high = (
        rows[name].to_numpy(np.float64) if name in rows else np.full(len(rows), np.nan)
        for name in ("value", "sd", "low", "high")
    )
    down = np.where(np.isfinite(sd), sd, value - low)
    up = np.where(np.isfinite(sd), sd, high - value)
    return np.nan_to_num(np.maximum(down, 0)), np.nan_to_num(np.maximum(up, 0))


def method_bars(
    rows: pd.DataFrame, metric: str, *, dark: bool, title: str, subtitle: str
) -> go.Figure:
    """One measure of every method with its spread; chance is dashed.

    Args:
        rows: method, value, sd, low, high and n, a row a method.
        metric: Measure, a key of `text.METRICS`.
        dark: Theme.
        title: Pairs that are judged.
        subtitle: Number of pairs and what bars show.
    """
    colours = theme.palette(dark)
    own = in_order(rows)
    names = [escaped(text.method_name(str(m))) for m in own["method"]]
    figure = go.Figure(
        layout=theme.layout(
            dark,
            height=ROW * max(3, len(own)) + 130,
            title={"text": title, "subtitle": {"text": subtitle}},
            legend={"orientation": "h", "x": 0, "y": -0.02, "yanchor": "top", "yref": "container",
                    "itemclick": False, "font": {"size": LEGEND_TEXT}},
            margin={"l": 8, "r": 16, "t": 54, "b": 70},
            xaxis={"title": {"text": f"{text.METRICS.get(metric, metric)} (0 to 1)"},
                   "range": [0, 1.04], "nticks": 8},
            yaxis={"autorange": "reversed", "tickfont": {"color": colours.text, "size": 11}},
        )
    )  # fmt: skip
    figure.update_layout(legend={"y": 0.01, "yanchor": "bottom"})
    kinds = own["method"].map(kind_of)
    down, up = spread(own)
    for kind in text.KINDS_OF_METHOD:
        mine = (kinds == kind).to_numpy()
        if not mine.any():
            continue
        figure.add_bar(
            x=own["value"][mine], y=[n for n, m in zip(names, mine, strict=True) if m],
            orientation="h", name=kind, marker={"color": kind_colour(kind, colours)}, opacity=0.85,
            error_x={"type": "data", "array": up[mine], "arrayminus": down[mine],
                     "color": colours.text, "thickness": 1.2, "width": 3},
            customdata=np.column_stack([down[mine], up[mine], own["n"][mine]]),
            hovertemplate="%{y}: %{x:.3f} (−%{customdata[0]:.3f}, +%{customdata[1]:.3f})"
            "<br>n = %{customdata[2]:,.0f}<extra></extra>",
        )  # fmt: skip
    if metric in CHANCE:
        figure.add_vline(x=CHANCE[metric], line={"color": colours.muted, "dash": "dash"})
    return figure


def bars_alt(rows: pd.DataFrame, metric: str, group: str) -> str:
    """The bars in one sentence."""
    best = rows.sort_values("value", ascending=False).head(4)
    said = ", ".join(
        f"{text.method_name(str(r['method']))} {r['value']:.2f}" for r in best.to_dict("records")
    )
    return f"{text.METRICS.get(metric, metric)} on {text.group_name(group)}, best first: {said}."


def group_dots(
    rows: pd.DataFrame, methods: Sequence[str], *, dark: bool, title: str, subtitle: str, axis: str
) -> go.Figure:
    """A measure of several methods by group, a mark a method with its spread.

    Args:
        rows: method, group, value, sd, low, high and n.
        methods: Methods in the order of the legend, seven at most.
        dark: Theme.
        title: What is judged.
        subtitle: n, and which way is good.
        axis: Measure, with its unit.
    """
    colours = theme.palette(dark)
    groups = list(dict.fromkeys(rows["group"]))
    shades = theme.category_colours(list(methods), colours)
    shapes = ("circle", "square", "diamond", "triangle-up", "triangle-down", "star", "x")
    height = (8 + 9 * max(1, len(methods))) * max(1, len(groups)) + 150
    figure = go.Figure(
        layout=theme.layout(
            dark,
            height=height,
            title={"text": title, "subtitle": {"text": subtitle}},
            legend={"orientation": "h", "x": 0, "y": 0.0, "yanchor": "bottom", "yref": "container",
                    "itemclick": False, "font": {"size": LEGEND_TEXT}},
            margin={"l": 8, "r": 16, "t": 54, "b": 96},
            xaxis={"title": {"text": axis}, "range": [-0.03, 1.04], "nticks": 8},
            yaxis={"range": [len(groups) - 0.5, -0.5], "tickvals": list(range(len(groups))),
                   "ticktext": [escaped(text.group_name(str(g))) for g in groups],
                   "tickfont": {"color": colours.text, "size": 11}, "zeroline": False},
        )
    )  # fmt: skip
    for place, method in enumerate(methods):
        own = rows[rows["method"] == method]
        if own.empty:
            continue
        down, up = spread(own)
        value = own["value"].to_numpy(np.float64)
        down, up = np.minimum(down, value), np.minimum(up, np.maximum(1 - value, 0))  # shares
        shift = (place - (len(methods) - 1) / 2) * 0.72 / max(1, len(methods))
        figure.add_scatter(
            x=own["value"], y=[groups.index(g) + shift for g in own["group"]], mode="markers",
            name=text.method_name(method),
            marker={"size": 8, "symbol": shapes[place % len(shapes)], "color": shades[method]},
            error_x={"type": "data", "array": up, "arrayminus": down, "thickness": 1.1, "width": 2,
                     "color": shades[method]},
            customdata=own[["n"]].to_numpy(),
            hovertemplate=f"{escaped(text.method_name(method))}<br>%{{x:.3f}}, "
            "n = %{customdata[0]:,.0f}<extra></extra>",
        )  # fmt: skip
    for line in range(1, len(groups)):
        figure.add_hline(y=line - 0.5, line={"color": colours.grid, "width": 1})
    return figure


def stability_curves(rows: pd.DataFrame, studies: Sequence[str], *, dark: bool) -> go.Figure:
    """Each study with numbers for settings: its measures over the setting, with their reach.

    Args:
        rows: study, x, measure, value, low and high.
        studies: Studies in the order drawn, a panel each.
        dark: Theme.
    """
    colours = theme.palette(dark)
    measures = list(dict.fromkeys(rows["measure"]))
    shades = theme.category_colours(measures, colours)
    panels = _panels(rows, studies)
    across = min(3, max(1, len(panels)))
    down = max(1, -(-len(panels) // across))
    figure = make_subplots(
        rows=down,
        cols=across,
        horizontal_spacing=0.07,
        vertical_spacing=0.3 / max(1, down),
        subplot_titles=[text.STUDIES.get(study, study) for study, _ in panels],
        figure=go.Figure(
            layout=theme.layout(
                dark,
                height=270 * down + 90,
                legend={"orientation": "h", "x": 0, "y": 0.0, "yanchor": "bottom",
                        "yref": "container", "font": {"size": LEGEND_TEXT}},
                margin={"l": 8, "r": 12, "t": 34, "b": 90},
            )
        ),
    )  # fmt: skip
    figure.update_annotations(font={"size": 12, "color": colours.text})
    named: set[str] = set()
    for place, (study, own) in enumerate(panels):
        row, col = place // across + 1, place % across + 1
        for measure, line in own.groupby("measure", sort=False):
            name = str(measure)
            trace = _curve(line, name, shades[name], named=name not in named)
            figure.add_trace(trace, row=row, col=col)
            named.add(name)
        positive = bool((own["x"] > 0).all()) and len(own) > 0
        ticks = sorted({float(x) for x in own["x"]})
        ticks = ticks[:: -(-len(ticks) // MOST_TICKS)] if ticks else ticks
        figure.update_xaxes(
            type="log" if positive else "linear", tickangle=0,
            tickvals=ticks, ticktext=[f"{x:g}" for x in ticks],
            title_text=_SETTINGS.get(study, "setting"), row=row, col=col,
        )  # fmt: skip
    return figure


def _panels(rows: pd.DataFrame, studies: Sequence[str]) -> list[tuple[str, pd.DataFrame]]:
    """A panel a study; measures on a scale of their own get one of their own."""
    found = []
    for study in studies:
        own = rows[(rows["study"] == study) & rows["x"].notna()].sort_values("x")
        apart = own["measure"].isin(list(OWN_SCALE))
        found += [(study, part) for part in (own[~apart], own[apart]) if len(part)]
    return found


def _curve(line: pd.DataFrame, measure: str, shade: str, *, named: bool) -> go.Scatter:
    """A measure over the settings with its reach; `named` gives it an entry of the legend."""
    below = np.nan_to_num((line["value"] - line["low"]).to_numpy(np.float64))
    above = np.nan_to_num((line["high"] - line["value"]).to_numpy(np.float64))
    words = text.MEASURES.get(measure, measure)
    return go.Scatter(
        x=line["x"], y=line["value"], mode="lines+markers", name=words,
        legendgroup=measure, showlegend=named,
        line={"color": shade, "width": 1.8}, marker={"size": 6},
        error_y={"type": "data", "array": np.maximum(above, 0),
                 "arrayminus": np.maximum(below, 0), "thickness": 1, "width": 2},
        hovertemplate=f"{words}<br>%{{x:,.3g}}: %{{y:.3g}}<extra></extra>",
    )  # fmt: skip


def stability_alt(rows: pd.DataFrame, studies: Sequence[str]) -> str:
    """The curves in one sentence."""
    names = ", ".join(text.STUDIES.get(study, study) for study in studies)
    return f"How far embeddings move over {names}; {len(rows)} points."
