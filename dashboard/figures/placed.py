"""Where an added model lies on a picture of the map, with its nearest neighbours marked."""

from collections.abc import Sequence

import pandas as pd
import plotly.graph_objects as go

from dashboard import theme
from dashboard.figures.tokens import escaped, shortened


NAMED = 5
"""Neighbours whose names are written."""


def placed(
    rows: pd.DataFrame,
    model: str,
    nearest: Sequence[str],
    *,
    dark: bool,
    title: str,
    subtitle: str,
) -> go.Figure:
    """The map in grey, the nearest neighbours in the accent, the model as a star.

    Args:
        rows: model, x, y of every model of the picture.
        model: The model that was added.
        nearest: Its nearest neighbours by cosine, nearest first.
        dark: Theme.
        title: Kind of picture.
        subtitle: How many models there are.
    """
    colours = theme.palette(dark)
    axis = {"showgrid": False, "zeroline": False, "showticklabels": False, "ticks": ""}
    figure = go.Figure(
        layout=theme.layout(
            dark,
            height=460,
            title={"text": title, "subtitle": {"text": subtitle}},
            xaxis={**axis, "title": {"text": "places have no unit; near is alike"}},
            yaxis={**axis, "scaleanchor": "x"},
            legend={
                "orientation": "h", "x": 0, "xref": "container", "y": 0, "yanchor": "bottom",
                "yref": "container",
            },
            margin={"l": 8, "r": 8, "t": 54, "b": 64},
        )
    )  # fmt: skip
    marked = set(nearest)
    others = rows[(rows["model"] != model) & ~rows["model"].isin(marked)]
    figure.add_trace(_points(others, "other models", colours.faint, "circle", 7))
    near = rows[rows["model"].isin(marked)]
    figure.add_trace(_points(near, "nearest by cosine", colours.accent, "circle", 9))
    for rank, name in enumerate(nearest[:NAMED], start=1):
        own = near[near["model"] == name]
        for x, y in zip(own["x"], own["y"], strict=True):
            figure.add_annotation(
                x=x, y=y, text=f"{rank}. {escaped(shortened(str(name), 26))}", showarrow=False,
                yshift=12, font={"size": 11, "color": colours.muted},
            )  # fmt: skip
    figure.add_trace(
        _points(rows[rows["model"] == model], escaped(model), colours.lowers, "star", 17)
    )
    return figure


def _points(rows: pd.DataFrame, name: str, shade: str, symbol: str, size: int) -> go.Scatter:
    return go.Scatter(
        x=rows["x"],
        y=rows["y"],
        mode="markers",
        name=name,
        marker={"color": shade, "symbol": symbol, "size": size},
        customdata=[escaped(str(model)) for model in rows["model"]],
        hovertemplate="%{customdata}<extra></extra>",
        cliponaxis=False,
    )


def placed_alt(rows: pd.DataFrame, model: str, nearest: Sequence[str]) -> str:
    """The picture in one sentence."""
    return (
        f"{model} among {len(rows)} models; nearest by cosine: {', '.join(nearest[:3]) or 'none'}."
    )
