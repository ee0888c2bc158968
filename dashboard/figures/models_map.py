"""The map of models: marks by likeness, documented and predicted edges, what is wrong of these."""

from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from jaxtyping import Bool, Float, Int

from dashboard import theme
from dashboard.figures.model_marks import (
    Shades,
    colour_entries,
    faded,
    hover_text,
    legend_entries,
    legend_lines,
    shape_entries,
    sizes,
    symbols,
)
from dashboard.figures.tokens import escaped


HEIGHT, LINE = 760, 20
"""Pixels of the figure, and of a line of a legend."""
ACROSS = (4, 4, 2)
"""Entries of colours, shapes and edges that a line takes where the figure is narrow."""
LANDMARKS = 14
"""Roots that are named, those with most models first, as far as names do not cover one another."""
_FADED = 0.14
Ends = Int[np.ndarray, "edges 2"]


@dataclass(frozen=True)
class DrawnEdges:
    """Edges to draw, as places of marks: from, to."""

    documented: Ends = field(default_factory=lambda: np.zeros((0, 2), np.int64))
    taught: Ends = field(default_factory=lambda: np.zeros((0, 2), np.int64))
    """Documented ones that copy no weights: teacher to student."""
    right: Ends = field(default_factory=lambda: np.zeros((0, 2), np.int64))
    """Predicted ones whose base is documented."""
    wrong: Ends = field(default_factory=lambda: np.zeros((0, 2), np.int64))
    """Predicted ones whose base is another."""


@dataclass(frozen=True)
class OnMap:
    """What stands out on the map."""

    chosen: int | None
    """Place of the model of the card."""
    shown: Bool[np.ndarray, " models"]
    """What the filters leave; others are faded."""
    picked: Collection[int] = ()
    """Models of the lasso; others fade. Empty: none fades."""
    marked: Collection[int] = ()
    """Models marked in the table: ringed."""


@dataclass(frozen=True)
class Said:
    """What is written around a map."""

    title: str
    subtitle: str
    axes: tuple[str, str] | None = None
    """Titles of the axes, of a picture whose directions mean something."""
    across: tuple[int, int, int] = ACROSS
    """Entries of each legend that a line takes."""


def models_map(
    rows: pd.DataFrame,
    shades: Shades,
    edges: DrawnEdges,
    on_map: OnMap,
    *,
    dark: bool,
    said: Said,
) -> go.Figure:
    """Models at their places; a click or lasso gives places of cards.

    Args:
        rows: place, model, x, y, relation, n_parameters, added and hover, a row a card in order;
            x and y are NaN where a model has no place.
        shades: Colours, aligned with `rows`.
        edges: What is drawn between marks.
        on_map: What stands out.
        dark: Theme.
        said: What is written around it.
    """
    colours = theme.palette(dark)
    along = (
        {"visible": False} if said.axes is None else {"title": {"text": said.axes[0]}, "nticks": 6}
    )
    up = {"visible": False} if said.axes is None else {"title": {"text": said.axes[1]}, "nticks": 6}
    figure = go.Figure(
        layout=theme.layout(
            dark,
            height=HEIGHT,
            dragmode="lasso",
            uirevision="models",
            selectionrevision="models",
            title={"text": said.title, "subtitle": {"text": said.subtitle}},
            margin={"l": 0, "r": 0, "t": 48, "b": 8},
            xaxis=along,
            yaxis={**up, "scaleanchor": "x"},
        )
    )
    xy = rows[["x", "y"]].to_numpy(np.float64)
    _draw_edges(figure, xy, edges, colours)
    _rings(figure, rows, xy, on_map, colours)
    _marks(figure, rows, xy, shades, on_map, colours)
    _landmarks(figure, rows, xy, on_map, colours)
    figure.add_traces(shades.traces())
    _legends(figure, rows, shades, edges, colours, said.across)
    return figure


def _legends(
    figure: go.Figure,
    rows: pd.DataFrame,
    shades: Shades,
    edges: DrawnEdges,
    colours: theme.Palette,
    across: tuple[int, int, int],
) -> None:
    """Legends of colours, shapes and edges below one another, and room for them."""
    found = (
        (colour_entries(shades), "legend", "Colour", 100),
        (shape_entries(rows["relation"], colours), "legend2", "Shape", 100),
        (_edge_entries(edges, colours), "legend3", "Edge", 178),
    )
    lines = [legend_lines(len(e), n) for (e, *_), n in zip(found, across, strict=True)]
    below = LINE * sum(lines) + 12
    figure.update_layout(margin_b=below + 8)
    for (entries, name, title, width), n in zip(found, lines, strict=True):
        legend_entries(figure, entries, name, title, below / HEIGHT, width=width)
        below -= LINE * n


def _styles(colours: theme.Palette) -> dict[str, tuple[str, str, str, float]]:
    """Words, colour, dash and width of each kind of edge."""
    return {
        "documented": ("documented, weights", colours.muted, "solid", 1.0),
        "taught": ("documented, teacher", colours.muted, "dash", 1.1),
        "right": ("predicted, right", colours.raises, "dot", 1.5),
        "wrong": ("predicted, wrong (✕)", colours.lowers, "dot", 1.8),
    }


def _draw_edges(
    figure: go.Figure, xy: Float[np.ndarray, "models 2"], edges: DrawnEdges, colours: theme.Palette
) -> None:
    for kind, (words, shade, dash, width) in _styles(colours).items():
        ends: Ends = getattr(edges, kind)
        if not len(ends):
            continue
        gap = np.full(len(ends), np.nan)
        figure.add_scatter(
            x=np.column_stack([xy[ends[:, 0], 0], xy[ends[:, 1], 0], gap]).ravel(),
            y=np.column_stack([xy[ends[:, 0], 1], xy[ends[:, 1], 1], gap]).ravel(),
            mode="lines", line={"color": shade, "dash": dash, "width": width},
            opacity=0.5 if kind in ("documented", "taught") else 0.9,
            hoverinfo="skip", showlegend=False, name=words,
        )  # fmt: skip
    middle = (xy[edges.wrong[:, 0]] + xy[edges.wrong[:, 1]]) / 2
    figure.add_scatter(
        x=middle[:, 0], y=middle[:, 1], mode="markers", hoverinfo="skip", showlegend=False,
        marker={"symbol": "x-thin", "size": 8, "line": {"width": 2, "color": colours.lowers}},
        name="wrong",
    )  # fmt: skip


def _rings(
    figure: go.Figure,
    rows: pd.DataFrame,
    xy: Float[np.ndarray, "models 2"],
    on_map: OnMap,
    colours: theme.Palette,
) -> None:
    """Rings around what was added later, what is marked in the table, and the chosen model."""
    diameters = sizes(rows["n_parameters"])
    places = np.arange(len(rows))
    rings = (
        ("added later", rows["added"].to_numpy(bool), colours.muted, "dot", 1.4),
        ("marked", np.isin(places, list(on_map.marked)), colours.text, "solid", 1.6),
        ("chosen", places == on_map.chosen, colours.accent, "solid", 3.0),
    )
    for name, own, shade, _, width in rings:
        if not own.any():
            continue
        figure.add_scatter(
            x=xy[own, 0], y=xy[own, 1], mode="markers", hoverinfo="skip", showlegend=False,
            marker={"size": diameters[own] + (11 if name == "added later" else 7),
                    "color": "rgba(0,0,0,0)", "line": {"width": width, "color": shade},
                    "symbol": "square" if name == "added later" else "circle"},
            unselected={"marker": {"opacity": 1}}, name=name,
        )  # fmt: skip


def _marks(
    figure: go.Figure,
    rows: pd.DataFrame,
    xy: Float[np.ndarray, "models 2"],
    shades: Shades,
    on_map: OnMap,
    colours: theme.Palette,
) -> None:
    """Every model that has a place; faded where filters or a lasso leave it out."""
    away = _away(rows, on_map)
    drawn = np.isfinite(xy.sum(1))
    figure.add_scatter(
        x=xy[drawn, 0],
        y=xy[drawn, 1],
        mode="markers",
        marker={
            "size": sizes(rows["n_parameters"])[drawn],
            "symbol": np.array(symbols(rows["relation"]), dtype=object)[drawn],
            "color": [
                faded(shade, _FADED if out else 0.95)
                for shade, out, own in zip(shades.colours, away, drawn, strict=True)
                if own
            ],
            "opacity": 1,
            "line": {"width": 0.6, "color": colours.background},
        },
        selected={"marker": {"opacity": 1}},
        unselected={"marker": {"opacity": 1}},
        customdata=rows["place"].to_numpy(np.int32)[drawn][:, None],
        hovertext=[hover_text(h) for h in rows["hover"][drawn]],
        hovertemplate="%{hovertext}<extra></extra>",
        showlegend=False,
        name="models",
    )


def _away(rows: pd.DataFrame, on_map: OnMap) -> Bool[np.ndarray, " models"]:
    """Models that filters or a lasso leave out."""
    away = ~on_map.shown
    if on_map.picked:
        away = away | ~np.isin(np.arange(len(rows)), list(on_map.picked))
    return away


def _landmarks(
    figure: go.Figure,
    rows: pd.DataFrame,
    xy: Float[np.ndarray, "models 2"],
    on_map: OnMap,
    colours: theme.Palette,
) -> None:
    """Names of the roots with most models, without faded ones and those that would cover one."""
    roots = rows["root"].where(rows["root"] != "")
    counts = roots.value_counts()
    own = rows[
        rows["model"].isin(list(counts.index)).to_numpy()
        & np.isfinite(xy.sum(1))
        & ~_away(rows, on_map)
    ]
    ordered = own.assign(n=own["model"].map(counts)).sort_values(
        ["n", "model"], ascending=[False, True], kind="stable"
    )
    extent = np.nanmax(xy, axis=0) - np.nanmin(xy, axis=0) if len(own) else np.ones(2)
    kept: list[tuple[float, float]] = []
    for row in ordered.to_dict("records"):
        x, y = float(row["x"]), float(row["y"])
        near = any(abs(x - a) < 0.13 * extent[0] and abs(y - b) < 0.04 * extent[1] for a, b in kept)
        if near or len(kept) >= LANDMARKS:
            continue
        kept.append((x, y))
        figure.add_annotation(
            x=x, y=y, text=escaped(str(row["model"]).rpartition("/")[2]), showarrow=False,
            yshift=16, font={"size": 11, "color": colours.text}, borderpad=1,
            bgcolor="rgba(17,22,27,0.55)" if colours.dark else "rgba(255,255,255,0.6)",
            captureevents=False,
        )  # fmt: skip


def _edge_entries(edges: DrawnEdges, colours: theme.Palette) -> list[go.Scatter]:
    """Entries of the kinds of edges that are drawn, with their numbers."""
    return [
        go.Scatter(
            mode="lines",
            name=f"{words} {len(getattr(edges, kind)):,}",
            line={"color": shade, "dash": dash, "width": width + 0.4},
        )
        for kind, (words, shade, dash, width) in _styles(colours).items()
        if len(getattr(edges, kind))
    ]


def map_alt(rows: pd.DataFrame, edges: DrawnEdges, what: str) -> str:
    """The map in one sentence."""
    largest = rows["root"][rows["root"] != ""].value_counts().head(3)
    said = ", ".join(f"{name} {n}" for name, n in largest.items())
    return (
        f"{what} of {int(rows['x'].notna().sum())} models; {len(edges.documented)} documented "
        f"edges, {len(edges.right)} predicted right and {len(edges.wrong)} wrong. "
        f"Largest lineages: {said or 'unknown'}."
    )
