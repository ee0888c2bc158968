"""The graph of documented lineage: models as marks, stated ancestors as edges."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from dashboard import theme
from dashboard.figures.model_marks import (
    DASHES,
    LEGEND_TEXT,
    OTHER,
    Shades,
    colour_entries,
    faded,
    hover_text,
    legend_entries,
    operation,
    shape_entries,
    sizes,
    symbols,
)
from dashboard.figures.tokens import escaped
from dashboard.lineage import RADIAL_FROM, GraphLayout, Lineage


HEIGHT = 840
"""Pixels of the figure with its legends."""
LEGENDS = 186
"""Pixels of the legends below the plot."""
LANDMARK_FROM = 5
"""Roots of trees with so many models are named on the graph."""
_STRENGTH = {"checked": (1.8, 0.95), "unchecked": (1.1, 0.5), "missing": (1.1, 0.5)}
"""Width and opacity of an edge by what speaks for it."""
_FADED = 0.13
"""Opacity of what the filters hide."""


@dataclass(frozen=True)
class Shown:
    """What stands out on the graph."""

    chosen: str
    """Model of the card; its lineage is drawn strong."""
    hidden: frozenset[str]
    """Models that the filters hide: faded, not selectable."""
    embedded: frozenset[str]
    """Models with a ring."""


def lineage_graph(
    rows: pd.DataFrame,
    lineage: Lineage,
    layout: GraphLayout,
    shades: Shades,
    shown: Shown,
    *,
    dark: bool,
    title: str,
    subtitle: str,
) -> go.Figure:
    """Models at their places with edges to their stated ancestors; a click gives a row's place.

    Args:
        rows: model, name, label, relation, evidence and n_parameters, a row a model.
        lineage: Stated ancestors.
        layout: Places.
        shades: Colours, aligned with `rows`.
        shown: What stands out.
        dark: Theme.
        title: What is drawn.
        subtitle: n, and what places mean.
    """
    colours = theme.palette(dark)
    figure = go.Figure(
        layout=theme.layout(
            dark,
            height=HEIGHT,
            dragmode="pan",
            uirevision="lineage",
            title={"text": title, "subtitle": {"text": subtitle}},
            margin={"l": 0, "r": 0, "t": 48, "b": LEGENDS},
            xaxis={"visible": False, "range": [-0.8, layout.extent[0] + 0.8]},
            yaxis={"visible": False, "range": [-layout.extent[1], 0.4]},
        )
    )
    _band_line(figure, layout, colours)
    _edges(figure, rows, lineage, layout, shown, colours)
    _outside(figure, lineage, layout.places, colours)
    _marks(figure, rows, layout.places, shades, shown, colours)
    _names(figure, lineage, layout, colours)
    figure.add_traces(shades.traces())
    shapes = [*shape_entries(rows["relation"], colours), *_ring_entries(lineage, shown, colours)]
    legend_entries(figure, colour_entries(shades), "legend", "Colour", _below(0), width=84)
    legend_entries(figure, shapes, "legend2", "Shape", _below(1), width=96)
    legend_entries(figure, _edge_entries(rows, colours), "legend3", "Edge", _below(2), width=132)
    return figure


def _below(line: int) -> float:
    """Height of a legend in shares of the figure: three lines for colours, two for others."""
    return (LEGENDS - (4, 70, 118)[line]) / HEIGHT


def _band_line(figure: go.Figure, layout: GraphLayout, colours: theme.Palette) -> None:
    """A line above the band and what it holds."""
    if not layout.band:
        return
    figure.add_shape(
        type="line", x0=-0.5, x1=layout.extent[0] + 0.5, y0=layout.band_top, y1=layout.band_top,
        line={"color": colours.faint, "width": 1},
    )  # fmt: skip
    figure.add_annotation(
        x=-0.3, y=layout.band_top, text=f"{len(layout.band)} {layout.band_said}", showarrow=False,
        xanchor="left", yanchor="top", font={"size": LEGEND_TEXT, "color": colours.muted},
    )  # fmt: skip


def _edges(
    figure: go.Figure,
    rows: pd.DataFrame,
    lineage: Lineage,
    layout: GraphLayout,
    shown: Shown,
    colours: theme.Palette,
) -> None:
    """A trace for every dash and strength; those of the chosen model's lineage with the accent.

    Edges to models of the band would cross everything: of them the accented alone are drawn.
    """
    places = layout.places
    around = lineage.around(shown.chosen) if shown.chosen else set()
    lines: dict[tuple[str, str, bool, bool], list[tuple[float, float] | tuple[None, None]]] = {}
    for row in rows.to_dict("records"):
        model = str(row["model"])
        for parent in lineage.parents.get(model, ()):
            if parent not in places or model not in places:
                continue
            own = model in around and parent in around
            if not own and layout.band & {model, parent}:
                continue
            key = (operation(str(row["relation"])), str(row["evidence"]), own,
                   model in shown.hidden)  # fmt: skip
            lines.setdefault(key, []).extend((places[parent], places[model], (None, None)))
    for (words, evidence, own, hidden), points in sorted(lines.items()):
        width, opacity = _STRENGTH[evidence]
        figure.add_scatter(
            x=[x for x, _ in points],
            y=[y for _, y in points],
            mode="lines",
            line={
                "color": colours.accent if own else colours.text,
                "width": width + (0.8 if own else 0),
                "dash": DASHES.get(words, DASHES[OTHER]),
            },
            opacity=_FADED if hidden and not own else (1 if own else opacity),
            hoverinfo="skip",
            showlegend=False,
        )


def _outside(
    figure: go.Figure,
    lineage: Lineage,
    places: Mapping[str, tuple[float, float]],
    colours: theme.Palette,
) -> None:
    """Ancestors that are named and not on the list: hollow."""
    names = [name for name in lineage.outside if name in places]
    figure.add_scatter(
        x=[places[name][0] for name in names],
        y=[places[name][1] for name in names],
        mode="markers",
        marker={
            "size": 9,
            "color": "rgba(0,0,0,0)",
            "line": {"width": 1.4, "color": colours.rest},
        },
        hovertext=[f"<b>{escaped(name)}</b><br>named as an ancestor, not listed" for name in names],
        hovertemplate="%{hovertext}<extra></extra>",
        showlegend=False,
        name="outside",
    )


def _marks(
    figure: go.Figure,
    rows: pd.DataFrame,
    places: Mapping[str, tuple[float, float]],
    shades: Shades,
    shown: Shown,
    colours: theme.Palette,
) -> None:
    """Every listed model, then rings around the embedded ones and the chosen one."""
    models = [str(model) for model in rows["model"]]
    x, y = (np.array([places[m][axis] for m in models], dtype=np.float64) for axis in (0, 1))
    diameters = sizes(rows["n_parameters"], 6.0, 13.0)
    hidden = np.array([m in shown.hidden for m in models], dtype=bool)
    rings: tuple[tuple[Collection[str], str, float], ...] = (
        (shown.embedded, colours.text, 1.4),
        ({shown.chosen}, colours.accent, 3.0),
    )
    for names, shade, width in rings:
        own = np.array([m in names for m in models], dtype=bool)
        figure.add_scatter(
            x=x[own], y=y[own], mode="markers", hoverinfo="skip", showlegend=False,
            marker={"size": diameters[own] + 6, "color": "rgba(0,0,0,0)",
                    "line": {"width": width, "color": shade}},
            name="chosen" if width > 2 else "embedded",
        )  # fmt: skip
    figure.add_scatter(
        x=x,
        y=y,
        mode="markers",
        marker={
            "size": diameters,
            "symbol": symbols(rows["relation"]),
            "color": [
                faded(shade, _FADED if away else 1)
                for shade, away in zip(shades.colours, hidden, strict=True)
            ],
            "opacity": 1,
            "line": {"width": 0.6, "color": colours.background},
        },
        selected={"marker": {"opacity": 1}},
        unselected={"marker": {"opacity": 1}},
        customdata=np.arange(len(rows))[:, None],
        hovertext=[hover_text(h) for h in rows["hover"]],
        hovertemplate="%{hovertext}<extra></extra>",
        showlegend=False,
        name="models",
    )


def _names(
    figure: go.Figure, lineage: Lineage, layout: GraphLayout, colours: theme.Palette
) -> None:
    """Labels of groups, and names of the roots of large trees."""
    for label, n, x, y in layout.labels:
        figure.add_annotation(
            x=x, y=y, text=f"<b>{escaped(label)}</b> {n}", showarrow=False, xanchor="left",
            font={"size": 12, "color": colours.text}, captureevents=False,
        )  # fmt: skip
    for name, (x, y) in layout.places.items():
        below = len(lineage.descendants(name))
        if lineage.parents.get(name) or below + 1 < LANDMARK_FROM or name in layout.band:
            continue
        rings = below + 1 >= RADIAL_FROM
        figure.add_annotation(
            x=x, y=y, text=escaped(name.rpartition("/")[2]), showarrow=False,
            yshift=-15 if rings else 0, xshift=0 if rings else 9,
            xanchor="center" if rings else "left",
            font={"size": 10, "color": colours.text}, borderpad=0, captureevents=False,
            bgcolor="rgba(17,22,27,0.72)" if colours.dark else "rgba(255,255,255,0.78)",
        )  # fmt: skip


def _ring_entries(lineage: Lineage, shown: Shown, colours: theme.Palette) -> list[go.Scatter]:
    """Entries of the hollow marks and of the rings, where there are some."""
    kinds = ((bool(lineage.outside), "not listed", colours.rest, 1.4),
             (bool(shown.embedded), "ring: embedded", colours.text, 2.0))  # fmt: skip
    return [
        go.Scatter(mode="markers", name=words, marker={
            "size": 9, "color": "rgba(0,0,0,0)", "line": {"width": width, "color": shade}})
        for there, words, shade, width in kinds
        if there
    ]  # fmt: skip


def _edge_entries(rows: pd.DataFrame, colours: theme.Palette) -> list[go.Scatter]:
    """Entries of the dashes that are drawn, and of both strengths."""
    linked = rows[rows["evidence"] != "missing"]
    drawn = {operation(str(relation)) for relation in linked["relation"]}
    dashes = [
        go.Scatter(mode="lines", name=words, line={"color": colours.rest, "width": 1.6,
                                                   "dash": dash})
        for words, dash in DASHES.items()
        if words in drawn
    ]  # fmt: skip
    strengths = [
        go.Scatter(mode="lines", name=words, opacity=_STRENGTH[kind][1],
                   line={"color": colours.text, "width": _STRENGTH[kind][0] + 0.6})
        for kind, words in (("checked", "strong: a source is named"),
                            ("unchecked", "faint: unchecked"))
        if kind in set(linked["evidence"])
    ]  # fmt: skip
    return [*dashes, *strengths]


def lineage_alt(rows: pd.DataFrame, lineage: Lineage, layout: GraphLayout) -> str:
    """The graph in one sentence."""
    edges = sum(len(parents) for parents in lineage.parents.values())
    largest = sorted(layout.labels, key=lambda label: -label[1])[:3]
    said = ", ".join(f"{name} {n}" for name, n, *_ in largest)
    return (
        f"{len(rows)} models and {edges} documented edges; {len(layout.band)} models stand in the "
        f"band below. Largest groups: {said}."
    )
