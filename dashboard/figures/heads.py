"""Figures of attention heads: atlas, scores along training, scatter, attention on a text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from dashboard import text_heads as text, theme
from dashboard.figures.tokens import escaped, glyphs


LABELLED = 64
"""Heads up to which values are written into the cells."""
NAMED = 8
"""Heads up to which all are named on the scatter."""
TALL = 404
"""Pixels of a figure beside the scatter and what chooses its axes."""
MOST_TICKS = 34
"""Tokens that are written beside an attention map; others are named on hover."""
KIND_COLOURS = {
    "induction": "#009E73",
    "previous_token": "#CC79A7",
    "duplicate_token": "#8A7F00",
}
KIND_SYMBOLS = {"induction": "diamond", "previous_token": "square", "duplicate_token": "star"}


@dataclass(frozen=True)
class Marks:
    """Heads that stand out."""

    selected: str
    """Head looked at, as LAYER.HEAD."""
    kinds: Mapping[str, str]
    """Kind of the heads that a study chose, by head."""


def atlas(rows: pd.DataFrame, metric: str, marks: Marks, *, dark: bool, subtitle: str) -> go.Figure:
    """Layer × head heat-map of one score; a click gives the place of a head in `rows`.

    Args:
        rows: layer, head, name and the score, one row a head.
        metric: Column of the score, a share.
        marks: What stands out.
        dark: Theme.
        subtitle: Seed, step and number of heads.
    """
    colours = theme.palette(dark)
    grid = rows.pivot_table(index="layer", columns="head", values=metric)
    top = max(0.2, float(rows[metric].max()))
    figure = go.Figure(
        layout=theme.layout(
            dark,
            height=max(TALL, (46 if len(rows) <= LABELLED else 24) * len(grid) + 110),
            showlegend=False,
            title={"text": f"{text.METRICS[metric]} by head", "subtitle": {"text": subtitle}},
            xaxis={
                "title": {"text": "head"},
                "dtick": 1,
                "range": [rows["head"].min() - 0.5, rows["head"].max() + 0.5],
                "showgrid": False,
                "zeroline": False,
            },
            yaxis={
                "title": {"text": "layer"},
                "dtick": 1,
                "range": [rows["layer"].max() + 0.5, rows["layer"].min() - 0.5],
                "showgrid": False,
                "zeroline": False,
            },
        )
    )
    figure.add_heatmap(
        z=grid.to_numpy(),
        x=grid.columns,
        y=grid.index,
        zmin=0,
        zmax=top,
        xgap=2,
        ygap=2,
        colorscale=[[0, colours.panel], [1, colours.accent]],
        colorbar={"thickness": 8, "len": 1, "outlinewidth": 0, "nticks": 4},
        hoverinfo="skip",
        text=_written(rows, metric, marks, grid),
        texttemplate="%{text}",
        textfont={"size": 12 if len(rows) <= LABELLED else 9},
    )
    figure.add_trace(_cells(rows, marks))
    for row in rows[rows["name"] == marks.selected].to_dict("records"):
        layer, head = int(row["layer"]), int(row["head"])
        figure.add_shape(
            type="rect", x0=head - 0.48, x1=head + 0.48, y0=layer - 0.48, y1=layer + 0.48,
            line={"color": colours.text, "width": 2.5},
        )  # fmt: skip
    return figure


def _written(rows: pd.DataFrame, metric: str, marks: Marks, grid: pd.DataFrame) -> list[list[str]]:
    """What is written into the cells: the score, and a mark for the kind of a chosen head."""
    labelled = len(rows) <= LABELLED
    cells = {
        (layer, head): _cell_text(value, marks.kinds.get(name, ""), labelled)
        for layer, head, name, value in zip(
            rows["layer"], rows["head"], rows["name"], rows[metric], strict=True
        )
    }
    return [[cells.get((layer, head), "") for head in grid.columns] for layer in grid.index]


def _cells(rows: pd.DataFrame, marks: Marks) -> go.Scatter:
    """What a click lands on, without colour: a heat-map cannot be selected."""
    return go.Scatter(
        x=rows["head"],
        y=rows["layer"],
        mode="markers",
        marker={
            "symbol": "square",
            "size": 34 if len(rows) <= LABELLED else 15,
            "color": "rgba(0,0,0,0)",
        },
        selected={"marker": {"opacity": 1}},
        unselected={"marker": {"opacity": 1}},
        customdata=np.arange(len(rows))[:, None],
        hovertext=_hovers(rows, marks),
        hovertemplate="%{hovertext}<extra></extra>",
    )


def _cell_text(value: float, kind: str, labelled: bool) -> str:
    mark = {"induction": "◆", "previous_token": "■", "duplicate_token": "★"}.get(kind, "")
    if not labelled:
        return mark
    return f"{value:.2f}{'<br>' + mark if mark else ''}"


def _hovers(rows: pd.DataFrame, marks: Marks) -> list[str]:
    """Every score of each head, and the kind it was chosen for."""
    said = []
    for row in rows.to_dict("records"):
        name = str(row["name"])
        kind = marks.kinds.get(name)
        scores = "<br>".join(f"{words} {row[m]:.3f}" for m, words in text.METRICS.items())
        chosen = f"<br>chosen as {text.unit_name(kind).lower()} head" if kind else ""
        said.append(f"<b>head {name}</b><br>{scores}{chosen}")
    return said


def atlas_alt(rows: pd.DataFrame, metric: str) -> str:
    """The atlas in one sentence."""
    best = rows.sort_values(metric, ascending=False).head(3)
    said = ", ".join(f"{row['name']} {row[metric]:.2f}" for row in best.to_dict("records"))
    return f"{text.METRICS[metric]} of {len(rows)} heads, largest first: {said}."


def score_lines(
    rows: pd.DataFrame,
    metric: str,
    marks: Marks,
    *,
    dark: bool,
    step: int,
    window: tuple[int, int] | None,
) -> go.Figure:
    """One score of every head along training; the head looked at with the accent.

    Args:
        rows: step, name and the score.
        metric: Column of the score.
        marks: What stands out.
        dark: Theme.
        step: Step of the atlas, marked.
        window: First and last step of the seed's window, shaded.
    """
    colours = theme.palette(dark)
    names = list(dict.fromkeys(rows["name"]))
    figure = go.Figure(
        layout=theme.layout(
            dark,
            height=TALL,
            showlegend=False,
            title={
                "text": f"{text.METRICS[metric]} along training",
                "subtitle": {"text": f"{len(names)} heads; the thick line is {marks.selected}"},
            },
            xaxis={"title": {"text": "training step"}, "nticks": 6, "showgrid": False},
            yaxis={"title": {"text": "share of attention"}, "rangemode": "tozero", "nticks": 6},
        )
    )
    if window is not None:
        figure.add_vrect(
            x0=window[0], x1=window[1], fillcolor=colours.faint, opacity=0.35, line_width=0,
            layer="below", annotation_text="window", annotation_position="top left",
            annotation_font={"size": 11, "color": colours.muted},
        )  # fmt: skip
    figure.add_vline(x=step, line={"color": colours.muted, "dash": "dot", "width": 1.2})
    for name in sorted(names, key=lambda n: n == marks.selected):
        own = rows[rows["name"] == name]
        chosen = name == marks.selected
        kind = marks.kinds.get(name)
        shade = colours.accent if chosen else KIND_COLOURS.get(kind or "", colours.rest)
        figure.add_scatter(
            x=own["step"],
            y=own[metric],
            mode="lines",
            name=name,
            opacity=1 if chosen or kind else 0.5,
            line={"color": shade, "width": 2.6 if chosen else (1.6 if kind else 1)},
            hovertemplate=f"head {name}<br>step %{{x:,}}: %{{y:.3f}}<extra></extra>",
        )
    return figure


def head_scatter(
    rows: pd.DataFrame, x: tuple[str, str], y: tuple[str, str], marks: Marks, *, dark: bool
) -> go.Figure:
    """Heads over two of their measures; a click gives the place of a head in `rows`.

    Args:
        rows: name and the measures, one row a head; heads without either are left out.
        x: Column of the horizontal axis and its title with unit.
        y: The same of the vertical one.
        marks: What stands out.
        dark: Theme.
    """
    colours = theme.palette(dark)
    places = np.arange(len(rows))
    known = rows[[x[0], y[0]]].notna().all(axis=1).to_numpy() if len(rows) else places == 0
    own, places = rows[known], places[known]
    kinds = [marks.kinds.get(str(name), "") for name in own["name"]]
    chosen = (own["name"] == marks.selected).to_numpy()
    hidden = len(rows) - len(own)
    figure = go.Figure(
        layout=theme.layout(
            dark,
            height=302,
            showlegend=False,
            title={
                "text": "Heads over two measures",
                "subtitle": {
                    "text": f"n = {len(own):,} heads"
                    + (f"; {hidden:,} without a value left out" if hidden else "")
                },
            },
            xaxis={"title": {"text": x[1]}, "nticks": 6},
            yaxis={"title": {"text": y[1]}, "nticks": 6},
        )
    )
    figure.add_scatter(
        x=own[x[0]],
        y=own[y[0]],
        mode="markers+text",
        text=_labels(own, x[0], y[0], marks),
        hovertext=own["name"],
        textposition="top center",
        textfont={"size": 11, "color": colours.muted},
        marker={
            "size": np.where(chosen, 14, 9),
            "symbol": [KIND_SYMBOLS.get(kind, "circle") for kind in kinds],
            "color": [
                colours.accent if c else KIND_COLOURS.get(k, colours.rest)
                for c, k in zip(chosen, kinds, strict=True)
            ],
            "line": {"color": colours.text, "width": np.where(chosen, 1.5, 0)},
        },
        selected={"marker": {"opacity": 1}},
        unselected={"marker": {"opacity": 1}, "textfont": {"color": colours.muted}},
        customdata=places[:, None],
        cliponaxis=False,
        hovertemplate="head %{hovertext}<br>"
        + f"{x[1]} %{{x:.3g}}<br>{y[1]} %{{y:.3g}}<extra></extra>",
    )
    return figure


def _labels(own: pd.DataFrame, x: str, y: str, marks: Marks) -> list[str]:
    """Names beside the marks: of many heads the chosen ones and the ends of both axes alone."""
    names = [str(name) for name in own["name"]]
    if len(names) <= NAMED:
        return names
    ends = {names[int(at)] for c in (x, y) for at in (own[c].argmin(), own[c].argmax())}
    said = {marks.selected, *marks.kinds, *ends}
    return [name if name in said else "" for name in names]


def attention_map(
    pattern: np.ndarray, tokens: Sequence[str], name: str, *, dark: bool
) -> go.Figure:
    """Attention of one head on a text: from each token (row) to those before it (column).

    Args:
        pattern: Attention after the softmax [position, position]; rows add up to 1.
        tokens: Text of each token.
        name: Head as LAYER.HEAD.
        dark: Theme.
    """
    colours = theme.palette(dark)
    words = [escaped(glyphs(token)) for token in tokens]
    n = len(words)
    upper = np.triu(np.ones((n, n), bool), 1)
    ticks = list(range(0, n, max(1, -(-n // MOST_TICKS))))
    axis = {
        "tickvals": ticks,
        "ticktext": [words[i] for i in ticks],
        "tickfont": {"family": theme.MONOSPACE, "size": 10},
        "showgrid": False,
        "zeroline": False,
    }
    figure = go.Figure(
        layout=theme.layout(
            dark,
            height=min(620, max(380, 9 * n + 110)),
            title={
                "text": f"Attention of head {name}",
                "subtitle": {"text": f"{n} tokens; each row adds up to 1"},
            },
            xaxis={**axis, "title": {"text": "attended token"}, "tickangle": 0},
            yaxis={**axis, "title": {"text": "from token"}, "autorange": "reversed"},
        )
    )
    figure.add_heatmap(
        z=np.where(upper, np.nan, pattern),
        zmin=0,
        zmax=1,
        colorscale=[[0, colours.panel], [0.5, colours.accent], [1, colours.text]],
        colorbar={"thickness": 8, "title": {"text": "share", "font": {"size": 11}}, "nticks": 5},
        customdata=[[f"{i} ‘{a}’ → {j} ‘{b}’" for j, b in enumerate(words)]
                    for i, a in enumerate(words)],
        hovertemplate="%{customdata}<br>attention %{z:.3f}<extra></extra>",
        hoverongaps=False,
    )  # fmt: skip
    return figure


def attention_alt(pattern: np.ndarray, tokens: Sequence[str], name: str) -> str:
    """The pattern in one sentence: its strongest pairs but those of a token with itself."""
    below = np.tril(pattern, -1)
    order = np.argsort(-below, axis=None, kind="stable")[:3]
    pairs = [divmod(int(place), len(below)) for place in order]
    said = "; ".join(
        f"{i} ‘{glyphs(tokens[i])}’ to {j} ‘{glyphs(tokens[j])}’ {below[i, j]:.2f}"
        for i, j in pairs
    )
    return f"Attention of head {name} over {len(tokens)} tokens; strongest: {said}."
