"""Figures of a training run: loss, coverage, trade-off."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from dashboard import theme
from dashboard.figures.tokens import escaped


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
    ends: list[tuple[float, str, str]] = []
    for column, name, shade, dash in lines:
        part = evaluations[["step", column]].dropna()
        if part.empty:
            continue
        figure.add_trace(
            go.Scatter(
                x=part["step"],
                y=part[column],
                mode="lines",
                line={"width": 1.8, "color": shade, "dash": dash},
                hovertemplate=f"step %{{x:,}}<br>{name} %{{y:.3f}}<extra></extra>",
                name=name,
            )
        )
        ends.append((float(part[column].iloc[-1]), name, shade))
    _label_apart(figure, ends, 0.075)
    return figure


def coverage_banks(coverage: pd.DataFrame, *, dark: bool) -> go.Figure:
    """R1-bar, R2 and residual share of each bank, as dots on one axis."""
    colours = theme.palette(dark)
    marks = (
        ("coverage_r1", "R̄1", colours.raises, "circle"),
        ("coverage_r2", "R2", colours.accent, "diamond"),
        ("residual_share", "residual share", colours.lowers, "line-ns-open"),
    )
    place = {"trained": 0, "kmeans": 1, "dense-kmeans": 2, "random": 3}
    coverage = coverage.sort_values("bank", key=lambda s: s.map(place).fillna(9))
    scanned = int(coverage["tokens_scanned"].max()) if len(coverage) else 0
    figure = go.Figure(
        layout=theme.layout(
            dark,
            height=90 + 34 * max(1, len(coverage)),
            title={
                "text": "Grounding of the bank against other banks of the same size",
                "subtitle": {"text": f"n = {scanned:,} held-out tokens"},
            },
            xaxis={"title": {"text": "cosine, or share"}, "range": [0, 1.02]},
            yaxis={"autorange": "reversed"},
            legend={"orientation": "h", "x": 1, "xanchor": "right", "y": 1.02, "yanchor": "bottom"},
            margin={"l": 8, "r": 8, "t": 66, "b": 8},
        )
    )
    for column, name, shade, symbol in marks:
        figure.add_trace(
            go.Scatter(
                x=coverage[column],
                y=coverage["bank"].map(escaped),
                mode="markers",
                name=name,
                marker={
                    "size": 11,
                    "color": shade,
                    "symbol": symbol,
                    "line": {"width": 2, "color": shade},
                },
                hovertemplate=f"%{{y}}: {name} %{{x:.3f}}<extra></extra>",
            )
        )
    return figure


def tradeoff(frame: pd.DataFrame, *, dark: bool) -> go.Figure:
    """Loss against coverage over loss weights; each arm keeps its name beside the point.

    Args:
        frame: Rows of `tradeoff`; all arms start from the same point.
        dark: Theme.
    """
    colours = theme.palette(dark)
    excess = (frame["validation_loss"] / frame["dense_loss"] - 1) * 100
    mean = (frame["coverage_r1"] + frame["coverage_r2"]) / 2
    figure = go.Figure(
        go.Scatter(
            x=mean,
            y=excess,
            mode="markers+text",
            text=[escaped(a) for a in frame["arm"]],
            textposition="top center",
            textfont={"size": 11, "color": colours.muted},
            marker={"size": 10, "color": colours.accent},
            customdata=frame[["coverage_r1", "coverage_r2", "residual_share", "dead_share"]],
            hovertemplate=(
                "%{text}<br>loss %{y:+.2f} % against dense<br>R̄1 %{customdata[0]:.3f}, "
                "R2 %{customdata[1]:.3f}<br>residual %{customdata[2]:.3f}, "
                "dead %{customdata[3]:.1%}<extra></extra>"
            ),
            cliponaxis=False,
        ),
        layout=theme.layout(
            dark,
            title={
                "text": "What coverage costs",
                "subtitle": {"text": f"{len(frame)} loss weightings from one starting point"},
            },
            xaxis={"title": {"text": "mean of R̄1 and R2 (cosine)"}},
            yaxis={"title": {"text": "loss above the dense twin (%)"}, "zeroline": True},
            margin={"l": 8, "r": 24, "t": 54, "b": 8},
        ),
    )
    figure.add_hline(
        y=2.5,
        line={"color": colours.rest, "width": 1, "dash": "dot"},
        annotation={"text": "aim: 2.5 %", "font": {"size": 11, "color": colours.muted}},
        annotation_position="top left",
    )
    return figure


def loss_by_domain(frame: pd.DataFrame, *, dark: bool) -> go.Figure:
    """Held-out loss of the model and of its dense twin, by domain: two dots joined by a line.

    Args:
        frame: Rows of `validation_loss`.
        dark: Theme.
    """
    colours = theme.palette(dark)
    wide = frame.pivot_table(index="domain", columns="model", values="loss")
    first = "prism" if "prism" in wide else wide.columns[0]
    wide = wide.sort_values(first)
    names = [escaped(str(d)) for d in wide.index]
    figure = go.Figure(
        layout=theme.layout(
            dark,
            height=86 + 21 * max(1, len(wide)),
            title={
                "text": "Held-out loss by domain",
                "subtitle": {
                    "text": f"n = {int(frame.groupby('model')['n_tokens'].sum().max()):,} tokens"
                },
            },
            xaxis={"title": {"text": "cross-entropy (nats per token)"}},
            yaxis={"showgrid": False, "autorange": "reversed"},
            legend={"orientation": "h", "x": 1, "xanchor": "right", "y": 1.0, "yanchor": "bottom"},
            margin={"l": 8, "r": 8, "t": 66, "b": 8},
        )
    )
    looks = {
        "dense": ("dense twin", colours.rest, "circle-open"),
        "prism": ("PRISM", colours.accent, "circle"),
    }
    for model in wide.columns:
        name, shade, symbol = looks.get(str(model), (str(model), colours.raises, "diamond"))
        figure.add_trace(
            go.Scatter(
                x=wide[model],
                y=names,
                mode="markers",
                name=name,
                marker={
                    "size": 9,
                    "color": shade,
                    "symbol": symbol,
                    "line": {"width": 1.6, "color": shade},
                },
                hovertemplate=f"%{{y}}: {name} %{{x:.3f}} nats<extra></extra>",
            )
        )
    return figure


def label_scores(prototypes: pd.DataFrame, *, dark: bool) -> go.Figure:
    """How well labels predict, beside the label of another prototype drawn at random.

    Args:
        prototypes: Rows of `prototypes`.
        dark: Theme.
    """
    colours = theme.palette(dark)
    edges = np.linspace(0, 1, 41)
    middle = (edges[:-1] + edges[1:]) / 2
    scored = prototypes[["label_score", "random_label_score"]].dropna()
    figure = go.Figure(
        layout=theme.layout(
            dark,
            title={
                "text": "Label score",
                "subtitle": {
                    "text": f"n = {len(scored):,} of {len(prototypes):,} prototypes scored"
                },
            },
            xaxis={"title": {"text": "balanced accuracy on held-out examples"}, "range": [0.2, 1]},
            yaxis={"title": {"text": "prototypes"}},
            showlegend=False,
        )
    )
    looks = (
        ("random_label_score", "random labels", colours.rest, "dot"),
        ("label_score", "labels", colours.accent, "solid"),
    )
    for column, name, shade, dash in looks:
        counts, _ = np.histogram(scored[column], edges)
        figure.add_trace(
            go.Scatter(
                x=middle,
                y=counts,
                mode="lines",
                line={"shape": "hvh", "width": 1.8, "color": shade, "dash": dash},
                fill="tozeroy" if name == "labels" else None,
                fillcolor=_faded(shade),
                hovertemplate=f"{name}: %{{y:,}} near %{{x:.2f}}<extra></extra>",
                name=name,
            )
        )
        if len(scored):
            figure.add_annotation(
                x=float(scored[column].mean()), y=float(counts.max()), showarrow=False,
                text=f"{name}, mean {scored[column].mean():.2f}", yanchor="bottom",
                font={"size": 11, "color": shade},
            )  # fmt: skip
    return figure


def _faded(colour: str) -> str:
    """A `#rrggbb` colour at a fifth of its strength."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.2)"


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
