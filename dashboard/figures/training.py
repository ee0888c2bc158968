"""Figures of a training run: loss and coverage on the way."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from dashboard import theme


_POINTS = 600


def loss_curve(log: pd.DataFrame, evaluations: pd.DataFrame, *, dark: bool) -> go.Figure:
    """Cross-entropy by tokens seen, smoothed, with the held-out loss.

    Args:
        log: Rows of `training_log`.
        evaluations: Rows of `evaluations`; may be empty.
        dark: Theme.
    """
    colours = theme.palette(dark)
    thin = _thinned(log)
    span = _loss_range(thin)
    smooth = thin["cross_entropy"].ewm(span=25).mean()
    figure = go.Figure(
        layout=theme.layout(
            dark,
            title={"text": "Loss while training", "subtitle": {"text": f"n = {len(log):,} steps"}},
            xaxis={"title": {"text": "tokens seen"}, "exponentformat": "SI"},
            yaxis={"title": {"text": "cross-entropy (nats per token)"}, "range": span},
            showlegend=False,
            margin={"l": 8, "r": 84, "t": 54, "b": 8},
        )
    )
    figure.add_trace(
        go.Scatter(
            x=thin["tokens_seen"],
            y=thin["cross_entropy"],
            mode="lines",
            line={"width": 1, "color": colours.faint},
            hoverinfo="skip",
            name="step",
        )
    )
    figure.add_trace(
        go.Scatter(
            x=thin["tokens_seen"],
            y=smooth,
            mode="lines",
            line={"width": 1.6, "color": colours.rest},
            hovertemplate="%{x:,} tokens<br>training %{y:.3f} nats<extra></extra>",
            name="training",
        )
    )
    ends = [(float(smooth.iloc[-1]), "training", colours.muted)]
    if len(evaluations):
        seen = np.interp(evaluations["step"], log["step"], log["tokens_seen"])
        figure.add_trace(
            go.Scatter(
                x=seen,
                y=evaluations["validation_loss"],
                mode="lines+markers",
                marker={"size": 5, "symbol": "diamond"},
                line={"width": 1.6, "color": colours.accent},
                hovertemplate="%{x:,} tokens<br>held out %{y:.3f} nats<extra></extra>",
                name="held out",
            )
        )
        ends.append((float(evaluations["validation_loss"].iloc[-1]), "held out", colours.accent))
    low, high = span or (0.0, float(thin["cross_entropy"].max()))
    _label_apart(figure, ends, 0.09 * (high - low))
    return figure


def bank_loss_curve(log: pd.DataFrame, *, dark: bool) -> go.Figure:
    """The bank's three losses by tokens seen, for a run that trains nothing but the bank.

    Args:
        log: Rows of `training_log`.
        dark: Theme.
    """
    colours = theme.palette(dark)
    thin = _thinned(log)
    lines = (
        ("reconstruction", "REC", colours.rest, "dot"),
        ("prototype_to_token", "R1", colours.raises, "solid"),
        ("token_to_prototype", "R2", colours.accent, "solid"),
    )
    figure = go.Figure(
        layout=theme.layout(
            dark,
            title={
                "text": "Losses of the bank while fitting",
                "subtitle": {"text": f"n = {len(log):,} steps; the model itself stays as it is"},
            },
            xaxis={"title": {"text": "tokens seen"}, "exponentformat": "SI"},
            yaxis={
                "title": {"text": "1 - cosine, or squared residual share"},
                "rangemode": "tozero",
            },
            showlegend=False,
            margin={"l": 8, "r": 84, "t": 54, "b": 8},
        )
    )
    ends = _named_lines(figure, thin, "tokens_seen", "%{x:,} tokens", lines)
    highest = max((float(thin[column].max()) for column, *_ in lines), default=1.0)
    _label_apart(figure, ends, 0.09 * highest)
    return figure


def coverage_curve(evaluations: pd.DataFrame, *, dark: bool) -> go.Figure:
    """Coverage and collapse on the way: R1-bar, R2, pair cosine, residual share, dead share."""
    colours = theme.palette(dark)
    lines = (
        ("coverage_r1", "R̄1", colours.raises, "solid"),
        ("coverage_r2", "R2", colours.accent, "solid"),
        ("residual_share", "residual", colours.rest, "dot"),
        ("pair_cosine", "pair cosine", colours.lowers, "dash"),
        ("dead_share", "dead", colours.rest, "dashdot"),
    )
    figure = go.Figure(
        layout=theme.layout(
            dark,
            title={
                "text": "Coverage while training",
                "subtitle": {"text": "held-out tokens; dashed lines should stay low"},
            },
            xaxis={"title": {"text": "step"}},
            yaxis={"title": {"text": "cosine, or share"}, "range": [0, 1]},
            showlegend=False,
            margin={"l": 8, "r": 78, "t": 54, "b": 8},
        )
    )
    ends = _named_lines(figure, evaluations, "step", "step %{x:,}", lines)
    _label_apart(figure, ends, 0.075)
    return figure


def _named_lines(
    figure: go.Figure,
    rows: pd.DataFrame,
    x: str,
    where: str,
    lines: tuple[tuple[str, str, str, str], ...],
) -> list[tuple[float, str, str]]:
    """Draw a line a column (column, name, colour, dash); returns where each ends, to be named."""
    ends: list[tuple[float, str, str]] = []
    for column, name, shade, dash in lines:
        part = rows[[x, column]].dropna()
        if part.empty:
            continue
        figure.add_trace(
            go.Scatter(
                x=part[x],
                y=part[column],
                mode="lines",
                line={"width": 1.8, "color": shade, "dash": dash},
                hovertemplate=f"{where}<br>{name} %{{y:.3f}}<extra></extra>",
                name=name,
            )
        )
        ends.append((float(part[column].iloc[-1]), name, shade))
    return ends


def _thinned(log: pd.DataFrame) -> pd.DataFrame:
    """At most `_POINTS` rows, evenly spaced."""
    if len(log) <= _POINTS:
        return log
    return log.iloc[np.linspace(0, len(log) - 1, _POINTS).round().astype(int)]


def _loss_range(log: pd.DataFrame) -> list[float] | None:
    """Leaves out the first steep steps, which would flatten the rest."""
    if len(log) < 20:
        return None
    low, high = (
        float(log["cross_entropy"].min()),
        float(log["cross_entropy"].iloc[len(log) // 20 :].max()),
    )
    return [low - 0.05 * (high - low), high + 0.08 * (high - low)]


def _label_apart(figure: go.Figure, ends: list[tuple[float, str, str]], gap: float) -> None:
    """Names and values at the right ends of lines, moved `gap` apart where they would overlap."""
    last = -np.inf
    for value, name, shade in sorted(ends):
        last = max(value, last + gap)
        figure.add_annotation(
            x=1, xref="paper", y=last, text=f"{name} {value:.2f}", showarrow=False,
            xanchor="left", xshift=4, font={"size": 11, "color": shade},
        )  # fmt: skip
