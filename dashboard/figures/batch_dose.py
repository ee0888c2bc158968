"""What a suppression costs: dose and response over set size and strength, quality with margins."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from dashboard.figures.batch import CONDITIONS, looks, scorer_word
from dashboard.figures.tokens import escaped
from dashboard.theme import Palette, layout, number, palette


AIM = 0.75
"""Fall of the mean score that the study aims at."""
MEASURES = {
    "perplexity": "perplexity",
    "distinct_1": "distinct tokens",
    "distinct_2": "distinct pairs",
    "distinct_3": "distinct triples",
    "repetition": "repetition",
    "n_tokens": "length (tokens)",
}
"""Measures of quality with the words drawn, in the order drawn."""
ROW_HEIGHT = 37


def dose_response(
    sweep: pd.DataFrame, scorers: Sequence[str], margin: float | None, *, dark: bool
) -> go.Figure:
    """Fall of the mean score and perplexity over set size, a line a strength; random sets in grey.

    Args:
        sweep: Rows of `suppression_sweep` of one split.
        scorers: Scorers drawn, in order.
        margin: Highest ratio of perplexity allowed; None when there is none.
        dark: Theme.
    """
    colours = palette(dark)
    panels = [(s, "drop", f"fall by {escaped(scorer_word(s))}") for s in scorers]
    if scorers:
        panels.append((scorers[0], "perplexity_ratio", "perplexity ÷ before"))
    figure = make_subplots(rows=1, cols=max(1, len(panels)), horizontal_spacing=0.1)
    for column, (scorer, value, title) in enumerate(panels, start=1):
        rows = sweep[sweep["scorer"] == scorer]
        _dose_lines(figure, rows, value, column, colours)
        _chosen_mark(figure, rows, value, column, colours)
        figure.update_yaxes(
            title_text=title, tickformat=".0%" if value == "drop" else None, row=1, col=column
        )
        if value == "drop":
            _limit(figure, AIM, f"aim {AIM:.0%}", column, colours)
        elif margin is not None:
            _limit(figure, margin, f"margin {number(margin)}", column, colours)
    sizes = sorted(sweep["set_size"].unique())
    figure.update_xaxes(
        type="log", title_text="prototypes off (log scale)", tickvals=sizes,
        ticktext=[f"{s:,}" for s in sizes],
    )  # fmt: skip
    n = int(sweep["n_generations"].max()) if len(sweep) else 0
    figure.update_layout(
        _layout(dark, 320, "Dose and response", f"n = {n:,} generations a point; 95 % intervals")
    )
    return figure


def _dose_lines(
    figure: go.Figure, rows: pd.DataFrame, value: str, column: int, colours: Palette
) -> None:
    """A line a condition and strength; the stronger, the fuller the colour."""
    strengths = sorted(rows["strength"].unique())
    dashes = ("solid", "dash", "dot", "dashdot")
    for condition in ("random", "suppressed"):
        for place, strength in enumerate(reversed(strengths)):
            own = rows[(rows["condition"] == condition) & (rows["strength"] == strength)]
            own = own.sort_values("set_size")
            if own.empty:
                continue
            shade = colours.accent if condition == "suppressed" else colours.rest
            name = f"{CONDITIONS[condition]}, strength {strength:g}"
            figure.add_scatter(
                row=1,
                col=column,
                x=own["set_size"],
                y=own[value],
                mode="lines+markers",
                name=name,
                legendgroup=name,
                legendrank=1 if condition == "suppressed" else 2,
                showlegend=column == 1,
                line={"width": 1.8, "color": shade, "dash": dashes[place % len(dashes)]},
                marker={"size": 6, "color": shade},
                error_y={
                    "type": "data",
                    "symmetric": False,
                    "array": own[f"{value}_high"] - own[value],
                    "arrayminus": own[value] - own[f"{value}_low"],
                    "color": shade,
                    "thickness": 1,
                    "width": 0,
                },
                hovertemplate=f"{name}<br>%{{x:,}} off: %{{y:.3f}}<extra></extra>",
            )


def _chosen_mark(
    figure: go.Figure, rows: pd.DataFrame, value: str, column: int, colours: Palette
) -> None:
    """A ring round the setting that the study reports."""
    chosen = rows[rows["chosen"] & (rows["condition"] == "suppressed")]
    figure.add_scatter(
        row=1,
        col=column,
        x=chosen["set_size"],
        y=chosen[value],
        mode="markers",
        name="chosen",
        marker={
            "symbol": "circle-open",
            "size": 16,
            "color": colours.text,
            "line": {"width": 2},
        },
        showlegend=column == 1 and not chosen.empty,
        hoverinfo="skip",
        cliponaxis=False,
    )


def _limit(figure: go.Figure, value: float, words: str, column: int, colours: Palette) -> None:
    figure.add_hline(
        y=value,
        row=1,  # pyright: ignore[reportArgumentType]
        col=column,  # pyright: ignore[reportArgumentType]
        line={"color": colours.muted, "width": 1, "dash": "dot"},
        annotation={"text": words, "font": {"size": 11, "color": colours.muted}},
        annotation_position="top left",
    )


def quality_dots(quality: pd.DataFrame, *, dark: bool) -> go.Figure:
    """Ratio of each measure of quality to before, with 95 % intervals and the margin as a band.

    Args:
        quality: Rows of `suppression_quality` of one kind of prompts.
        dark: Theme.
    """
    colours = palette(dark)
    names = [name for name in MEASURES if (quality["measure"] == name).any()]
    drawn = quality[quality["measure"].isin(names) & (quality["condition"] != "baseline")]
    ends = drawn[["ratio_low", "ratio_high", "margin_low", "margin_high"]].to_numpy(np.float64)
    low, high = (np.nanmin(ends), np.nanmax(ends)) if np.isfinite(ends).any() else (0.9, 1.1)
    room = 0.08 * (high - low)
    span = (float(low - room), float(high + room))
    figure = go.Figure()
    for row, name in enumerate(names):
        _band(figure, drawn[drawn["measure"] == name], row, span, colours)
    for lane, condition in ((-0.16, "suppressed"), (0.16, "random")):
        rows = drawn[drawn["condition"] == condition]
        shade, _, symbol = looks(colours)[condition]
        figure.add_scatter(
            x=rows["ratio"],
            y=[names.index(name) + lane for name in rows["measure"]],
            mode="markers",
            name=CONDITIONS[condition],
            marker={"size": 9, "color": shade, "symbol": symbol, "line": {"width": 1.6}},
            error_x={
                "type": "data",
                "symmetric": False,
                "array": rows["ratio_high"] - rows["ratio"],
                "arrayminus": rows["ratio"] - rows["ratio_low"],
                "color": shade,
                "thickness": 1.5,
                "width": 0,
            },
            customdata=rows[["mean", "ratio_low", "ratio_high"]].to_numpy(),
            hovertemplate=(
                "ratio %{x:.3f}, 95 % interval %{customdata[1]:.3f} to %{customdata[2]:.3f}<br>"
                f"mean {CONDITIONS[condition]} %{{customdata[0]:.4g}}<extra></extra>"
            ),
        )
    figure.add_vline(x=1, line={"color": colours.muted, "width": 1})
    figure.update_xaxes(title_text="ratio to before<br>shaded: margin set beforehand", range=span)
    figure.update_yaxes(
        tickvals=list(range(len(names))),
        ticktext=[_row_name(quality, name) for name in names],
        tickfont={"color": colours.text},
        range=[len(names) - 0.4, -0.6],
        showgrid=False,
        zeroline=False,
    )
    figure.update_layout(
        _layout(
            dark,
            148 + ROW_HEIGHT * len(names),
            "Quality of the text",
            "Mean before → after; ✓ within the margin",
        )
    )
    return figure


def _band(
    figure: go.Figure, rows: pd.DataFrame, row: int, span: tuple[float, float], colours: Palette
) -> None:
    """The margin of one measure, to the edge of the figure where it is open on that side."""
    margin = rows[["margin_low", "margin_high"]].dropna(how="all")
    if margin.empty:
        return
    ends = [float(margin[name].iloc[0]) for name in ("margin_low", "margin_high")]
    left, right = (span[i] if np.isnan(end) else end for i, end in enumerate(ends))
    figure.add_shape(
        type="rect", x0=left, x1=right, y0=row - 0.38, y1=row + 0.38, layer="below",
        fillcolor=colours.faint, opacity=0.55, line={"width": 0},
    )  # fmt: skip


def _row_name(quality: pd.DataFrame, measure: str) -> str:
    """The measure, its mean before and after, and whether it stays within its margin."""
    rows = quality[quality["measure"] == measure].set_index("condition")
    known = rows["mean"].astype(float).to_dict()
    means = [number(known[name]) for name in ("baseline", "suppressed") if name in known]
    within = rows["within"].get("suppressed")
    mark = "" if within is None or pd.isna(within) else (" ✓" if within else " <b>✗</b>")
    return f"{MEASURES[measure]}<br>{' → '.join(means)}{mark}"


def quality_alt(quality: pd.DataFrame) -> str:
    """The ratios after suppression in one sentence."""
    rows = quality[(quality["condition"] == "suppressed") & quality["measure"].isin(MEASURES)]
    said = []
    for row in rows.to_dict("records"):
        verdict = row["within"]
        ending = (
            ""
            if verdict is None or pd.isna(verdict)
            else (", within the margin" if verdict else ", outside the margin")
        )
        said.append(f"{MEASURES[str(row['measure'])]} {row['ratio']:.3f}{ending}")
    return f"Quality after suppression as a ratio to before: {'; '.join(said)}."


def _layout(dark: bool, height: int, title: str, subtitle: str) -> go.Layout:
    return layout(
        dark,
        height=height,
        title={"text": title, "subtitle": {"text": subtitle}},
        legend={"orientation": "h", "x": 0, "y": 0, "yanchor": "bottom", "yref": "container"},
        margin={"l": 8, "r": 12, "t": 54, "b": 66},
    )
