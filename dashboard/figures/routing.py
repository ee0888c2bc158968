"""Routers: how often the model they choose is right, by domain, budget and for new models."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from dashboard import text_routing as text, theme
from dashboard.figures.row_axis import row_axis
from dashboard.figures.tokens import escaped
from dashboard.theme import Palette


ROW = 30
"""Pixels a row takes."""
CHANCES = (0, 0.2, 0.4, 0.6, 0.8, 1)
"""Ticks of an axis of chances."""
SYMBOLS = {
    "able": "diamond",
    "embedllm": "square",
    "knn": "triangle-up",
    "single_best": "circle",
    "random": "x",
    "oracle": "star",
}


def colour_of(router: str, colours: Palette) -> str:
    """Colour of a router: the accent for able, greys for what learns nothing."""
    shades = {
        "able": colours.accent,
        "embedllm": "#CC79A7",
        "knn": "#8A7F00",
        "single_best": colours.rest,
        "random": colours.rest,
        "oracle": colours.text,
    }
    return shades.get(router, "#56B4E9")


def symbol_of(router: str) -> str:
    """Symbol of a router."""
    return SYMBOLS.get(router, "hexagon")


def ordered(routers: Sequence[str]) -> list[str]:
    """Routers in the order drawn: those that are known first."""
    found = list(dict.fromkeys(routers))
    return [r for r in text.ROUTERS if r in found] + [r for r in found if r not in text.ROUTERS]


def interval_rows(
    rows: pd.DataFrame,
    names: Sequence[str],
    *,
    dark: bool,
    title: str,
    subtitle: str,
    axis: str,
    zero: bool = False,
) -> go.Figure:
    """A row a name and a mark with its interval a router.

    Args:
        rows: name, router, value, low, high, n.
        names: Names from top to bottom.
        dark: Theme.
        title: Title of the figure.
        subtitle: Its second line, with the n.
        axis: Title of the axis with its unit.
        zero: Draw a line at 0 and write differences with their sign.
    """
    colours = theme.palette(dark)
    routers = ordered(list(rows["router"]))
    lanes = _lanes(len(routers))
    height = max(ROW, 9 * len(routers) + 10)
    figure = go.Figure(
        layout=theme.layout(
            dark,
            height=height * max(1, len(names)) + 140,
            title={"text": title, "subtitle": {"text": subtitle}},
            xaxis={
                "title": {"text": axis},
                "tickformat": "+.0%" if zero else ".0%",
                "nticks": 7,
                "zeroline": zero,
                "zerolinecolor": colours.muted,
            },
            yaxis={
                "tickvals": list(range(len(names))),
                "ticktext": [escaped(name) for name in names],
                "tickfont": {"color": colours.text},
                "range": [len(names) - 0.5, -0.5],
                "showgrid": False,
                "zeroline": False,
                "ticklabelstandoff": 4,
            },
            legend=_legend(),
            margin={"l": 8, "r": 24, "t": 54, "b": 64},
        )
    )
    for line in range(1, len(names)):
        figure.add_hline(y=line - 0.5, line={"color": colours.grid, "width": 1}, layer="below")
    for router, lane in zip(routers, lanes, strict=True):
        own = rows[rows["router"] == router].set_index("name").reindex(list(names))
        own = own.assign(place=np.arange(len(own)) + lane).dropna(subset=["value"])
        figure.add_trace(_marks(own, router, colours, along="x", signed=zero))
    return figure


def _lanes(count: int) -> list[float]:
    """Where `count` marks of one row stand, above each other around its middle."""
    return [(i - (count - 1) / 2) * 0.64 / max(1, count - 1) for i in range(count)]


def _legend() -> dict[str, Any]:
    return {
        "orientation": "h", "x": 0, "xref": "container", "y": 0, "yanchor": "bottom",
        "yref": "container",
    }  # fmt: skip


def _marks(
    own: pd.DataFrame, router: str, colours: Palette, *, along: str, signed: bool = False
) -> go.Scatter:
    """Marks with intervals of one router.

    Args:
        own: place, value, low, high, n.
        router: The router.
        colours: Theme.
        along: Axis of the values, x or y.
        signed: Write values with their sign.
    """
    shade = colour_of(router, colours)
    bars = {
        "type": "data",
        "symmetric": False,
        "array": own["high"] - own["value"],
        "arrayminus": own["value"] - own["low"],
        "color": shade,
        "thickness": 1.4,
        "width": 0,
    }
    form = "+.1%" if signed else ".1%"
    places = {"x": own["value"], "y": own["place"]}
    if along == "y":
        places = {"x": own["place"], "y": own["value"]}
    return go.Scatter(
        **places,
        mode="markers" if along == "x" else "lines+markers",
        name=text.router_words(router),
        line={"color": shade, "width": 1.6, "dash": "dot" if router in ("oracle",) else "solid"},
        marker={"color": shade, "symbol": symbol_of(router), "size": 9},
        error_x=bars if along == "x" else None,
        error_y=bars if along == "y" else None,
        customdata=own[["low", "high", "n"]].to_numpy(),
        hovertemplate=(
            f"{text.router_words(router)}: %{{{along}:{form}}}<br>95 % interval "
            f"%{{customdata[0]:{form}}} to %{{customdata[1]:{form}}}, n = %{{customdata[2]:,}}"
            "<extra></extra>"
        ),
        cliponaxis=False,
    )


def interval_alt(rows: pd.DataFrame, name: str, what: str) -> str:
    """One row in a sentence, best first."""
    own = rows[rows["name"] == name].sort_values("value", ascending=False)
    said = "; ".join(
        f"{text.router_words(str(r['router']))} {r['value']:.1%} [{r['low']:.1%}, {r['high']:.1%}]"
        for r in own.to_dict("records")
    )
    return f"{what}, {name}: {said or 'nothing'}."


def new_model_lines(
    rows: pd.DataFrame, *, dark: bool, title: str, subtitle: str, axis: str
) -> go.Figure:
    """One line a router over what is known of a new model.

    Args:
        rows: name (a key of `text.ANSWERS_OF_NEW`), router, value, low, high, n.
        dark: Theme.
        title: Title of the figure.
        subtitle: Its second line.
        axis: Title of the vertical axis with its unit.
    """
    colours = theme.palette(dark)
    names = [name for name in text.ANSWERS_OF_NEW if name in set(rows["name"])]
    figure = go.Figure(
        layout=theme.layout(
            dark,
            height=340,
            title={"text": title, "subtitle": {"text": subtitle}},
            xaxis={
                "title": {"text": "answers known of a new model"},
                "tickvals": list(range(len(names))),
                "ticktext": [text.ANSWERS_OF_NEW[name] for name in names],
                "range": [-0.4, len(names) - 0.6],
                "showgrid": False,
                "zeroline": False,
            },
            yaxis={"title": {"text": axis}, "tickformat": ".0%", "nticks": 6},
            legend=_legend(),
            margin={"l": 8, "r": 16, "t": 54, "b": 76},
        )
    )
    routers = ordered(list(rows["router"]))
    for router, lane in zip(routers, _lanes(len(routers)), strict=True):
        own = rows[rows["router"] == router].set_index("name").reindex(names)
        own = own.assign(place=np.arange(len(own)) + 0.12 * lane)
        figure.add_trace(_marks(_apart(own), router, colours, along="y"))
    return figure


def _apart(own: pd.DataFrame) -> pd.DataFrame:
    """Rows with a gap before `retrained`, so that no line leads from answers to retraining."""
    if "retrained" not in own.index:
        return own
    gap = own.loc[["retrained"]].assign(value=np.nan)
    return pd.concat([own.drop(index="retrained"), gap, own.loc[["retrained"]]])


def budget_lines(rows: pd.DataFrame, *, dark: bool, subtitle: str) -> go.Figure:
    """Accuracy of each router while no larger model may be chosen.

    Args:
        rows: name (most parameters, digits), router, value, low, high, n.
        dark: Theme.
        subtitle: The n.
    """
    colours = theme.palette(dark)
    own = rows.assign(place=rows["name"].astype(float)).sort_values("place")
    figure = go.Figure(
        layout=theme.layout(
            dark,
            height=340,
            title={"text": "Under a budget of parameters", "subtitle": {"text": subtitle}},
            xaxis={
                "title": {"text": "largest model allowed (parameters, logarithmic)"},
                "type": "log",
                "nticks": 6,
                "minor": {"showgrid": False},
            },
            yaxis={"title": {"text": text.RIGHT_SHARE}, "tickformat": ".0%", "nticks": 6},
            legend=_legend(),
            margin={"l": 8, "r": 16, "t": 54, "b": 76},
        )
    )
    for router in ordered(list(own["router"])):
        figure.add_trace(_marks(own[own["router"] == router], router, colours, along="y"))
    return figure


def usage_bars(rows: pd.DataFrame, router: str, *, dark: bool, subtitle: str) -> go.Figure:
    """Questions a router sends to each model, those answered right in the accent.

    Args:
        rows: model, n, right; in the order drawn.
        router: The router.
        dark: Theme.
        subtitle: How many models are called, and how many there are.
    """
    colours = theme.palette(dark)
    places = np.arange(len(rows))
    figure = go.Figure(
        layout=theme.layout(
            dark,
            height=23 * max(1, len(rows)) + 142,
            barmode="stack",
            title={
                "text": f"Models used by {text.router_words(router)}",
                "subtitle": {"text": subtitle},
            },
            xaxis={"title": {"text": text.USED}, "nticks": 6},
            yaxis={
                "tickvals": places,
                "ticktext": [escaped(str(name)) for name in rows["model"]],
                "tickfont": {"color": colours.text, "size": 11},
                "range": [len(rows) - 0.45, -0.55],
                "showgrid": False,
                "ticklabelstandoff": 4,
            },
            legend=_legend(),
            margin={"l": 8, "r": 16, "t": 54, "b": 64},
        )
    )
    for name, values, shade in (
        ("answered right", rows["right"], colours.accent),
        ("answered wrong", rows["n"] - rows["right"], colours.faint),
    ):
        figure.add_bar(
            orientation="h",
            x=values,
            y=places,
            name=name,
            marker={"color": shade},
            customdata=[escaped(str(model)) for model in rows["model"]],
            hovertemplate=f"%{{customdata}}: %{{x:,}} {name}<extra></extra>",
        )
    return figure


def ranking_bars(
    rows: pd.DataFrame, *, dark: bool, title: str, subtitle: str, chosen: str, band: str
) -> go.Figure:
    """Models by predicted chance, with a band behind each mark.

    Args:
        rows: model, predicted, low, high (NaN where not known), correct (None where not known).
        dark: Theme.
        title: Title of the figure.
        subtitle: Its second line.
        chosen: Model whose name is written in bold.
        band: What the band is, in words: how often such predictions came true, or an interval.
    """
    colours = theme.palette(dark)
    places = np.arange(len(rows))
    marks = [{True: "✓ ", False: "✗ "}.get(value, "") for value in rows["correct"]]
    names = [
        f"{mark}<b>{escaped(str(model))}</b>" if model == chosen else f"{mark}{escaped(str(model))}"
        for mark, model in zip(marks, rows["model"], strict=True)
    ]
    figure = go.Figure(
        layout=theme.layout(
            dark,
            height=25 * max(1, len(rows)) + 116,
            showlegend=False,
            title={"text": title, "subtitle": {"text": subtitle}},
            xaxis={
                "title": {"text": "predicted chance of a right answer"},
                "range": [0, 1],
                "tickformat": ".0%",
                "tickvals": CHANCES,
            },
            yaxis=row_axis(names, colours),
            margin={"l": 8, "r": 28, "t": 54, "b": 8},
        )
    )
    known = rows[["low", "high"]].notna().all(axis=1).to_numpy()
    figure.add_bar(
        orientation="h",
        x=(rows["high"] - rows["low"])[known],
        base=rows["low"][known],
        y=places[known],
        width=0.34,
        marker={"color": colours.faint},
        hoverinfo="skip",
    )
    figure.add_scatter(
        x=rows["predicted"],
        y=places,
        mode="markers",
        marker={"color": colours.accent, "size": 10, "symbol": "diamond"},
        customdata=rows[["low", "high"]].to_numpy(),
        hovertemplate=(
            f"predicted %{{x:.1%}}<br>{band}: "
            "%{customdata[0]:.1%} to %{customdata[1]:.1%}<extra></extra>"
        ),
        cliponaxis=False,
    )
    return figure


def ranking_alt(rows: pd.DataFrame) -> str:
    """The first models in one sentence."""
    said = "; ".join(f"{r['model']} {r['predicted']:.0%}" for r in rows.head(4).to_dict("records"))
    return f"Models by predicted chance of a right answer: {said or 'none'}."
