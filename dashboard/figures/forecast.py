"""Scores told and true, residuals by group, candidates in predicted order."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from dashboard import text_forecast as text, theme
from dashboard.figures.row_axis import row_axis
from dashboard.figures.tokens import escaped, shortened


LEGEND = 12
"""Groups with a colour of their own."""
ROW, TIGHT = 22, 17
"""Pixels a group, or a candidate, takes; where there are more than `MANY`."""
MANY = 20
JITTER = 0.16


def told_and_true(
    rows: pd.DataFrame,
    colours_of: Mapping[str, str],
    *,
    dark: bool,
    title: str,
    subtitle: str,
    reach: tuple[float, float],
) -> go.Figure:
    """Predicted over true scores with the line on which both are equal.

    Args:
        rows: model, true, predicted, group.
        colours_of: Colour of each group; others are grey.
        dark: Theme.
        title: What is left out.
        subtitle: Spearman with its interval, and n.
        reach: Range of both axes, the same for figures that stand side by side.
    """
    colours = theme.palette(dark)
    figure = go.Figure(
        layout=theme.layout(
            dark,
            height=420,
            showlegend=False,
            title={"text": title, "subtitle": {"text": subtitle}},
            xaxis={"title": {"text": text.TRUE}, "range": reach, "tickformat": ".0%", "nticks": 6},
            yaxis={
                "title": {"text": text.PREDICTED},
                "range": reach,
                "tickformat": ".0%",
                "nticks": 6,
                "scaleanchor": "x",
            },
        )
    )
    figure.add_scatter(
        x=reach, y=reach, mode="lines", hoverinfo="skip",
        line={"color": colours.muted, "width": 1.2, "dash": "dot"},
    )  # fmt: skip
    figure.add_scatter(
        x=rows["true"],
        y=rows["predicted"],
        mode="markers",
        marker={
            "size": 8,
            "color": [colours_of.get(str(g), colours.rest) for g in rows["group"]],
            "line": {"color": colours.background, "width": 0.8},
        },
        customdata=[
            f"<b>{escaped(str(m))}</b><br>{escaped(str(g))}"
            for m, g in zip(rows["model"], rows["group"], strict=True)
        ],
        hovertemplate="%{customdata}<br>true %{x:.1%}, predicted %{y:.1%}<extra></extra>",
    )
    return figure


def reach_of(rows: pd.DataFrame) -> tuple[float, float]:
    """Range that holds every true and predicted score, with room."""
    values = rows[["true", "predicted"]].to_numpy(float)
    if not values.size:
        return 0.0, 1.0
    low, high = float(values.min()), float(values.max())
    room = 0.05 * max(high - low, 0.05)
    return low - room, high + room


def told_alt(rows: pd.DataFrame, subtitle: str) -> str:
    """The scatter in one sentence."""
    worst = rows.iloc[rows["residual"].abs().argsort()[::-1][:2]] if len(rows) else rows
    said = "; ".join(
        f"{r['model']} {theme.signed(100 * float(r['residual']), 2)} points"
        for r in worst.to_dict("records")
    )
    return f"Predicted over true scores of {len(rows)} models; {subtitle}. Furthest off: {said}."


def residual_strips(
    rows: pd.DataFrame,
    groups: Sequence[str],
    colours_of: Mapping[str, str],
    *,
    dark: bool,
    title: str,
    reach: float,
) -> go.Figure:
    """Residuals of each group of models, their mean as a line across.

    Args:
        rows: model, group, residual.
        groups: Groups from top to bottom.
        colours_of: Colour of each group; others are grey.
        dark: Theme.
        title: What is left out.
        reach: Largest absolute residual drawn, the same for figures that stand side by side.
    """
    colours = theme.palette(dark)
    place = {group: at for at, group in enumerate(groups)}
    own = rows[rows["group"].isin(place)]
    jitter = np.random.default_rng(0).uniform(-JITTER, JITTER, len(own))
    means = own.groupby("group")["residual"].mean().reindex(list(groups))
    figure = go.Figure(
        layout=theme.layout(
            dark,
            height=ROW * max(1, len(groups)) + 118,
            showlegend=False,
            title={"text": title, "subtitle": {"text": "residual by group; line: its mean"}},
            xaxis={
                "title": {"text": "predicted less true score (points)"},
                "range": [-105 * reach, 105 * reach],
                "zeroline": True,
                "zerolinecolor": colours.muted,
                "nticks": 6,
            },
            yaxis=row_axis([escaped(shortened(str(group), 30)) for group in groups], colours),
        )
    )
    figure.add_scatter(
        x=100 * own["residual"],
        y=own["group"].map(place).to_numpy(float) + jitter,
        mode="markers",
        marker={
            "size": 6,
            "opacity": 0.85,
            "color": [colours_of.get(str(g), colours.rest) for g in own["group"]],
        },
        customdata=[escaped(str(model)) for model in own["model"]],
        hovertemplate="%{customdata}: %{x:+.1f} points<extra></extra>",
    )
    figure.add_scatter(
        x=100 * means,
        y=np.arange(len(groups)),
        mode="markers",
        marker={"symbol": "line-ns", "size": 14, "line": {"width": 2.2, "color": colours.text}},
        hovertemplate="mean %{x:+.1f} points<extra></extra>",
    )
    return figure


def residuals_alt(rows: pd.DataFrame) -> str:
    """Groups that are told furthest off, in one sentence."""
    means = rows.groupby("group")["residual"].mean()
    order = means.abs().sort_values(ascending=False).index[:3]
    said = "; ".join(f"{group} {theme.signed(100 * float(means[group]), 2)}" for group in order)
    return f"Mean residual by group in points, furthest off: {said or 'none'}."


def candidate_bars(
    rows: pd.DataFrame, *, dark: bool, title: str, subtitle: str, axis: str
) -> go.Figure:
    """True outcome of each base in predicted order, with what was predicted; the ten judged strong.

    Args:
        rows: model, true, predicted, place, true_place; in the order drawn.
        dark: Theme.
        title: Target and outcome.
        subtitle: Method and n.
        axis: Title of the axis with its unit.
    """
    colours = theme.palette(dark)
    places = np.arange(len(rows))
    names = [
        f"{int(place)}. {escaped(shortened(str(model), 30))}"
        for model, place in zip(rows["model"], rows["place"], strict=True)
    ]
    figure = go.Figure(
        layout=theme.layout(
            dark,
            height=(ROW if len(rows) <= MANY else TIGHT) * max(1, len(rows)) + 140,
            title={"text": title, "subtitle": {"text": subtitle}},
            xaxis={"title": {"text": axis}, "tickformat": ".0%", "nticks": 6},
            yaxis=row_axis(names, colours),
            legend={
                "orientation": "h",
                "x": 0,
                "xref": "container",
                "y": 0,
                "yanchor": "bottom",
                "yref": "container",
            },
            margin={"l": 8, "r": 16, "t": 54, "b": 66},
        )
    )
    figure.add_bar(
        orientation="h",
        x=rows["true"],
        y=places,
        name="after real adaptation",
        marker={"color": np.where(rows["place"] <= 10, colours.rest, colours.faint)},
        customdata=[
            (escaped(str(m)), int(p))
            for m, p in zip(rows["model"], rows["true_place"], strict=True)
        ],
        hovertemplate="%{customdata[0]}: %{x:.1%}, place %{customdata[1]} of all<extra></extra>",
    )
    figure.add_scatter(
        x=rows["predicted"],
        y=places,
        mode="markers",
        name="predicted before",
        marker={"color": colours.accent, "symbol": "diamond", "size": 8},
        hovertemplate="predicted %{x:.1%}<extra></extra>",
        cliponaxis=False,
    )
    return figure


def candidates_alt(rows: pd.DataFrame) -> str:
    """The first candidates in one sentence."""
    said = "; ".join(
        f"{r['model']} (truly place {int(r['true_place'])})"
        for r in rows.head(3).to_dict("records")
    )
    return f"Bases in predicted order: {said or 'none'}."
