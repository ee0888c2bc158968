"""How far scores of training texts can be trusted: a dot with its interval for each method."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from dashboard import theme
from dashboard.figures.tokens import escaped


ROW = 27
"""Pixels a method takes."""


def two_decimals(value: float) -> str:
    """A number beside its mark; what rounds to nothing has no minus."""
    return f"{round(value, 2) + 0.0:.2f}".replace("-", "−")


def interval_dots(
    rows: pd.DataFrame,
    *,
    dark: bool,
    title: str,
    subtitle: str,
    axes: Mapping[str, str],
    ceilings: Mapping[str, tuple[float, float, float]] | None = None,
    chosen: str = "",
    least_first: bool = False,
) -> go.Figure:
    """A dot with its 95 % interval for each method, one panel a measure, best on top.

    Args:
        rows: method (words), panel, value, low, high; NaN where a method was not measured.
        dark: Theme.
        title: What is compared.
        subtitle: Setting and n.
        axes: Title of the axis of each panel, in the order drawn; the first orders the methods.
        ceilings: Highest value noise allows, with its interval, by panel; drawn as a band.
        chosen: Method drawn with the accent.
        least_first: Whether the least value is the best.
    """
    colours = theme.palette(dark)
    names = _order(rows, next(iter(axes)), least_first=least_first)
    figure = make_subplots(rows=1, cols=len(axes), shared_yaxes=True, horizontal_spacing=0.05)
    for column, (panel, axis) in enumerate(axes.items(), start=1):
        own = rows[rows["panel"] == panel].set_index("method").reindex(names).reset_index()
        figure.add_trace(_dots(own, chosen, colours), row=1, col=column)
        figure.update_xaxes(
            title_text=axis, range=_reach(own, (ceilings or {}).get(panel)), row=1, col=column
        )
        figure.add_vline(x=0, line={"color": colours.faint, "width": 1}, row=1, col=column)  # pyright: ignore[reportArgumentType]
        if ceilings and panel in ceilings:
            _ceiling(figure, ceilings[panel], column, colours)
    figure.update_yaxes(
        range=[len(names) - 0.5, -0.5], showgrid=False, zeroline=False, ticklabelstandoff=4,
        tickfont_color=colours.text,
    )  # fmt: skip
    figure.update_layout(
        theme.layout(
            dark,
            height=126 + ROW * max(1, len(names)),
            showlegend=False,
            title={"text": title, "subtitle": {"text": subtitle}},
            margin={"l": 8, "r": 24, "t": 78, "b": 8},
        )
    )
    return figure


def _order(rows: pd.DataFrame, panel: str, *, least_first: bool) -> list[str]:
    """Methods by falling or rising value in `panel`; those without one last."""
    first = rows[rows["panel"] == panel].set_index("method")["value"]
    names = list(dict.fromkeys(rows["method"]))
    known = first.dropna().sort_values(ascending=least_first, kind="stable")
    return [*(str(name) for name in known.index), *(n for n in names if n not in known.index)]


def _dots(own: pd.DataFrame, chosen: str, colours: theme.Palette) -> go.Scatter:
    mine = (own["method"] == chosen).to_numpy()
    return go.Scatter(
        x=own["value"],
        y=[escaped(str(name)) for name in own["method"]],
        mode="markers+text",
        text=["" if pd.isna(v) else two_decimals(float(v)) for v in own["value"]],
        textposition="top center",
        textfont={"size": 11},
        marker={
            "color": np.where(mine, colours.accent, colours.muted),
            "symbol": np.where(mine, "diamond", "circle"),
            "size": np.where(mine, 11, 8),
        },
        error_x={
            "type": "data",
            "symmetric": False,
            "array": own["high"] - own["value"],
            "arrayminus": own["value"] - own["low"],
            "color": colours.rest,
            "thickness": 1.4,
            "width": 3,
        },
        customdata=own[["low", "high"]].to_numpy(),
        hovertemplate=(
            "%{y}: %{x:.3f}<br>95 % interval %{customdata[0]:.3f} to %{customdata[1]:.3f}"
            "<extra></extra>"
        ),
        cliponaxis=False,
    )


def _reach(own: pd.DataFrame, ceiling: tuple[float, float, float] | None) -> list[float]:
    """Range of a panel: all intervals, the ceiling and zero."""
    values = own[["value", "low", "high"]].to_numpy(dtype=np.float64)
    low = float(np.nanmin(values)) if np.isfinite(values).any() else 0.0
    high = float(np.nanmax(values)) if np.isfinite(values).any() else 1.0
    high = max(high, *(ceiling or ()), 0.0)
    low = min(low, 0.0)
    room = 0.06 * max(high - low, 0.05)
    return [low - room, high + room]


def _ceiling(
    figure: go.Figure, ceiling: tuple[float, float, float], column: int, colours: theme.Palette
) -> None:
    """The noise ceiling as a dotted line with a band for its interval, named above the panel."""
    value, low, high = ceiling
    figure.add_vrect(
        x0=low, x1=high, fillcolor=colours.rest, opacity=0.14, line_width=0, row=1, col=column  # pyright: ignore[reportArgumentType]
    )  # fmt: skip
    figure.add_vline(
        x=value, line={"color": colours.rest, "dash": "dot", "width": 1.4}, row=1, col=column  # pyright: ignore[reportArgumentType]
    )  # fmt: skip
    figure.add_annotation(
        x=value, y=1, yref="y domain" if column == 1 else f"y{column} domain", yanchor="bottom",
        xref="x" if column == 1 else f"x{column}", xanchor="right", showarrow=False,
        text=f"noise ceiling {value:.2f}", font={"size": 11, "color": colours.muted},
    )  # fmt: skip


def interval_alt(rows: pd.DataFrame, panel: str, what: str) -> str:
    """The first panel in one sentence."""
    own = rows[rows["panel"] == panel].dropna(subset=["value"])
    best = own.sort_values("value", ascending=False).head(4)
    parts = [
        f"{row['method']} {row['value']:.2f} [{row['low']:.2f}, {row['high']:.2f}]"
        for row in best.to_dict("records")
    ]
    return f"{what}, best first: {'; '.join(parts)}."
