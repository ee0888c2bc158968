"""Influence of training samples on one head: histogram, ranks, tail, shares; blue raises."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from dashboard import head_tails as tails, text_heads as text, theme
from dashboard.head_tails import BINS, SymmetricLog, Values


SIDES = {"positive": ("raises", "solid", "circle"), "negative": ("lowers", "dot", "diamond")}
"""Word, dash and symbol of each sign."""
SMALLEST = 0.03
"""Share of the samples, the ones of least influence, that a logarithmic axis leaves out."""
_SMALL = {"l": 8, "r": 12, "t": 54, "b": 8}


def _colour(sign: str, colours: theme.Palette) -> str:
    return colours.raises if sign == "positive" else colours.lowers


def histogram(
    values: Values, scale: SymmetricLog, name: str, *, dark: bool, chosen: int
) -> go.Figure:
    """Samples by their influence on a symmetric-log axis; a click gives the number of a bin.

    Args:
        values: Influence of every sample; NaN is left out.
        scale: The axis.
        name: Head as LAYER.HEAD.
        dark: Theme.
        chosen: Bin whose samples are listed.
    """
    colours = theme.palette(dark)
    edges = scale.edges()
    found = tails.counts(values, scale)
    known, places = int(np.isfinite(values).sum()), (edges[:-1] + edges[1:]) / 2
    raises = int((values > 0).sum())
    ticks, words = scale.ticks()
    figure = go.Figure(
        layout=theme.layout(
            dark,
            height=302,
            bargap=0.06,
            showlegend=False,
            title={
                "text": f"Influence of each sample on head {name}",
                "subtitle": {
                    "text": f"n = {known:,} samples: {raises:,} raise the head's score (blue, "
                    f"right), {int((values < 0).sum()):,} lower it (orange, left)"
                },
            },
            xaxis={
                "title": {"text": f"influence (symmetric-log scale) · {text.SIGN}"},
                "tickvals": ticks,
                "ticktext": words,
                "zeroline": True,
                "zerolinecolor": colours.muted,
            },
            yaxis={"title": {"text": "samples (log scale)"}, "type": "log", "dtick": 1},
        )
    )
    low, high = scale.value(edges[:-1]), scale.value(edges[1:])
    figure.add_bar(
        x=places,
        y=np.where(found > 0, found, np.nan),
        marker={
            "color": np.where(places > 0, colours.raises, colours.lowers),
            "line": {"color": colours.text, "width": np.where(np.arange(BINS) == chosen, 2.5, 0)},
        },
        selected={"marker": {"opacity": 1}},
        unselected={"marker": {"opacity": 1}},
        customdata=np.stack([np.arange(BINS), low, high], axis=1),
        hovertemplate=(
            "%{y:,} samples from %{customdata[1]:+.3g} to %{customdata[2]:+.3g}<br>"
            "click to read them<extra></extra>"
        ),
    )
    return figure


def histogram_alt(values: Values, name: str) -> str:
    """The histogram in one sentence."""
    known = values[np.isfinite(values)]
    if not len(known):
        return f"No sample has an influence on head {name}."
    return (
        f"Histogram of the influence of {len(known):,} samples on head {name}, from "
        f"{known.min():+.3g} to {known.max():+.3g}; "
        f"{float((known > 0).mean()):.0%} raise its score."
    )


def rank_plot(values: Values, *, dark: bool) -> go.Figure:
    """Size of influence by rank on logarithmic axes, a line for each sign."""
    colours = theme.palette(dark)
    figure = go.Figure(
        layout=theme.layout(
            dark,
            height=236,
            showlegend=False,
            title={"text": "Influence by rank", "subtitle": {"text": _sides_text(colours)}},
            xaxis={"title": {"text": "rank within its sign, from 1"}, "type": "log", "dtick": 1},
            yaxis={**_log_axis("|influence|"), "range": _decades(values)},
            margin=_SMALL,
        )
    )
    for sign, (word, dash, _) in SIDES.items():
        ordered = tails.side(values, sign)
        drawn = tails.thinned(len(ordered))
        figure.add_scatter(
            x=drawn + 1,
            y=ordered[drawn],
            mode="lines",
            name=word,
            line={"color": _colour(sign, colours), "dash": dash, "width": 2},
            hovertemplate=f"{word}: rank %{{x:,}}<br>|influence| %{{y:.3g}}<extra></extra>",
        )
    return figure


def _sides_text(colours: theme.Palette) -> str:
    return (
        f"<span style='color:{colours.raises}'>blue, solid: raises</span> · "
        f"<span style='color:{colours.lowers}'>orange, dotted: lowers</span>"
    )


def _log_axis(title: str) -> dict[str, object]:
    return {
        "title": {"text": title},
        "type": "log",
        "exponentformat": "power",
        "dtick": 1,
        "tickfont": {"size": 11},
    }


def _decades(values: Values) -> list[float] | None:
    """Range of a logarithmic axis: all but the smallest few values, which say nothing."""
    sizes = np.abs(values[np.isfinite(values) & (values != 0)])
    if not len(sizes):
        return None
    low, high = np.log10(np.quantile(sizes, SMALLEST)), np.log10(sizes.max())
    return [float(low), float(high + 0.06 * (high - low))]


def tail_plot(values: Values, fits: pd.DataFrame, *, dark: bool) -> go.Figure:
    """Share of samples with at least a given influence, with the fitted power law of each sign.

    Args:
        values: Influence of every sample.
        fits: Rows of `head_tails` of this head; the line is drawn from them, nothing is fitted.
        dark: Theme.
    """
    colours = theme.palette(dark)
    figure = go.Figure(
        layout=theme.layout(
            dark,
            height=262,
            showlegend=False,
            title={"text": "Tail of the influence", "subtitle": {"text": _fit_text(fits)}},
            xaxis={**_log_axis("|influence| = x"), "range": _decades(values)},
            yaxis={**_log_axis("share of samples ≥ x")},
            margin={**_SMALL, "t": 70},
        )
    )
    for sign, (word, _, symbol) in SIDES.items():
        ordered = tails.side(values, sign)
        drawn = tails.thinned(len(ordered), 160)
        figure.add_scatter(
            x=ordered[drawn],
            y=tails.exceedance(ordered)[drawn] if len(ordered) else [],
            mode="markers",
            name=word,
            marker={"color": _colour(sign, colours), "size": 4, "symbol": symbol, "opacity": 0.8},
            hovertemplate=f"{word}: ≥ %{{x:.3g}}<br>share %{{y:.3g}}<extra></extra>",
        )
        line = _fit_line(ordered, fits, sign)
        if line is not None:
            figure.add_scatter(
                x=line[0],
                y=line[1],
                mode="lines",
                name=f"{word}, fitted",
                line={"color": colours.text, "width": 1.6, "dash": "dash"},
                hovertemplate=f"power law fitted to what {word}<extra></extra>",
            )
    return figure


def _fit_line(ordered: Values, fits: pd.DataFrame, sign: str) -> tuple[Values, Values] | None:
    own = fits[fits["sign"] == sign]
    if own.empty:
        return None
    row = own.iloc[0]
    return tails.fitted_tail(
        ordered, float(row["exponent"]), float(row["xmin"]), int(row["n_tail"])
    )


def _fit_text(fits: pd.DataFrame) -> str:
    """Exponent of each sign with its interval."""
    said = []
    for sign, (word, *_) in SIDES.items():
        own = fits[fits["sign"] == sign]
        if own.empty or not np.isfinite(own.iloc[0]["exponent"]):
            said.append(f"{word}: no fit")
            continue
        row = own.iloc[0]
        said.append(
            f"{word}: α = {row['exponent']:.2f} [{row['low']:.2f}, {row['high']:.2f}], "
            f"tail of n = {int(row['n_tail']):,}"
        )
    return "<br>".join(said)


def tail_alt(fits: pd.DataFrame) -> str:
    """The tail in one sentence."""
    return f"Tail of the influence with fitted power laws. {_fit_text(fits).replace('<br>', '; ')}."


def share_curve(values: Values, *, dark: bool) -> go.Figure:
    """Lorenz curve from the largest sample on: share of a side's sum by share of its samples."""
    colours = theme.palette(dark)
    carried = {sign: tails.carried_by(tails.side(values, sign), 0.1) for sign in SIDES}
    figure = go.Figure(
        layout=theme.layout(
            dark,
            height=236,
            showlegend=False,
            title={
                "text": "Lorenz curve, largest first",
                "subtitle": {
                    "text": f"top 10 % carry {carried['positive']:.0%} (raises), "
                    f"{carried['negative']:.0%} (lowers)"
                },
            },
            xaxis={"title": {"text": "share of samples"}, "tickformat": ".0%", "nticks": 6},
            yaxis={"title": {"text": "share of influence"}, "tickformat": ".0%", "nticks": 6},
            margin=_SMALL,
        )
    )
    figure.add_scatter(
        x=[0, 1], y=[0, 1], mode="lines", hoverinfo="skip",
        line={"color": colours.rest, "width": 1, "dash": "dash"}, name="all samples alike",
    )  # fmt: skip
    for sign, (word, dash, symbol) in SIDES.items():
        samples, shares = tails.carried(tails.side(values, sign))
        grid = np.linspace(0, 1, 201)
        shade = _colour(sign, colours)
        figure.add_scatter(
            x=grid,
            y=np.interp(grid, samples, shares),
            mode="lines",
            name=word,
            line={"color": shade, "width": 2, "dash": dash},
            hovertemplate=f"{word}: %{{x:.0%}} carry %{{y:.1%}}<extra></extra>",
        )
        figure.add_scatter(
            x=[0.1], y=[carried[sign]], mode="markers", hoverinfo="skip",
            marker={"color": shade, "size": 8, "symbol": symbol},
        )  # fmt: skip
    return figure


def by_head(values: pd.Series, selected: str, *, dark: bool) -> go.Figure:
    """One sample's influence on every head.

    Args:
        values: Influence by head, LAYER.HEAD as index.
        selected: Head looked at.
        dark: Theme.
    """
    colours = theme.palette(dark)
    sizes = values.to_numpy(np.float64)
    figure = go.Figure(
        layout=theme.layout(
            dark,
            height=212,
            showlegend=False,
            title={"text": "This sample's influence on every head"},
            xaxis={"title": {"text": "head"}, "type": "category", "showgrid": False},
            yaxis={"title": {"text": "influence"}, "nticks": 5, "exponentformat": "power"},
            margin={"l": 8, "r": 8, "t": 40, "b": 8},
        )
    )
    figure.add_bar(
        x=list(values.index),
        y=sizes,
        marker={
            "color": np.where(sizes >= 0, colours.raises, colours.lowers),
            "line": {"color": colours.text, "width": np.where(values.index == selected, 2.5, 0)},
        },
        hovertemplate="head %{x}: %{y:+.3g}<extra></extra>",
    )
    figure.update_yaxes(zeroline=True, zerolinecolor=colours.muted)
    return figure
