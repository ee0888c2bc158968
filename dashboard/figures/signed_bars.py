"""Signed numbers of prototypes as bars: blue to the right, orange to the left, the sign written."""

from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from dashboard.figures.tokens import escaped, shortened
from dashboard.theme import layout, number, palette, signed


ROW_HEIGHT = 25
"""Pixels a bar takes."""
LABEL_LENGTH, SHORT_LABEL = 30, 15
"""Characters of a label written beside a bar; in a narrow column."""


def prototype_bars(
    rows: pd.DataFrame,
    *,
    axis: str,
    title: str,
    subtitle: str,
    selected: int | None,
    dark: bool,
    label_length: int = LABEL_LENGTH,
) -> go.Figure:
    """Bars in the order of `rows`; a click gives the prototype in `customdata`.

    Args:
        rows: prototype, label, label_score (NaN where it was not measured) and value.
        axis: Title of the axis, with unit and the meaning of both signs.
        title: Title of the figure.
        subtitle: Its second line, with the n.
        selected: Prototype drawn with an outline.
        dark: Theme.
        label_length: Characters of a label that are written; hovering gives all.
    """
    colours = palette(dark)
    values = rows["value"].to_numpy(dtype=np.float64)
    figure = _empty(values, axis, {"text": title, "subtitle": {"text": subtitle}}, dark)
    chosen = rows["prototype"] == selected
    figure.add_bar(
        orientation="h",
        y=bar_names(rows, label_length),
        x=values,
        width=0.7,
        marker={
            "color": np.where(values >= 0, colours.raises, colours.lowers),
            "line": {"color": colours.text, "width": np.where(chosen, 2, 0)},
        },
        text=[signed(value) for value in values],
        textposition="outside",
        cliponaxis=False,
        customdata=rows[["prototype", "label"]]
        .assign(label=rows["label"].map(escaped))
        .to_numpy(dtype=object),
        hovertemplate="#%{customdata[0]} %{customdata[1]}<br>%{x:+.4g}<extra></extra>",
    )
    return figure


def _empty(values: np.ndarray, axis: str, title: dict[str, Any], dark: bool) -> go.Figure:
    """The figure's frame: room for the numbers beside the bars, a row a value."""
    colours = palette(dark)
    reach = 1.6 * max(float(np.abs(values).max(initial=0.0)), 1e-9)
    low = -reach if (values < 0).any() else 0.0
    high = reach if (values > 0).any() or not len(values) else 0.0
    return go.Figure(
        layout=layout(
            dark,
            height=ROW_HEIGHT * max(1, len(values)) + 124,
            title=title,
            showlegend=False,
            xaxis={
                "title": {"text": axis},
                "range": [low, high],
                "nticks": 5,
                "tickangle": 0,
                "zeroline": True,
                "zerolinecolor": colours.muted,
            },
            yaxis={
                "range": [len(values) - 0.5, -0.5],
                "showgrid": False,
                "ticklabelstandoff": 4,
                "tickfont": {"color": colours.text},
            },
            margin={"l": 8, "r": 8, "t": 54, "b": 8},
        )
    )


def bar_names(rows: pd.DataFrame, label_length: int) -> list[str]:
    """A prototype's label, number and label score, each distinct by its number."""
    return [
        f"{escaped(shortened(str(label), label_length))}  #{prototype}"
        + ("" if pd.isna(score) else f"  ({number(float(score), 2)})")
        for prototype, label, score in zip(
            rows["prototype"], rows["label"], rows["label_score"], strict=True
        )
    ]


def bars_alt(rows: pd.DataFrame, what: str) -> str:
    """The largest bars in one sentence."""
    first = "; ".join(
        f"prototype {prototype} ({label}) {signed(value)}"
        for prototype, label, value in rows[["prototype", "label", "value"]].head(3).to_numpy()
    )
    return f"{what} of {len(rows)} prototypes. Largest: {first or 'none'}."
