"""Which domains the texts listed come from, and where two methods rank the texts of a pool."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from dashboard import theme
from dashboard.figures.tokens import escaped


MOST_POINTS = 4000
"""Sequences a scatter of ranks draws: the best of either method."""


def domain_shares(rows: pd.DataFrame, pool: pd.DataFrame) -> pd.DataFrame:
    """How often each domain stands among `rows`, and in the pool.

    Args:
        rows: Sequences listed, with their domain.
        pool: Every sequence of the pool, with its domain.

    Returns:
        domain, n, share, base (share of the pool), lift; by falling share, then base.
    """
    base = pool["domain"].value_counts(normalize=True)
    count = rows["domain"].value_counts().reindex(base.index, fill_value=0)
    share = count / max(1, len(rows))
    frame = pd.DataFrame({"n": count, "share": share, "base": base, "lift": share / base})
    frame = frame.rename_axis("domain").reset_index()
    return frame.sort_values(["share", "base"], ascending=False, ignore_index=True)


def domain_dots(found: pd.DataFrame, *, dark: bool, listed: str) -> go.Figure:
    """Share of each domain among the texts listed (filled) against the pool (open).

    Args:
        found: Rows of `domain_shares`.
        dark: Theme.
        listed: What is listed, in words.
    """
    colours = theme.palette(dark)
    names = [escaped(str(name)) for name in found["domain"]]
    figure = go.Figure(
        layout=theme.layout(
            dark,
            height=96 + 20 * max(1, len(found)),
            title={"text": "Domains", "subtitle": {"text": f"{listed} against the whole pool"}},
            xaxis={"title": {"text": "share of sequences"}, "tickformat": ".0%"},
            yaxis={"showgrid": False, "autorange": "reversed", "ticklabelstandoff": 4},
            legend={"orientation": "h", "x": 1, "xanchor": "right", "y": 1, "yanchor": "bottom"},
            margin={"l": 8, "r": 14, "t": 66, "b": 8},
        )
    )
    for name, row in zip(names, found.to_dict("records"), strict=True):
        figure.add_shape(
            type="line", x0=row["base"], x1=row["share"], y0=name, y1=name,
            line={"color": colours.faint, "width": 3}, layer="below",
        )  # fmt: skip
    looks = (
        ("base", "pool", colours.rest, "circle-open"),
        ("share", "listed", colours.accent, "circle"),
    )
    for column, word, shade, symbol in looks:
        figure.add_scatter(
            x=found[column],
            y=names,
            mode="markers",
            name=word,
            marker={"size": 9, "color": shade, "symbol": symbol, "line": {"width": 1.6}},
            customdata=found[["n", "lift"]].to_numpy(),
            hovertemplate=(
                f"%{{y}}, {word}: %{{x:.1%}}<br>%{{customdata[0]}} listed, "
                "%{customdata[1]:.2f} times the pool's share<extra></extra>"
            ),
        )
    figure.update_xaxes(rangemode="tozero")
    return figure


def domain_alt(found: pd.DataFrame) -> str:
    """The domains in one sentence."""
    parts = [
        f"{row['domain']} {row['share']:.0%} (pool {row['base']:.0%})"
        for row in found.head(3).to_dict("records")
    ]
    return f"Share of domains among the texts listed: {', '.join(parts)}."


def rank_scatter(ranks: pd.DataFrame, *, dark: bool, first: str, second: str, n: int) -> go.Figure:
    """Place of every sequence under two methods; a click gives its number.

    Args:
        ranks: sequence, name, rank_first, rank_second (1 is best), n_tops (of how many methods it
            is among the first `n`), one row a sequence.
        dark: Theme.
        first: Method across.
        second: Method up.
        n: Places counted as the top; lines are drawn there.
    """
    colours = theme.palette(dark)
    best = ranks[["rank_first", "rank_second"]].min(axis=1)
    drawn = ranks[best <= np.sort(best.to_numpy())[: MOST_POINTS + 1][-1]] if len(ranks) else ranks
    top = drawn["n_tops"]
    looks = (
        (0, "in neither", colours.faint, "circle", 4),
        (1, f"in one top {n}", colours.rest, "circle-open", 7),
        (2, "in both", colours.accent, "diamond", 9),
    )
    most = max(2, len(ranks))
    figure = go.Figure(
        layout=theme.layout(
            dark,
            height=330,
            title={
                "text": "Places under two methods",
                "subtitle": {
                    "text": f"{int((top == 2).sum())} of {n} shared · n = {len(ranks):,} sequences"
                },
            },
            xaxis={"title": {"text": f"place by {first} (log scale)"}},
            yaxis={"title": {"text": f"place by {second} (log scale)"}},
            legend={"orientation": "h", "x": 1, "xanchor": "right", "y": 1, "yanchor": "bottom"},
            margin={"l": 8, "r": 8, "t": 70, "b": 8},
        )
    )
    for matched, word, shade, symbol, size in looks:
        rows = drawn[top == matched]
        figure.add_trace(
            go.Scattergl(
                x=rows["rank_first"],
                y=rows["rank_second"],
                mode="markers",
                name=f"{word} ({len(rows):,})",
                marker={"color": shade, "symbol": symbol, "size": size, "line": {"width": 1.3}},
                customdata=rows[["sequence"]].to_numpy(),
                text=[escaped(str(name)) for name in rows["name"]],
                hovertemplate="%{text}<br>place %{x:,.0f} and %{y:,.0f}<extra></extra>",
                showlegend=matched > 0,
            )
        )
    line = {"color": colours.muted, "dash": "dot", "width": 1}
    figure.add_vline(x=n + 0.5, line=line)
    figure.add_hline(y=n + 0.5, line=line)
    span = [np.log10(0.8), np.log10(most * 1.2)]
    figure.update_xaxes(type="log", range=span, dtick=1)
    figure.update_yaxes(type="log", range=span, dtick=1)
    return figure


def rank_alt(ranks: pd.DataFrame, first: str, second: str, n: int) -> str:
    """The places in one sentence."""
    both = int((ranks["n_tops"] == 2).sum())
    return (
        f"Places of {len(ranks):,} sequences by {first} and by {second}: {both} of the top {n} are "
        "the same."
    )
