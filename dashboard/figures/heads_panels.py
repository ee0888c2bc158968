"""Figures below the emergence curves: shared samples, structures, timing, mixtures."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from dashboard import text_heads as text, theme
from dashboard.figures.heads import LABELLED
from dashboard.figures.heads_emergence import veiled
from dashboard.figures.tokens import escaped


TAG_ROW = 25
"""Pixels a structure takes."""
TIMES = [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50]
"""Ticks of an axis of ratios."""
MIXTURE_DASHES = ("solid", "dash", "dot", "dashdot", "longdash")
"""Dashes of mixtures, from the largest share of repeats on."""
OVERLAP_TITLES = {
    "overlap": "Share of top samples in common",
    "spearman": "Rank correlation of influence",
}


def overlap_matrix(
    rows: pd.DataFrame, measure: str, marks: Mapping[str, str], *, dark: bool, subtitle: str
) -> go.Figure:
    """Heads × heads: how far they share their most influential samples.

    Args:
        rows: name, other (LAYER.HEAD) and the measure; NaN where it could not be computed.
        measure: overlap (share) or spearman.
        marks: Kind of chosen heads, by head.
        dark: Theme.
        subtitle: Seed, probe and n.
    """
    colours = theme.palette(dark)
    names = list(dict.fromkeys(rows["name"]))
    grid = rows.pivot_table(index="name", columns="other", values=measure, dropna=False)
    grid = grid.reindex(index=names, columns=names)
    values = grid.to_numpy(np.float64)
    shown = [
        f"{n} {'◆' if marks.get(n) == 'induction' else '■' if n in marks else ''}" for n in names
    ]
    signed = measure == "spearman"
    figure = go.Figure(
        layout=theme.layout(
            dark,
            height=max(260, 34 * len(names)) + 110,
            title={"text": OVERLAP_TITLES[measure], "subtitle": {"text": subtitle}},
            xaxis={"title": {"text": "head"}, "type": "category", "tickangle": 0},
            yaxis={"title": {"text": "head"}, "type": "category", "autorange": "reversed"},
        )
    )
    scale = (
        [[0, colours.lowers], [0.5, colours.panel], [1, colours.raises]]
        if signed
        else [[0, colours.panel], [1, colours.accent]]
    )
    figure.add_heatmap(
        z=values,
        x=shown,
        y=shown,
        zmin=-1 if signed else 0,
        zmax=1,
        xgap=1,
        ygap=1,
        colorscale=scale,
        colorbar={"thickness": 8, "outlinewidth": 0, "nticks": 5},
        hovertemplate="%{y} and %{x}: %{z:.3f}<extra></extra>",
        hoverongaps=False,
        texttemplate="%{z:.2f}" if len(names) ** 2 <= LABELLED else "",
        textfont={"size": 11},
    )
    below = [name.strip().replace(" ", "<br>") for name in shown]
    figure.update_xaxes(showgrid=False, tickvals=shown, ticktext=below)
    figure.update_yaxes(showgrid=False)
    return figure


def overlap_alt(rows: pd.DataFrame, measure: str) -> str:
    """The largest pairs of different heads."""
    other = rows[rows["name"] < rows["other"]].dropna(subset=[measure])
    best = other.sort_values(measure, ascending=False).head(3).to_dict("records")
    said = "; ".join(f"{r['name']} with {r['other']} {r[measure]:.2f}" for r in best)
    return f"{OVERLAP_TITLES[measure]} of {rows['name'].nunique()} heads; largest: {said}."


def kinds_dots(rows: pd.DataFrame, *, dark: bool, subtitle: str) -> go.Figure:
    """Effect of each arm on the chosen head, on others of its kind and on the other kind.

    Args:
        rows: Rows of `head_effects` of one kind, measures score, same_kind and other_kind.
        dark: Theme.
        subtitle: n and reading.
    """
    colours = theme.palette(dark)
    arms = [a for a in text.ARMS if a in set(rows["arm"])]
    groups = {
        "score": ("chosen head", colours.text, "circle", -0.24),
        "same_kind": ("others of its kind", colours.accent, "diamond", 0.0),
        "other_kind": ("heads of the other kind", colours.rest, "square", 0.24),
    }
    figure = go.Figure(
        layout=theme.layout(
            dark,
            height=44 * max(1, len(arms)) + 160,
            title={"text": "What an arm does to other heads", "subtitle": {"text": subtitle}},
            xaxis={"title": {"text": "arm − baseline (share of attention)"}, "nticks": 7},
            yaxis={
                "tickvals": list(range(len(arms))),
                "ticktext": [text.arm_name(a) for a in arms],
                "range": [len(arms) - 0.5, -0.5],
                "showgrid": False,
                "zeroline": False,
                "tickfont": {"color": colours.text},
            },
            margin={"b": 104},
            legend={"orientation": "h", "x": 0, "y": 0, "yanchor": "bottom", "yref": "container"},
        )
    )
    figure.add_vline(x=0, line={"color": colours.muted, "width": 1})
    for measure, (name, shade, symbol, shift) in groups.items():
        own = rows[rows["measure"] == measure].set_index("arm").reindex(arms)
        figure.add_scatter(
            x=own["effect"],
            y=np.arange(len(arms)) + shift,
            mode="markers",
            name=name,
            marker={"color": shade, "symbol": symbol, "size": 9},
            error_x={
                "type": "data",
                "symmetric": False,
                "array": own["high"] - own["effect"],
                "arrayminus": own["effect"] - own["low"],
                "color": shade,
                "thickness": 1.2,
                "width": 3,
            },
            customdata=own[["low", "high"]].to_numpy(),
            hovertemplate=(
                f"{name}: %{{x:+.3g}}<br>[%{{customdata[0]:+.3g}}, %{{customdata[1]:+.3g}}]"
                "<extra></extra>"
            ),
        )
    return figure


def enrichment(rows: pd.DataFrame, *, dark: bool, subtitle: str) -> go.Figure:
    """How much commoner each structure is among the top samples than among all; 1 is no more.

    Args:
        rows: Rows of `head_tags` of one kind of head.
        dark: Theme.
        subtitle: n and reading.
    """
    colours = theme.palette(dark)
    order = rows[rows["sign"] == "positive"].sort_values("enrichment", ascending=False)["tag"]
    tags = list(dict.fromkeys([*order, *rows["tag"]]))
    place = {tag: at for at, tag in enumerate(tags)}
    figure = go.Figure(
        layout=theme.layout(
            dark,
            height=TAG_ROW * max(2, len(tags)) + 140,
            title={"text": "Structures among the top samples", "subtitle": {"text": subtitle}},
            xaxis={
                "title": {"text": "times the base rate (log scale)"},
                "type": "log",
                "tickvals": TIMES,
                "ticktext": [f"{value:g}" for value in TIMES],
                "range": np.log10(_times_range(rows)).tolist(),
            },
            yaxis={
                "tickvals": list(range(len(tags))),
                "ticktext": [escaped(text.tag_name(tag)) for tag in tags],
                "range": [len(tags) - 0.5, -0.5],
                "showgrid": False,
                "zeroline": False,
                "tickfont": {"color": colours.text},
            },
            legend={"orientation": "h", "x": 0, "y": -0.22, "yanchor": "top"},
        )
    )
    figure.add_vline(x=1, line={"color": colours.muted, "width": 1})
    for sign, name, shade, symbol, shift in (
        ("positive", "samples that raise the score", colours.raises, "circle", -0.14),
        ("negative", "samples that lower it", colours.lowers, "diamond", 0.14),
    ):
        own = rows[(rows["sign"] == sign) & (rows["enrichment"] > 0)]
        places = [place[tag] + shift for tag in own["tag"]]
        figure.add_trace(_tag_dots(own, places, name, shade, symbol))
    return figure


def _times_range(rows: pd.DataFrame) -> tuple[float, float]:
    """Ends of the axis: every mark, and intervals down to half of the smallest one."""
    marks = rows.loc[rows["enrichment"] > 0, "enrichment"]
    low = max(0.5 * float(marks.min()), 0.005) if len(marks) else 0.5
    return min(low, 0.5), max(2.0, 1.15 * float(rows["high"].max()))


def _tag_dots(
    own: pd.DataFrame, places: list[float], name: str, shade: str, symbol: str
) -> go.Scatter:
    return go.Scatter(
        x=own["enrichment"],
        y=places,
        mode="markers",
        name=name,
        marker={"color": shade, "symbol": symbol, "size": 9},
        error_x={
            "type": "data",
            "symmetric": False,
            "array": own["high"] - own["enrichment"],
            # an interval of a mean may reach below 0, which a logarithmic axis has no place for
            "arrayminus": own["enrichment"] - own["low"].clip(lower=TIMES[0]),
            "color": shade,
            "thickness": 1.2,
            "width": 3,
        },
        customdata=own[["share", "base", "low", "high"]].to_numpy(),
        hovertext=[escaped(text.tag_name(tag)) for tag in own["tag"]],
        hovertemplate=(
            "%{hovertext}, %{fullData.name}<br>%{x:.2f} × base rate "
            "[%{customdata[2]:.2f}, %{customdata[3]:.2f}]<br>%{customdata[0]:.1%} of them, "
            "%{customdata[1]:.1%} of all<extra></extra>"
        ),
    )


def enrichment_alt(rows: pd.DataFrame) -> str:
    """The most enriched structures."""
    own = rows[rows["sign"] == "positive"].sort_values("enrichment", ascending=False).head(3)
    said = ", ".join(
        f"{text.tag_name(str(r['tag']))} {r['enrichment']:.2f}" for r in own.to_dict("records")
    )
    return f"Structures among samples that raise the score, over their base rate: {said}."


def timing(
    parts: pd.DataFrame, scores: pd.DataFrame, *, dark: bool, subtitle: str, unit: str
) -> go.Figure:
    """Where the top samples lie along the window, against the score of the head.

    Args:
        parts: seed, x, density and mass of each part of the window; 1 is even.
        scores: x and mean of the baseline's score over the window.
        dark: Theme.
        subtitle: n and reading.
        unit: Kind of head.
    """
    colours = theme.palette(dark)
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.08)
    figure.update_layout(
        theme.layout(
            dark,
            height=372,
            title={"text": "Top samples along the window", "subtitle": {"text": subtitle}},
            legend={"orientation": "h", "x": 0, "y": -0.2, "yanchor": "top"},
            margin={"l": 8, "r": 12, "t": 58, "b": 8},
        )
    )
    for column, name, shade, dash in (
        ("density", "top samples", colours.raises, "solid"),
        ("mass", "positive influence", colours.accent, "dash"),
    ):
        for trace in _part_lines(parts, column, name, shade, dash):
            figure.add_trace(trace, row=1, col=1)
    figure.add_hline(y=1, line={"color": colours.muted, "width": 1, "dash": "dot"}, row=1, col=1)  # pyright: ignore[reportArgumentType]
    figure.add_trace(
        go.Scatter(
            x=scores["x"],
            y=scores["mean"],
            mode="lines",
            name="score of the head, baseline",
            line={"color": colours.text, "width": 2},
            hovertemplate="score %{y:.3f}<br>step %{x:,}<extra></extra>",
        ),
        row=2,
        col=1,
    )
    figure.update_yaxes(title_text="times even", rangemode="tozero", nticks=5, row=1, col=1)
    figure.update_yaxes(
        title_text=f"{text.unit_name(unit)}<br>score (share)", rangemode="tozero", nticks=5,
        row=2, col=1,
    )  # fmt: skip
    figure.update_xaxes(showgrid=False)
    figure.update_xaxes(title_text="steps since the branch", row=2, col=1)
    return figure


def _part_lines(
    parts: pd.DataFrame, column: str, name: str, shade: str, dash: str
) -> list[go.Scatter]:
    """A thin line a seed and their mean."""
    means = parts.groupby("x")[column].mean()
    seeds = [
        go.Scatter(
            x=own["x"], y=own[column], mode="lines", hoverinfo="skip", showlegend=False,
            line={"color": veiled(shade, 0.3), "width": 1, "dash": dash},
        )
        for _, own in parts.groupby("seed")
    ]  # fmt: skip
    return [
        *seeds,
        go.Scatter(
            x=means.index,
            y=means,
            mode="lines",
            name=f"{name}, mean",
            line={"color": shade, "width": 2.2, "dash": dash},
            hovertemplate=f"{name}: %{{y:.2f}} × even<br>step %{{x:,.0f}}<extra></extra>",
        ),
    ]


def mixtures(rows: pd.DataFrame, metrics: Sequence[str], *, dark: bool) -> go.Figure:
    """Largest score of any head over tokens, by what the rows are made of: a line a seed.

    There is no mean: a run ends some time after its heads formed, and no two form at once.

    Args:
        rows: Rows of `head_mixtures`.
        metrics: Scores drawn, a row each.
        dark: Theme.
    """
    order = rows.groupby("mixture")["repeat_share"].first().sort_values(kind="stable").index
    names = [str(name) for name in order]
    shades = theme.category_colours(names, theme.palette(dark))
    figure = make_subplots(
        rows=len(metrics),
        cols=1,
        shared_xaxes=True,
        vertical_spacing=0.08,
        figure=go.Figure(
            layout=theme.layout(
                dark,
                height=190 * len(metrics) + 130 + 20 * (-(-len(names) // 3)),
                title={
                    "text": "Whether heads form, by mixture",
                    "subtitle": {
                        "text": f"{len(names)} mixtures; largest score of any head; a line a seed, "
                        "which ends after its heads formed or when it was given up"
                    },
                },
                legend={"orientation": "h", "x": 0, "y": -0.16, "yanchor": "top"},
                margin={"l": 8, "r": 12, "t": 58, "b": 8},
            )
        ),
    )
    for place, metric in enumerate(metrics, start=1):
        for at, name in enumerate(names):
            own = rows[rows["mixture"] == name]
            look = {
                "color": shades[name],
                "dash": MIXTURE_DASHES[(len(names) - 1 - at) % len(MIXTURE_DASHES)],
            }
            for trace in _mixture_lines(own, metric, name, look, legend=place == 1):
                figure.add_trace(trace, row=place, col=1)
        figure.update_yaxes(
            title_text=f"{text.METRICS[metric]}<br>(share)", rangemode="tozero", nticks=5,
            row=place, col=1,
        )  # fmt: skip
    figure.update_xaxes(showgrid=False)
    figure.update_xaxes(title_text="million tokens seen", row=len(metrics), col=1)
    return figure


def _mixture_lines(
    own: pd.DataFrame, metric: str, name: str, look: dict[str, str], *, legend: bool
) -> list[go.Scatter]:
    """A line a seed; the first stands for all of them in the legend, with their number."""
    seeds = own["seed"].nunique()
    words = f"{escaped(name)} ({seeds} seed{'s' * (seeds != 1)})"
    return [
        go.Scatter(
            x=part["tokens_seen"] / 1e6,
            y=part[metric],
            mode="lines",
            name=words,
            legendgroup=name,
            showlegend=legend and at == 0,
            line={**look, "width": 1.7},
            hovertemplate=f"{escaped(name)}, seed {seed}<br>%{{x:.2f}} M tokens: %{{y:.3f}}"
            "<extra></extra>",
        )
        for at, (seed, part) in enumerate(own.groupby("seed"))
    ]


def mixtures_alt(rows: pd.DataFrame, metric: str) -> str:
    """The last score of each mixture."""
    last = rows.sort_values("step").groupby(["mixture", "seed"])[metric].last()
    said = "; ".join(
        f"{name} {float(value):.2f}" for name, value in last.groupby("mixture").mean().items()
    )
    return f"{text.METRICS[metric]} at the end of training, by mixture: {said}."
