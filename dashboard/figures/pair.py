"""Two models: what moves the distance between them, and what each answers to one question."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from dashboard import theme
from dashboard.figures.row_axis import row_axis
from dashboard.figures.tokens import escaped, shortened


ROW = 24
"""Pixels a bar takes."""
TOP = 12
"""Questions drawn as bars; the table lists all."""
LABEL = 46
"""Characters of a question that are written beside its bar."""
SECOND = "#CC79A7"
"""Colour of the second model; the first has the accent."""


def probe_bars(rows: pd.DataFrame, chosen: int, *, dark: bool, subtitle: str) -> go.Figure:
    """Share of each question in the squared difference, largest on top; a click gives the question.

    Args:
        rows: probe, question (words), source, share, cosine; in the order drawn.
        chosen: Question looked at, drawn in the accent.
        dark: Theme.
        subtitle: How many questions there are, and what their shares add up to.
    """
    colours = theme.palette(dark)
    mine = (rows["probe"] == chosen).to_numpy()
    figure = go.Figure(
        layout=theme.layout(
            dark,
            height=ROW * max(1, len(rows)) + 112,
            showlegend=False,
            title={"text": "Questions that move the distance", "subtitle": {"text": subtitle}},
            xaxis={
                "title": {"text": "share of the squared difference"},
                "tickformat": ".1%",
                "rangemode": "tozero",
                "nticks": 5,
            },
            yaxis=_names_axis(rows["question"], rows["probe"], dark),
        )
    )
    figure.add_bar(
        orientation="h",
        x=rows["share"],
        y=np.arange(len(rows)),
        marker={"color": np.where(mine, colours.accent, colours.rest)},
        selected={"marker": {"opacity": 1}},
        unselected={"marker": {"opacity": 1}},
        customdata=_hover(rows),
        hovertemplate=(
            "question %{customdata[0]}, %{customdata[1]}<br>%{customdata[2]}<br>"
            "%{x:.2%} of the difference, cosine here %{customdata[3]}<extra></extra>"
        ),
    )
    return figure


def _hover(rows: pd.DataFrame) -> np.ndarray:
    said = [
        (int(p), escaped(str(s)), escaped(shortened(str(q), 90)), theme.signed(float(c), 2))
        for p, s, q, c in zip(
            rows["probe"], rows["source"], rows["question"], rows["cosine"], strict=True
        )
    ]
    found = np.empty((len(said), 4), dtype=object)
    for place, line in enumerate(said):
        found[place] = line
    return found


def _names_axis(
    questions: Sequence[str] | pd.Series, probes: pd.Series, dark: bool
) -> dict[str, Any]:
    colours = theme.palette(dark)
    names = [
        f"{escaped(shortened(str(question), LABEL))}  #{int(probe)}"
        for question, probe in zip(questions, probes, strict=True)
    ]
    return {
        "tickvals": list(range(len(names))),
        "ticktext": names,
        "tickfont": {"color": colours.text, "size": 11},
        "range": [len(names) - 0.45, -0.55],
        "showgrid": False,
        "zeroline": False,
        "ticklabelstandoff": 4,
    }


def probes_alt(rows: pd.DataFrame) -> str:
    """The largest shares in one sentence."""
    first = "; ".join(
        f"question {int(row['probe'])} ({row['source']}) {row['share']:.1%}"
        for row in rows.head(3).to_dict("records")
    )
    return f"Share of the squared difference by question, largest first: {first or 'none'}."


def domain_bars(rows: pd.DataFrame, *, dark: bool) -> go.Figure:
    """Share of each domain in the squared difference, and in both lengths as a line across.

    Args:
        rows: source, n, share, length_a, length_b, cosine; in the order drawn.
        dark: Theme.
    """
    colours = theme.palette(dark)
    expected = (rows["length_a"] + rows["length_b"]) / 2
    subtitle = f"n = {int(rows['n'].sum())} questions; the line: share of both lengths"
    figure = go.Figure(
        layout=theme.layout(
            dark,
            height=ROW * max(1, len(rows)) + 134,
            title={"text": "By domain", "subtitle": {"text": subtitle}},
            xaxis={
                "title": {"text": "share of the squared difference"},
                "tickformat": ".0%",
                "rangemode": "tozero",
                "nticks": 5,
            },
            yaxis=row_axis([escaped(str(name)) for name in rows["source"]], colours),
            showlegend=False,
        )
    )
    figure.add_bar(
        orientation="h",
        x=rows["share"],
        y=np.arange(len(rows)),
        marker={"color": colours.rest},
        customdata=np.stack([rows["n"], expected], axis=1) if len(rows) else None,
        hovertemplate=(
            "%{x:.1%} of the difference, %{customdata[1]:.1%} of both lengths, "
            "%{customdata[0]} questions<extra></extra>"
        ),
    )
    figure.add_scatter(
        x=expected,
        y=np.arange(len(rows)),
        mode="markers",
        marker={"symbol": "line-ns", "size": 15, "line": {"width": 2.4, "color": colours.text}},
        hoverinfo="skip",
    )
    ends = np.maximum(rows["share"].to_numpy(float), expected.to_numpy(float))
    reach = float(max(ends.max(initial=0.0), 0.01))
    figure.add_scatter(
        x=ends + 0.02 * reach,
        y=np.arange(len(rows)),
        mode="text",
        text=[f"cos {theme.signed(float(c), 2)}" for c in rows["cosine"]],
        textposition="middle right",
        textfont={"size": 11, "color": colours.muted},
        hoverinfo="skip",
        cliponaxis=False,
    )
    figure.update_xaxes(range=[0, 1.3 * reach])
    return figure


def domains_alt(rows: pd.DataFrame) -> str:
    """Domains in one sentence."""
    said = "; ".join(f"{r['source']} {r['share']:.0%}" for r in rows.to_dict("records"))
    return f"Share of the squared difference by domain: {said or 'none'}."


def option_dots(
    options: pd.DataFrame, names: tuple[str, str], *, dark: bool, axis: str
) -> go.Figure:
    """What each model gives each option, the likeliest filled; the right one is marked.

    Args:
        options: option (text), right, and for each side (0 and 1) `value_SIDE` and `chosen_SIDE`;
            NaN where a model did not read the question.
        names: Both models.
        dark: Theme.
        axis: Title of the axis with its unit.
    """
    colours = theme.palette(dark)
    rows = np.arange(len(options))
    figure = go.Figure(
        layout=theme.layout(
            dark,
            height=34 * max(1, len(options)) + 132,
            title={
                "text": "What each answers",
                "subtitle": {"text": "filled: chosen; ✓: the right option"},
            },
            xaxis={"title": {"text": axis}, "nticks": 6},
            yaxis={
                "tickvals": rows,
                "ticktext": [
                    f"{'✓ ' if right else ''}{escaped(shortened(str(option), 28))}"
                    for option, right in zip(options["option"], options["right"], strict=True)
                ],
                "tickfont": {"color": colours.text},
                "range": [len(options) - 0.45, -0.55],
                "zeroline": False,
                "ticklabelstandoff": 4,
            },
            legend={"orientation": "h", "x": 0, "y": 0, "yanchor": "bottom", "yref": "container"},
            margin={"l": 8, "r": 16, "t": 54, "b": 64},
        )
    )
    looks = ((colours.accent, "circle"), (SECOND, "diamond"))
    for side, (name, (shade, symbol)) in enumerate(zip(names, looks, strict=True)):
        chosen = options[f"chosen_{side}"].to_numpy(bool)
        figure.add_scatter(
            x=options[f"value_{side}"],
            y=rows + (-0.13 if side == 0 else 0.13),
            mode="markers",
            name=escaped(shortened(name, 34)),
            marker={
                "color": shade,
                "size": 11,
                "symbol": [symbol if c else f"{symbol}-open" for c in chosen],
                "line": {"color": shade, "width": 1.8},
            },
            hovertemplate=f"{escaped(name)}: %{{x:.3f}}<extra></extra>",
            cliponaxis=False,
        )
    return figure


def options_alt(options: pd.DataFrame, names: tuple[str, str]) -> str:
    """Which option each model chooses, in one sentence."""
    said = []
    for side, name in enumerate(names):
        own = options[options[f"chosen_{side}"]]
        if len(own):
            row = own.iloc[0]
            said.append(f"{name} chooses {row['option']}, {'right' if row['right'] else 'wrong'}")
        else:
            said.append(f"{name} did not read it")
    return f"{'; '.join(said)}."
