"""Scores of many generations: how they are spread, and by bucket of the score before."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from dashboard.figures.tokens import escaped
from dashboard.theme import Palette, layout, palette, percent


CONDITIONS = {"baseline": "before", "suppressed": "after", "random": "random sets"}
"""Conditions of a study with the words drawn, in the order drawn."""
SCORERS = {
    "classifier": "classifier (0 to 1)",
    "wordlist": "word list (share of words)",
    "judge": "judge (0 to 1)",
}
"""How scorers are written on an axis, with the unit of their score."""
POINTS = 240
"""Most points of a curve."""
HEIGHT = 310


def scorer_name(name: str) -> str:
    """A scorer with the unit of its score."""
    return SCORERS.get(name, name)


def scorer_word(name: str) -> str:
    """A scorer in a word or two, without its unit."""
    return scorer_name(name).partition(" (")[0]


def looks(colours: Palette) -> dict[str, tuple[str, str, str]]:
    """Colour, dash and symbol of each condition, the same in every figure of a study."""
    return {
        "baseline": (colours.muted, "solid", "circle"),
        "suppressed": (colours.accent, "solid", "diamond"),
        "random": (colours.rest, "dot", "circle-open"),
    }


def exceedance(scores: Sequence[float] | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Scores in rising order from 0, and the share of texts that score at least as much.

    The last point stands for all scores above the largest. At most `POINTS` different scores are
    kept, evenly spaced, both ends among them.
    """
    values = np.sort(np.asarray(scores, dtype=np.float64))
    points = np.unique(values)
    if len(points) > POINTS:
        points = points[np.linspace(0, len(points) - 1, POINTS).round().astype(int)]
    share = 1 - np.searchsorted(values, points, side="left") / max(1, len(values))
    return np.concatenate([[0.0], points, points[-1:]]), np.concatenate([[1.0], share, [0.0]])


def score_curves(scores: pd.DataFrame, scorers: Sequence[str], *, dark: bool) -> go.Figure:
    """Share of texts that score at least x, before, after and with random sets: a panel a scorer.

    Args:
        scores: scorer, condition and score of every generation.
        scorers: Scorers drawn, in order; those that failed are left out by the caller.
        dark: Theme.
    """
    colours = palette(dark)
    figure = make_subplots(rows=1, cols=len(scorers), shared_yaxes=True, horizontal_spacing=0.05)
    for column, scorer in enumerate(scorers, start=1):
        for condition, (shade, dash, _) in looks(colours).items():
            own = scores[(scores["scorer"] == scorer) & (scores["condition"] == condition)]
            if own.empty:
                continue
            points, share = exceedance(own["score"].to_numpy())
            figure.add_scatter(
                row=1,
                col=column,
                x=points,
                y=share,
                mode="lines",
                line={"shape": "vh", "width": 2, "color": shade, "dash": dash},
                name=CONDITIONS[condition],
                legendgroup=condition,
                showlegend=column == 1,
                hovertemplate=(
                    f"{CONDITIONS[condition]}: %{{y:.1%}} score %{{x:.3f}} or more<extra></extra>"
                ),
            )
        title = f"score x: {escaped(scorer_name(scorer))}"
        figure.update_xaxes(title_text=title, rangemode="tozero", nticks=6, row=1, col=column)
    figure.update_yaxes(tickformat=".0%", range=[0, 1.02])
    figure.update_yaxes(title_text="texts that score x or more (share)", row=1, col=1)
    n = scores.groupby(["scorer", "condition"]).size()
    subtitle = f"n = {int(n.max()) if len(n) else 0:,} generations a condition, same prompts, seeds"
    figure.update_layout(_layout(dark, "How unwanted the texts are", subtitle))
    return figure


def bucket_dots(buckets: pd.DataFrame, scorers: Sequence[str], *, dark: bool) -> go.Figure:
    """Mean score by bucket of the score before, with 95 % intervals: a panel a scorer.

    Args:
        buckets: Rows of `suppression_buckets` of one kind of prompts, bucket 1 and up.
        scorers: Scorers drawn, in order.
        dark: Theme.
    """
    colours = palette(dark)
    figure = make_subplots(rows=1, cols=len(scorers), horizontal_spacing=0.09)
    for column, scorer in enumerate(scorers, start=1):
        own = buckets[buckets["scorer"] == scorer]
        names = _bucket_names(own)
        for lane, (condition, (shade, _, symbol)) in enumerate(looks(colours).items()):
            rows = own[own["condition"] == condition].sort_values("bucket")
            figure.add_scatter(
                row=1,
                col=column,
                x=rows["bucket"] + (lane - 1) * 0.16,
                y=rows["mean"],
                mode="markers",
                marker={"size": 9, "color": shade, "symbol": symbol, "line": {"width": 1.6}},
                error_y={
                    "type": "data",
                    "symmetric": False,
                    "array": rows["mean_high"] - rows["mean"],
                    "arrayminus": rows["mean"] - rows["mean_low"],
                    "color": shade,
                    "thickness": 1.5,
                    "width": 0,
                },
                name=CONDITIONS[condition],
                legendgroup=condition,
                showlegend=column == 1,
                customdata=rows[["mean_low", "mean_high", "n_generations"]].to_numpy(),
                hovertemplate=(
                    f"{CONDITIONS[condition]}: mean %{{y:.3f}}<br>95 % interval "
                    "%{customdata[0]:.3f} to %{customdata[1]:.3f}<br>"
                    "n = %{customdata[2]:,}<extra></extra>"
                ),
            )
        figure.update_xaxes(
            title_text=f"score before: {escaped(scorer_name(scorer))}",
            tickvals=list(names),
            ticktext=list(names.values()),
            range=[0.5, max(names, default=1) + 0.5],
            zeroline=False,
            row=1,
            col=column,
        )
    figure.update_yaxes(rangemode="tozero")
    figure.update_yaxes(title_text="mean score", row=1, col=1)
    subtitle = "95 % intervals by bootstrap over prompts; n below each bucket"
    figure.update_layout(_layout(dark, "By how unwanted the text was before", subtitle))
    return figure


def _bucket_names(rows: pd.DataFrame) -> dict[int, str]:
    """Range of the score before and the n of each bucket; the last one is the hardest."""
    first = rows.sort_values("bucket").drop_duplicates("bucket")
    last = int(first["bucket"].max()) if len(first) else 0
    return {
        int(row["bucket"]): f"{row['score_from']:.2g} to {row['score_to']:.2g}"
        f"<br>n = {int(row['n_generations']):,}"
        + ("<br><b>hardest</b>" if int(row["bucket"]) == last else "")
        for row in first.to_dict("records")
    }


def means_alt(buckets: pd.DataFrame, what: str) -> str:
    """Mean scores of all generations in one sentence.

    Args:
        buckets: Rows of `suppression_buckets` of one kind of prompts.
        what: What is described, at the start of the sentence.
    """
    whole = buckets[buckets["bucket"] == 0]
    parts = []
    for scorer, rows in whole.groupby("scorer", sort=False):
        means = rows.set_index("condition")["mean"]
        said = ", ".join(f"{w} {means[c]:.3f}" for c, w in CONDITIONS.items() if c in means.index)
        drop = rows.loc[rows["condition"] == "suppressed", "drop"]
        fall = f" (falls by {percent(float(drop.iloc[0]))})" if len(drop) else ""
        parts.append(f"{scorer}: {said}{fall}")
    return f"{what}: mean score by {'; by '.join(parts)}."


def _layout(dark: bool, title: str, subtitle: str) -> go.Layout:
    return layout(
        dark,
        height=HEIGHT,
        title={"text": title, "subtitle": {"text": subtitle}},
        legend={"orientation": "h", "x": 1, "xanchor": "right", "y": 1.0, "yanchor": "bottom"},
        margin={"l": 8, "r": 12, "t": 66, "b": 8},
    )
