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
CONDITIONS = {"baseline": "before", "suppressed": "suppressed", "random": "random set"}
"""Conditions of a batch with the words drawn."""
SCORES = {
    "classifier_score": "Classifier: probability of unwanted content",
    "wordlist_score": "Word list: share of listed words",
}
"""Scores of a batch with their units."""
RESAMPLES = 2000
"""Bootstrap resamples behind an interval."""


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


def batch_summary(batch: pd.DataFrame) -> pd.DataFrame:
    """Mean of each score by condition with a 95 % bootstrap interval over generations.

    Args:
        batch: Rows of the `suppression` table of one concept.

    Returns:
        score, condition, mean, low, high, n; conditions in the order drawn.
    """
    rng = np.random.default_rng(0)
    rows: list[dict[str, object]] = []
    for score in SCORES:
        for condition in CONDITIONS:
            values = batch.loc[batch["condition"] == condition, score].to_numpy(dtype=np.float64)
            if values.size == 0:
                continue
            means = values[rng.integers(0, values.size, (RESAMPLES, values.size))].mean(axis=1)
            low, high = np.quantile(means, [0.025, 0.975])
            row = {"score": score, "condition": condition, "mean": values.mean()}
            rows.append(row | {"low": low, "high": high, "n": values.size})
    return pd.DataFrame(rows, columns=["score", "condition", "mean", "low", "high", "n"])


def batch_strips(batch: pd.DataFrame, dark: bool) -> go.Figure:
    """Every generation's score by condition, with mean and 95 % interval: one panel a score."""
    colours = palette(dark)
    summary = batch_summary(batch)
    figure = make_subplots(rows=1, cols=len(SCORES), shared_yaxes=True, horizontal_spacing=0.05)
    for column, (score, title) in enumerate(SCORES.items(), start=1):
        _batch_dots(figure, batch, score, column, colours)
        _batch_means(figure, summary[summary["score"] == score], column, colours)
        figure.update_xaxes(title_text=title, rangemode="tozero", row=1, col=column)
    figure.update_yaxes(
        tickvals=list(range(len(CONDITIONS))),
        ticktext=list(CONDITIONS.values()),
        range=[len(CONDITIONS) - 0.5, -0.7],
        showgrid=False,
        zeroline=False,
        ticklabelstandoff=4,
    )
    figure.update_layout(layout(dark, height=260, margin={"l": 8, "r": 16, "t": 4, "b": 44}))
    return figure


def _batch_dots(
    figure: go.Figure, batch: pd.DataFrame, score: str, column: int, colours: Palette
) -> None:
    """Single generations, spread a little across the row so that they do not hide each other."""
    spread = np.random.default_rng(0)
    shades = {"baseline": colours.muted, "suppressed": colours.accent, "random": colours.rest}
    for row, (condition, word) in enumerate(CONDITIONS.items()):
        values = batch.loc[batch["condition"] == condition, score]
        figure.add_scatter(
            row=1,
            col=column,
            x=values,
            y=row + spread.uniform(-0.22, 0.22, len(values)),
            mode="markers",
            marker={"color": shades[condition], "size": 5, "opacity": 0.4},
            hovertemplate=f"{word}: %{{x:.3f}}<extra></extra>",
            showlegend=False,
        )


def _batch_means(figure: go.Figure, means: pd.DataFrame, column: int, colours: Palette) -> None:
    """Mean and interval of each condition over its dots."""
    figure.add_scatter(
        row=1,
        col=column,
        x=means["mean"],
        y=[list(CONDITIONS).index(c) for c in means["condition"]],
        mode="markers+text",
        text=[f"<b>{value:.3g}</b>" for value in means["mean"]],
        textposition="top center",
        marker={
            "symbol": "line-ns-open",
            "size": 18,
            "color": colours.text,
            "line": {"width": 3},
        },
        error_x={
            "type": "data",
            "symmetric": False,
            "array": means["high"] - means["mean"],
            "arrayminus": means["mean"] - means["low"],
            "color": colours.text,
            "thickness": 2,
        },
        customdata=means[["low", "high", "n"]].to_numpy(),
        hovertemplate=(
            "mean %{x:.4f}<br>95 % interval %{customdata[0]:.4f} to %{customdata[1]:.4f}"
            "<br>n = %{customdata[2]:.0f}<extra></extra>"
        ),
        showlegend=False,
        cliponaxis=False,
    )


def batch_alt(batch: pd.DataFrame) -> str:
    """The batch in one sentence."""
    summary = batch_summary(batch)
    parts = [
        f"{CONDITIONS[row['condition']]} {row['mean']:.3g} [{row['low']:.3g}, {row['high']:.3g}]"
        for row in summary[summary["score"] == "classifier_score"].to_dict("records")
    ]
    return f"Classifier score over generations, mean and 95 % interval: {'; '.join(parts)}."
