"""Figures of curvature: co-usage by label, spectra."""

from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from dashboard import theme
from dashboard.figures.tokens import escaped, shortened


ROW_HEIGHT = 19
"""Pixels a category takes."""
FARTHEST = 3.0
"""Doublings at which the colour of a difference from chance is full."""
FAINTEST = 1e-5
"""Share at which the colour of a share ends."""


def ordered(frame: pd.DataFrame) -> list[str]:
    """Categories by their share of co-usage, largest first."""
    totals = frame.groupby("category")["share"].sum()
    return [str(name) for name in totals.sort_values(ascending=False, kind="stable").index]


def cousage_map(frame: pd.DataFrame, tokens: int, *, chance: bool, dark: bool) -> go.Figure:
    """Heat-map of co-usage between categories of label.

    Args:
        frame: Rows of `curvature_cousage`.
        tokens: Training tokens it was counted over.
        chance: Colour by share over expected share, in doublings, instead of by share.
        dark: Theme.
    """
    colours = theme.palette(dark)
    names = ordered(frame)
    cells = frame.assign(ratio=frame["share"] / frame["expected_share"].where(lambda s: s > 0))
    grids = {
        column: cells.pivot_table(
            index="category", columns="other", values=column, aggfunc="sum", min_count=1
        ).reindex(index=names, columns=names)
        for column in ("share", "ratio", "n_pairs")
    }
    values = grids["ratio"] if chance else grids["share"]
    logs = (np.log2 if chance else np.log10)(values.where(values > 0).to_numpy(np.float64))
    shown = [escaped(shortened(name)) for name in names]
    figure = go.Figure(
        layout=theme.layout(
            dark,
            height=ROW_HEIGHT * len(names) + 190,
            title={
                "text": "Which labels are used together",
                "subtitle": {
                    "text": f"n = {tokens:,} training tokens; pairs of different prototypes"
                },
            },
            xaxis={"title": {"text": "category of the other prototype"}, "tickangle": -50},
            yaxis={"title": {"text": "category of one prototype"}, "autorange": "reversed"},
        )
    )
    figure.add_heatmap(
        z=logs,
        x=shown,
        y=shown,
        xgap=1,
        ygap=1,
        customdata=np.dstack([grids[c].to_numpy() for c in ("share", "ratio", "n_pairs")]),
        hovertemplate=(
            "%{y} × %{x}<br>%{customdata[0]:.3%} of co-usage<br>%{customdata[1]:.2f} × chance"
            "<br>n = %{customdata[2]:,.0f} pairs<extra></extra>"
        ),
        hoverongaps=False,
        **_scale(colours, chance=chance),
    )
    figure.update_xaxes(showgrid=False)
    figure.update_yaxes(showgrid=False)
    return figure


def _scale(colours: theme.Palette, *, chance: bool) -> dict[str, object]:
    """Colours and their bar: blue above chance, orange below; or one hue by order of magnitude."""
    bar = {"thickness": 8, "len": 0.9, "outlinewidth": 0}
    if chance:
        ticks = [-3, -2, -1, 0, 1, 2, 3]
        return {
            "zmin": -FARTHEST,
            "zmax": FARTHEST,
            "colorscale": [[0, colours.lowers], [0.5, colours.panel], [1, colours.raises]],
            "colorbar": {
                **bar,
                "title": {"text": "× chance", "font": {"size": 11}},
                "tickvals": ticks,
                "ticktext": ["≤ ⅛", "¼", "½", "1", "2", "4", "≥ 8"],
            },
        }
    ticks = [-5, -4, -3, -2, -1]
    return {
        "zmin": float(np.log10(FAINTEST)),
        "zmax": -0.7,
        "colorscale": [[0, colours.panel], [1, colours.accent]],
        "colorbar": {
            **bar,
            "title": {"text": "share of<br>co-usage", "font": {"size": 11}},
            "tickvals": ticks,
            "ticktext": ["≤ 0.001 %", "0.01 %", "0.1 %", "1 %", "10 %"],
        },
    }


def cousage_alt(frame: pd.DataFrame) -> str:
    """The picture in words: the largest cells."""
    top = frame.sort_values("share", ascending=False).head(3)
    said = "; ".join(f"{row.category} with {row.other} {row.share:.1%}" for row in top.itertuples())
    return f"Co-usage between {frame['category'].nunique()} categories; largest: {said}."


_BELOW = {"orientation": "h", "x": 0, "y": -0.2, "yanchor": "top", "traceorder": "normal"}
"""Place of a legend below the axis."""


def spectra(
    frame: pd.DataFrame,
    lines: list[tuple[str, str, str, str]],
    *,
    key: str,
    title: str,
    subtitle: str,
    dark: bool,
    height: int = 380,
) -> go.Figure:
    """Eigenvalues by rank on logarithmic axes, each line over its own mean eigenvalue.

    Args:
        frame: Rows of `curvature_spectrum` with `mean_eigenvalue` beside; what is not above 0 is
            not drawn.
        lines: Value of the column `key`, name, colour and dash of each line, in order.
        key: Column that tells the lines apart.
        title: What is compared.
        subtitle: How many eigenvalues and tokens it rests on.
        dark: Theme.
        height: Pixels.
    """
    figure = go.Figure(
        layout=theme.layout(
            dark,
            height=height,
            title={"text": title, "subtitle": {"text": subtitle}},
            xaxis={"title": {"text": "rank of the eigenvalue, from 1"}, "type": "log", "dtick": 1},
            yaxis={
                "title": {"text": "eigenvalue ÷ mean eigenvalue"},
                "type": "log",
                "exponentformat": "power",
                "dtick": 1,
            },
            legend=_BELOW,
            margin={"l": 8, "r": 12, "t": 54, "b": 8},
        )
    )
    named: set[str] = set()
    for value, name, shade, dash in lines:
        rows = frame[(frame[key] == value) & (frame["eigenvalue"] > 0)].sort_values("rank")
        figure.add_trace(
            go.Scatter(
                x=rows["rank"] + 1,
                y=rows["eigenvalue"] / rows["mean_eigenvalue"],
                mode="lines",
                line={"width": 1.8, "color": shade, "dash": dash},
                name=escaped(name),
                legendgroup=escaped(name),
                showlegend=name not in named,
                hovertemplate=f"{escaped(name)}<br>rank %{{x:,}}: %{{y:.3g}} × mean<extra></extra>",
            )
        )
        named.add(name)
    return figure


def spectra_alt(figure: go.Figure) -> str:
    """The picture in words: where each line starts and ends."""
    traces: list[Any] = list(figure.data)
    parts = [
        f"{trace.name} from {float(trace.y[0]):.3g} to {float(trace.y[-1]):.3g}"
        for trace in traces
        if len(trace.y)
    ]
    return f"Eigenvalues over their mean, by rank: {'; '.join(parts)}."


def ramp(steps: int, colours: theme.Palette) -> list[str]:
    """Colours from grey to the accent for values in order."""
    low, high = (
        np.array([int(c[i : i + 2], 16) for i in (1, 3, 5)])
        for c in (colours.faint, colours.accent)
    )
    places = np.linspace(0.25, 1, max(steps, 2))[-steps:]
    mixed = (low + (high - low) * places[:, None]).round().astype(int)
    return [f"#{r:02x}{g:02x}{b:02x}" for r, g, b in mixed]
