"""Figures of how good a run is: banks, trade-off, loss by domain, label scores."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from dashboard import theme
from dashboard.figures.tokens import escaped


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
    frame = frame.sort_values(["coverage_r1", "arm"])
    excess = excess.loc[frame.index]
    weights = zip(frame["reconstruction_weight"], frame["prototype_to_token_weight"], strict=True)
    names = [f"{rec:.3g} · {r1:.3g}" for rec, r1 in weights]
    mean = (frame["coverage_r1"] + frame["coverage_r2"]) / 2
    figure = go.Figure(
        go.Scatter(
            x=mean,
            y=excess,
            mode="markers+text",
            text=names,
            textposition=["top center" if i % 2 else "bottom center" for i in range(len(frame))],
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
                "subtitle": {"text": f"{len(frame)} arms from one start; weights of REC · R1, R2"},
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
