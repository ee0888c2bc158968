"""The score of one training text as prototypes that add up, and the scores of a whole pool.

A score is positive where up-weighting the text lowers the loss of the query (blue), negative where
it raises it (orange).
"""

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from dashboard import theme
from dashboard.figures.tokens import escaped, shortened


SIGN = "blue + lowers the query's loss,<br>orange − raises it"
"""The legend of every score."""
MORE_ALIKE = "the larger, the more alike"
"""The legend of scores that are likenesses."""
ROW = 25
"""Pixels a row of bars takes."""
N_SHARES = 12
"""Prototypes drawn one by one; the others are one grey bar."""
BINS = 60


def folded_shares(shares: pd.DataFrame, n: int = N_SHARES) -> pd.DataFrame:
    """The `n` largest summands by size, then the sum of the others as prototype -1.

    Args:
        shares: prototype, label, share (its summand of the score of one text).
        n: Prototypes kept one by one.
    """
    order = np.argsort(-np.abs(shares["share"].to_numpy(dtype=np.float64)), kind="stable")
    ordered = shares.iloc[order][["prototype", "label", "share"]]
    rest = ordered.iloc[n:]
    kept = ordered.iloc[:n]
    if rest.empty:
        return kept.reset_index(drop=True)
    noun = "prototype" if len(rest) == 1 else "prototypes"
    other = {"prototype": -1, "label": f"{len(rest):,} other {noun}", "share": rest["share"].sum()}
    return pd.concat([kept, pd.DataFrame([other])], ignore_index=True)


def share_bars(shares: pd.DataFrame, *, dark: bool, selected: int | None = None) -> go.Figure:
    """What each prototype adds to the score of one text; a click gives its number.

    Args:
        shares: prototype, label, share; they add up to the score of the text.
        dark: Theme.
        selected: Prototype drawn with an outline.
    """
    colours = theme.palette(dark)
    rows = folded_shares(shares)
    values = rows["share"].to_numpy(dtype=np.float64)
    total = float(values.sum())
    figure = go.Figure(
        layout=theme.layout(
            dark,
            height=ROW * max(1, len(rows)) + 112,
            showlegend=False,
            title={
                "text": "Score by prototype",
                "subtitle": {"text": f"{_counted(len(shares))} up to {theme.signed(total)}"},
            },
            margin={"l": 8, "r": 100, "t": 54, "b": 44},
        )
    )
    figure.add_bar(**_share_bars(rows, selected, colours))
    for place, value in enumerate(values):
        figure.add_annotation(
            x=1, xref="paper", xanchor="left", xshift=4, y=place, showarrow=False,
            text=_with_share(float(value), total), font={"size": 11, "color": colours.text},
        )  # fmt: skip
    # A category even where a name without a label, such as #247, would be read as a number.
    figure.update_yaxes(type="category", range=[len(rows) - 0.5, -0.5], showgrid=False)
    figure.update_yaxes(tickfont_color=colours.text, ticklabelstandoff=4)
    figure.update_xaxes(title_text=f"Summand of the score · {SIGN}")
    figure.update_xaxes(zeroline=True, zerolinecolor=colours.muted, nticks=4, tickangle=0)
    return figure


def _share_bars(
    rows: pd.DataFrame, selected: int | None, colours: theme.Palette
) -> dict[str, object]:
    """The bars: blue and orange for prototypes, grey for the others together."""
    values = rows["share"].to_numpy(dtype=np.float64)
    own = (rows["prototype"] >= 0).to_numpy()
    signs = np.where(values >= 0, colours.raises, colours.lowers)
    chosen = own & (rows["prototype"] == selected).to_numpy()
    return {
        "orientation": "h",
        "y": _share_names(rows),
        "x": values,
        "width": 0.72,
        "marker": {
            "color": np.where(own, signs, colours.rest),
            "line": {"color": colours.text, "width": np.where(chosen, 2, 0)},
        },
        "customdata": rows[["prototype"]].to_numpy(),
        "hovertext": [escaped(str(label)) for label in rows["label"]],
        "hovertemplate": "%{hovertext}<br>%{x:+.4g} of the score<extra></extra>",
    }


def _share_names(rows: pd.DataFrame) -> list[str]:
    # The role tells prototypes of one text apart; the category is much the same for all of them.
    return [
        f"#{p}  {escaped(shortened(label.partition(' · ')[2] or label, 26))}".rstrip()
        if p >= 0
        else escaped(label)
        for p, label in zip(rows["prototype"], rows["label"], strict=True)
    ]


def _with_share(value: float, total: float) -> str:
    """A summand, and its share of the sum where the sum is not near zero beside it."""
    if abs(total) < 0.02 * abs(value) or total == 0:
        return theme.signed(value)
    return f"{theme.signed(value)}  ({value / total:.0%})".replace("(-", "(−")


def share_alt(shares: pd.DataFrame) -> str:
    """The shares in one sentence."""
    rows = folded_shares(shares, 3)
    first = ", ".join(
        f"#{p} {theme.signed(s)}"
        for p, s in zip(rows["prototype"], rows["share"], strict=True)
        if p >= 0
    )
    total = float(shares["share"].sum())
    return f"Bars of {len(shares)} prototypes adding up to {total:+.3g}; largest: {first}."


def _counted(n: int) -> str:
    return "1 prototype adds" if n == 1 else f"{n:,} prototypes add"


def score_histogram(scores: np.ndarray, *, dark: bool, n: int, likeness: bool = False) -> go.Figure:
    """Scores of the whole pool, with the places where the top and the bottom `n` begin.

    Args:
        scores: Score of every sequence of the pool.
        dark: Theme.
        n: Texts listed at either end.
        likeness: Whether scores are likenesses, whose sign says nothing of the query's loss.
    """
    colours = theme.palette(dark)
    counts, edges = np.histogram(scores, BINS)
    middle = (edges[:-1] + edges[1:]) / 2
    figure = go.Figure(
        layout=theme.layout(
            dark,
            height=230,
            bargap=0.04,
            showlegend=False,
            title={
                "text": "Scores of the pool",
                "subtitle": {
                    "text": f"n = {len(scores):,} sequences; lines: ends of the {n} listed"
                },
            },
            xaxis={"title": {"text": f"score · {MORE_ALIKE if likeness else SIGN}"}},
            yaxis={"title": {"text": "sequences (log scale)"}, "type": "log", "dtick": 1},
            margin={"l": 8, "r": 8, "t": 54, "b": 8},
        )
    )
    figure.add_bar(
        x=middle,
        y=np.where(counts > 0, counts, np.nan),
        marker={"color": np.where(middle >= 0, colours.raises, colours.lowers)},
        hovertemplate="%{y:,} sequences near %{x:+.3g}<extra></extra>",
    )
    ordered = np.sort(scores)
    if len(ordered):
        kept = min(n, len(ordered))
        for value in (ordered[kept - 1], ordered[-kept]):
            figure.add_vline(x=float(value), line={"color": colours.muted, "dash": "dot"})
    return figure


def score_alt(scores: np.ndarray) -> str:
    """The scores in one sentence."""
    if not len(scores):
        return "The pool is empty."
    return (
        f"Histogram of {len(scores):,} scores from {scores.min():+.3g} to {scores.max():+.3g}; "
        f"{float((scores > 0).mean()):.0%} are positive."
    )
