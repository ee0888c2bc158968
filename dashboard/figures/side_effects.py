"""What else a suppression changes, beside firing-rate-matched random sets."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from dashboard.theme import Palette, layout, number, palette


MEASURES = {
    "kl": "KL to the unsuppressed model (nats per token)",
    "perplexity_after": "Perplexity of benign text (line: before)",
    "touched_share": "Benign tokens touched (share)",
}
"""Measures of the meter with their units, in the order drawn."""


def meter(effects: pd.DataFrame, dark: bool) -> go.Figure:
    """Three small panels: KL, perplexity and tokens touched; the set above the random sets.

    Args:
        effects: condition ("suppressed" or "random"), draw, kl (nats per token),
            perplexity_before, perplexity_after, touched_share; one row per set measured.
        dark: Theme.
    """
    colours = palette(dark)
    figure = make_subplots(rows=1, cols=3, shared_yaxes=True, horizontal_spacing=0.05)
    for column, (measure, title) in enumerate(MEASURES.items(), start=1):
        _meter_dots(figure, effects, measure, column, colours)
        reach = _span(effects, measure)
        figure.update_xaxes(title_text=title, nticks=5, range=reach, row=1, col=column)
    before = float(effects["perplexity_before"].iloc[0])
    line = {"color": colours.muted, "dash": "dot", "width": 1.5}
    figure.add_vline(x=before, line=line, row=1, col=2)  # pyright: ignore[reportArgumentType]
    figure.update_xaxes(tickformat=".1%", row=1, col=3)
    figure.update_yaxes(
        tickvals=[0, 1], ticktext=["this set", "random sets"], range=[1.5, -0.75], showgrid=False
    )
    figure.update_yaxes(zeroline=False, ticklabelstandoff=4)
    figure.update_layout(layout(dark, height=190, margin={"l": 8, "r": 16, "t": 4, "b": 44}))
    return figure


def _meter_dots(
    figure: go.Figure, effects: pd.DataFrame, measure: str, column: int, colours: Palette
) -> None:
    """A filled diamond for the set, open circles for the random sets, values beside them."""
    for row, condition in enumerate(("suppressed", "random")):
        values = effects.loc[effects["condition"] == condition, measure]
        own = condition == "suppressed"
        written = [f"{v:.1%}" if measure == "touched_share" else number(v) for v in values]
        figure.add_scatter(
            row=1,
            col=column,
            x=values,
            y=[row] * len(values),
            mode="markers+text" if own else "markers",
            text=written,
            textposition="top center",
            marker={
                "color": colours.accent if own else colours.muted,
                "symbol": "diamond" if own else "circle-open",
                "size": 11,
                "line": {"width": 1.5},
            },
            hovertemplate="%{text}<extra></extra>",
            showlegend=False,
            cliponaxis=False,
        )


def _span(effects: pd.DataFrame, measure: str) -> list[float]:
    """Range of a panel: from zero for KL and shares, around the values for perplexity."""
    values = effects[measure].to_numpy(dtype=np.float64)
    if measure != "perplexity_after":
        return [0.0, max(float(values.max()) * 1.2, 1e-4)]
    values = np.append(values, effects["perplexity_before"])
    room = max(0.15 * float(np.ptp(values)), 0.002 * float(values.max()))
    return [float(values.min()) - room, float(values.max()) + room]


def meter_alt(effects: pd.DataFrame) -> str:
    """The meter in one sentence."""
    own = effects[effects["condition"] == "suppressed"].iloc[0]
    random = effects[effects["condition"] == "random"]
    sentence = (
        f"Side effects on benign text: KL {own['kl']:.3g} nats per token, perplexity "
        f"{own['perplexity_before']:.4g} before and {own['perplexity_after']:.4g} after, "
        f"{own['touched_share']:.1%} of tokens touched"
    )
    if random.empty:
        return sentence + "."
    return (
        f"{sentence}; matched random sets: mean KL {random['kl'].mean():.3g}, "
        f"perplexity {random['perplexity_after'].mean():.4g}."
    )
