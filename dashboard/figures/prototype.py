"""Figures of one prototype, or of two side by side."""

import pandas as pd
import plotly.graph_objects as go

from dashboard import theme
from dashboard.figures.tokens import escaped


def activation_histogram(
    frame: pd.DataFrame, *, dark: bool, value: float | None = None, height: int = 178
) -> go.Figure:
    """Histogram of activations where the prototype is active.

    Args:
        frame: Rows of `prototype_histograms` of one prototype.
        dark: Theme.
        value: Activation of the token read; its bin is marked.
        height: Pixels.
    """
    colours = theme.palette(dark)
    middle = (frame["low"] + frame["high"]) / 2
    inside = pd.Series(False, index=frame.index)
    if value is not None:
        inside = (frame["low"] <= value) & (value < frame["high"])
    total = int(frame["count"].sum())
    figure = go.Figure(
        go.Bar(
            x=middle,
            y=frame["count"],
            width=frame["high"] - frame["low"],
            marker={
                "color": [colours.lowers if i else colours.accent for i in inside],
                "line": {"width": 0.5, "color": colours.background},
            },
            customdata=frame[["low", "high"]],
            hovertemplate=(
                "%{customdata[0]:.3f} to %{customdata[1]:.3f}<br>%{y:,} tokens<extra></extra>"
            ),
        ),
        layout=theme.layout(
            dark,
            height=height,
            title={
                "text": "Activations",
                "subtitle": {"text": f"n = {total:,} tokens where it is active"},
            },
            xaxis={"title": {"text": "activation (cosine)"}, "range": _range(frame)},
            yaxis={"title": {"text": "tokens (log)"}, "type": "log", "dtick": 1, "nticks": 4},
            margin={"l": 8, "r": 8, "t": 54, "b": 8},
            bargap=0,
        ),
    )
    if value is not None:
        figure.add_annotation(
            x=value, y=1, yref="paper", text=f"this token {value:.3f}", showarrow=False,
            font={"size": 11, "color": colours.lowers}, xanchor="auto", yanchor="bottom",
        )  # fmt: skip
    return figure


def _range(frame: pd.DataFrame) -> list[float]:
    """Axis from just below the lowest filled bin to just above the highest."""
    filled = frame[frame["count"] > 0]
    if filled.empty:
        return [0.0, 1.0]
    width = float((frame["high"] - frame["low"]).iloc[0])
    return [
        max(0.0, float(filled["low"].min()) - width),
        min(1.0, float(filled["high"].max()) + width),
    ]


def signature_bars(frame: pd.DataFrame, *, dark: bool, n: int = 8, height: int = 0) -> go.Figure:
    """What a prototype raises and lowers in the vocabulary.

    Args:
        frame: Rows of `prototype_signatures` of one prototype with a `token` text column.
        dark: Theme.
        n: Tokens at each end.
        height: Pixels; 0 fits the rows.
    """
    colours = theme.palette(dark)
    top = frame[frame["side"] == "top"].sort_values("rank").head(n)
    bottom = frame[frame["side"] == "bottom"].sort_values("rank", ascending=False).tail(n)
    rows = pd.concat([top, bottom])
    places = list(range(len(rows)))
    shades = [colours.raises if v >= 0 else colours.lowers for v in rows["logit"]]
    return go.Figure(
        go.Bar(
            x=rows["logit"],
            y=places,
            orientation="h",
            marker={"color": shades},
            customdata=rows[["token_id"]],
            hovertemplate="token %{customdata[0]}: %{x:+.3f} logits<extra></extra>",
            cliponaxis=False,
        ),
        layout=theme.layout(
            dark,
            height=height or 88 + 17 * max(1, len(rows)),
            title={
                "text": "Token-logit signature W p",
                "subtitle": {"text": f"{len(top)} most raised, {len(bottom)} most lowered tokens"},
            },
            xaxis={"title": {"text": "logits per unit of activation"}, "zeroline": True},
            yaxis={
                "tickvals": places,
                "ticktext": [escaped(t) for t in rows["token"]],
                "tickfont": {"family": theme.MONOSPACE, "size": 11.5, "color": colours.text},
                "autorange": "reversed",
                "showgrid": False,
            },
            margin={"l": 8, "r": 8, "t": 54, "b": 8},
        ),
    )


def domain_bars(frame: pd.DataFrame, *, dark: bool, n: int = 6, height: int = 182) -> go.Figure:
    """Where a prototype is active: share of its tokens by domain, lift beside the bar.

    Args:
        frame: Rows of `prototype_domains` of one prototype.
        dark: Theme.
        n: Domains shown, the largest first.
        height: Pixels.
    """
    colours = theme.palette(dark)
    rows = frame.sort_values("share", ascending=False).head(n)
    rest = max(0.0, 1.0 - float(rows["share"].sum()))
    note = f"{len(rows)} largest of {len(frame)}" + (
        f", {rest:.0%} elsewhere" if rest > 5e-3 else ""
    )
    return go.Figure(
        go.Bar(
            x=rows["share"],
            y=rows["domain"].map(escaped),
            orientation="h",
            marker={"color": colours.rest},
            text=[f"×{theme.number(v, 2)}" for v in rows["lift"]],
            textposition="outside",
            textfont={"size": 11, "color": colours.muted},
            cliponaxis=False,
            customdata=rows[["n_active_tokens", "lift"]],
            hovertemplate="%{customdata[0]:,} tokens, lift %{customdata[1]:.2f}<extra></extra>",
        ),
        layout=theme.layout(
            dark,
            height=height,
            title={"text": "Domains", "subtitle": {"text": f"{note}; × is the lift"}},
            xaxis={
                "title": {"text": "share of its tokens"},
                "tickformat": ".0%",
                "range": [0, max(0.01, float(rows["share"].max() if len(rows) else 1)) * 1.22],
                "nticks": 5,
            },
            yaxis={"autorange": "reversed", "showgrid": False},
            margin={"l": 8, "r": 8, "t": 54, "b": 8},
        ),
    )
