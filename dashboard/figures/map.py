"""The map of prototypes: one WebGL trace, ids in `customdata`."""

import math
from collections.abc import Collection

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from dashboard import theme
from dashboard.figures.tokens import escaped


COLOURS = {
    "category": "Category of the label",
    "top_domain": "Domain it prefers",
    "firing_rate": "Firing rate (log scale)",
    "label_score": "Label score",
    "unwanted_share": "Share in unwanted text",
}
"""What the map can show by colour."""
_NAMED = 10
_COMPACT = 0.55
"""Groups wider than this share of the map's spread get no name on the map."""
_LABELLED = 4096
"""Points up to which every point carries its label; above, the card tells it on a click."""


def prototype_map(
    frame: pd.DataFrame,
    hidden: pd.DataFrame,
    *,
    colour: str,
    chosen: int | None,
    picked: Collection[int],
    dark: bool,
    height: int = 310,
) -> go.Figure:
    """Points by UMAP coordinate, coloured by one column.

    Args:
        frame: Rows of `prototypes` that pass the filters; `label` beside the table's columns.
        hidden: Rows that do not: grey, not selectable.
        colour: Key of `COLOURS`.
        chosen: Prototype ringed.
        picked: Prototypes of the lasso; the others fade. Empty: none fades.
        dark: Theme.
        height: Pixels.
    """
    colours = theme.palette(dark)
    figure = go.Figure(
        layout=theme.layout(
            dark,
            height=height,
            dragmode="lasso",
            uirevision="map",
            selectionrevision="map",
            showlegend=False,
            margin={"l": 0, "r": 0, "t": 6, "b": 0},
            xaxis={"visible": False},
            yaxis={"visible": False, "scaleanchor": "x"},
        )
    )
    _context(figure, hidden, colours)
    marker, labels = _marker(frame, colour, colours)
    size = 7 if len(frame) < 800 else 5 if len(frame) < 4000 else 3.5
    figure.add_trace(
        go.Scattergl(
            x=frame["x"].to_numpy(np.float32),
            y=frame["y"].to_numpy(np.float32),
            customdata=frame["prototype"].to_numpy(np.int32),
            text=frame["label"].map(escaped) if len(frame) <= _LABELLED else None,
            mode="markers",
            marker={"size": size, "opacity": 0.85, **marker},
            selectedpoints=_selected(frame, picked),
            unselected={"marker": {"opacity": 0.12}},
            selected={"marker": {"opacity": 1}},
            hovertemplate="#%{customdata}  %{text}<extra></extra>"
            if len(frame) <= _LABELLED
            else "#%{customdata}<extra></extra>",
            name="prototypes",
        )
    )
    _ring(figure, pd.concat([frame, hidden]) if len(hidden) else frame, chosen, colours)
    _names(figure, labels, colours)
    return figure


def _context(figure: go.Figure, hidden: pd.DataFrame, colours: theme.Palette) -> None:
    """What the filters hide: small, grey, behind everything, not selectable."""
    if hidden.empty:
        return
    figure.add_trace(
        go.Scattergl(
            x=hidden["x"].to_numpy(np.float32),
            y=hidden["y"].to_numpy(np.float32),
            mode="markers",
            marker={"size": 3, "color": colours.faint},
            hoverinfo="skip",
            name="hidden",
        )
    )


def _names(
    figure: go.Figure, labels: list[tuple[str, float, float, str]], colours: theme.Palette
) -> None:
    """Names of groups, on the map itself."""
    for name, x, y, shade in labels:
        figure.add_annotation(
            x=x, y=y, text=escaped(name), showarrow=False,
            font={"size": 11, "color": colours.text},
            bgcolor=_veil(colours), borderpad=1, bordercolor=shade, borderwidth=1,
            captureevents=False,
        )  # fmt: skip


def legend(frame: pd.DataFrame, colour: str, *, dark: bool) -> list[tuple[str, str, int]]:
    """Name, colour and size of each group of the map, the largest first; empty for numbers."""
    if colour not in ("category", "top_domain"):
        return []
    sizes = {str(k): int(n) for k, n in frame[colour].fillna("none").value_counts().items()}
    shades = theme.category_colours(list(sizes), theme.palette(dark))
    return [(name, shades[name], n) for name, n in sizes.items()]


def _veil(colours: theme.Palette) -> str:
    return "rgba(17,22,27,0.78)" if colours.dark else "rgba(255,255,255,0.82)"


def _selected(frame: pd.DataFrame, picked: Collection[int]) -> np.ndarray | None:
    if not picked:
        return None
    return np.flatnonzero(frame["prototype"].isin(list(picked)).to_numpy())


def _ring(figure: go.Figure, frame: pd.DataFrame, chosen: int | None, c: theme.Palette) -> None:
    """An open circle around the chosen prototype."""
    at = frame[frame["prototype"] == chosen]
    if at.empty:
        return
    figure.add_trace(
        go.Scattergl(
            x=at["x"],
            y=at["y"],
            mode="markers",
            marker={
                "size": 15,
                "color": "rgba(0,0,0,0)",
                "line": {"width": 2.5, "color": c.text},
            },
            unselected={"marker": {"opacity": 1}},
            hoverinfo="skip",
            name="chosen",
        )
    )


def _marker(
    frame: pd.DataFrame, colour: str, c: theme.Palette
) -> tuple[dict[str, object], list[tuple[str, float, float, str]]]:
    """Marker settings, and direct labels (name, x, y, colour) of the largest groups."""
    if colour in ("category", "top_domain"):
        return _groups(frame, colour, c)
    values = frame[colour].astype(float).to_numpy()
    bar: dict[str, object] = {
        "title": {"text": _bar_title(colour), "side": "right", "font": {"size": 11}},
        "thickness": 8,
        "len": 0.6,
        "x": 1,
        "xpad": 2,
        "tickfont": {"size": 11, "color": c.muted},
        "outlinewidth": 0,
    }
    if colour == "firing_rate":
        values = np.log10(np.maximum(values, 1e-7))
        bar |= _log_ticks(values)
    values = np.where(np.isfinite(values), values, np.nan).astype(np.float32)
    return {"color": values, "colorscale": "Cividis", "colorbar": bar, "showscale": True}, []


def _bar_title(colour: str) -> str:
    return {
        "firing_rate": "tokens firing, % (log)",
        "label_score": "balanced accuracy",
        "unwanted_share": "share of its tokens",
    }[colour]


def _log_ticks(values: np.ndarray) -> dict[str, object]:
    if not len(values):
        return {}
    exponents = range(math.floor(float(values.min())), math.ceil(float(values.max())) + 1)
    return {"tickvals": list(exponents), "ticktext": [f"{10.0 ** (e + 2):g}" for e in exponents]}


def _groups(
    frame: pd.DataFrame, column: str, c: theme.Palette
) -> tuple[dict[str, object], list[tuple[str, float, float, str]]]:
    codes, found = pd.factorize(frame[column].fillna("none"))
    sizes = np.bincount(codes, minlength=len(found))
    order = np.argsort(-sizes, kind="stable")
    shades = theme.category_colours([str(found[i]) for i in order], c)
    palette = list(dict.fromkeys(shades.values())) or [c.rest]
    place = np.array([palette.index(shades[str(name)]) for name in found], dtype=np.float32)
    top = max(1, len(palette) - 1)
    steps: list[list[object]] = []
    for i, shade in enumerate(palette):
        steps += [[max(0.0, (i - 0.5) / top), shade], [min(1.0, (i + 0.5) / top), shade]]
    marker: dict[str, object] = {
        "color": place[codes] if len(found) else codes,
        "colorscale": steps,
        "cmin": 0,
        "cmax": top,
        "showscale": False,
    }
    xy = frame[["x", "y"]].to_numpy(np.float64)
    named = [(str(found[i]), xy[codes == i]) for i in order[:_NAMED]]
    labels = [(name, *_medoid(part), shades[name]) for name, part in named if _compact(part, xy)]
    return marker, _apart(labels, np.ptp(xy, axis=0) if len(xy) else np.ones(2))


def _apart(
    labels: list[tuple[str, float, float, str]], extent: np.ndarray
) -> list[tuple[str, float, float, str]]:
    """Labels, the largest group's first, without those that would cover one before them."""
    kept: list[tuple[str, float, float, str]] = []
    for label in labels:
        near = [abs(label[1] - k[1]) < 0.24 * extent[0] for k in kept]
        level = [abs(label[2] - k[2]) < 0.07 * extent[1] for k in kept]
        if not any(n and v for n, v in zip(near, level, strict=True)):
            kept.append(label)
    return kept


def _compact(part: np.ndarray, everything: np.ndarray) -> bool:
    """Whether a group is in one place: only then does a name in its middle say where it is."""
    distances = np.hypot(*(part - np.median(part, axis=0)).T)
    return bool(np.median(distances) <= _COMPACT * everything.std(axis=0).mean())


def _medoid(xy: np.ndarray) -> tuple[float, float]:
    """The point of the group nearest to its median: a label there lies on the group."""
    nearest = int(((xy - np.median(xy, axis=0)) ** 2).sum(1).argmin())
    return float(xy[nearest, 0]), float(xy[nearest, 1])
