"""What marks of models and edges between them look like on every page."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.colors import sample_colorscale

from dashboard import theme
from dashboard.figures.tokens import escaped


SHAPES: dict[str, tuple[str, tuple[str, ...]]] = {
    "base or root": ("circle", ("base", "root")),
    "fine-tuned": ("triangle-up", ("finetune", "mild_sft", "heavy_sft", "chained_sft")),
    "instruct": ("diamond", ("instruct",)),
    "adapter": ("triangle-down", ("adapter", "lora")),
    "trained on": ("square", ("continued_pretraining", "continued", "vocabulary")),
    "pruned or rounded": ("hexagon", ("pruned", "layer_dropped", "quantised", "conversion")),
    "merged": ("star", ("merge", "merged", "task_merged")),
    "same function": ("pentagon", ("rewritten",)),
    "distilled": ("cross", ("distilled",)),
    "noise added": ("bowtie", ("perturbed",)),
    "other": ("x", ()),
}  # fmt: skip
"""Shapes by what was done to a model: symbol, and the relations it stands for."""
OTHER = "other"
_OPERATION = {name: words for words, (_, names) in SHAPES.items() for name in names}
DASHES = {
    "fine-tuned": "solid",
    "instruct": "dash",
    "adapter": "dot",
    "trained on": "longdash",
    "merged": "dashdot",
    "pruned or rounded": "longdashdot",
    OTHER: "3px 6px",
}
"""Dashes of edges by what was done; operations without one are drawn as unknown ones."""
SMALLEST, LARGEST = 7.0, 15.0
"""Diameters of marks on a map, in pixels."""
LEGEND_TEXT = 11


def operation(relation: str) -> str:
    """What was done, in the words of the legend."""
    return _OPERATION.get(relation, OTHER)


def symbols(relations: Iterable[str]) -> list[str]:
    """Symbol of each relation."""
    return [SHAPES[operation(str(relation))][0] for relation in relations]


def sizes(
    n_parameters: Sequence[float] | pd.Series, low: float = SMALLEST, high: float = LARGEST
) -> np.ndarray:
    """Diameters that grow with the logarithm of the parameters; the smallest where unknown."""
    counts = np.asarray(n_parameters, dtype=np.float64)
    known = counts > 0
    if not known.any():
        return np.full(len(counts), (low + high) / 2)
    logs = np.log10(np.where(known, counts, counts[known].min()))
    least, most = logs[known].min(), logs[known].max()
    return low + (high - low) * (logs - least) / max(most - least, 1e-9)


def faded(colour: str, opacity: float) -> str:
    """A colour, #RRGGBB or rgb(…), with an opacity of its own; charts keep it when they select."""
    if colour.startswith("#"):
        parts = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
    else:
        inside = colour.partition("(")[2].rstrip(")")
        parts = [round(float(part)) for part in inside.split(",")[:3]]
    return f"rgba({parts[0]},{parts[1]},{parts[2]},{opacity:g})"


def hover_text(lines: str) -> str:
    """Lines of a mark's label, apart by newlines, as Plotly shows them: the first one bold."""
    first, _, rest = escaped(lines).partition("\n")
    return f"<b>{first}</b>" + (f"<br>{rest}" if rest else "").replace("\n", "<br>")


def parameters_text(n: float) -> str:
    """A number of parameters as people write it: 7.2B, 350M, 97k."""
    if not n or not np.isfinite(n):
        return "unknown"
    for unit, letter in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if n >= unit:
            return f"{n / unit:.3g}{letter}"
    return f"{n:.0f}"


@dataclass(frozen=True)
class Shades:
    """Colours of marks, and what a legend or a bar says of them."""

    colours: Sequence[str]
    """A colour for each mark."""
    groups: Sequence[tuple[str, str, int]] = ()
    """Name, colour and size of each group; empty where numbers are shown."""
    bar: Mapping[str, object] | None = None
    """Marker of a trace that shows nothing but its colour bar; None where groups are shown."""

    def traces(self) -> list[go.Scatter]:
        """What draws the colour bar."""
        if self.bar is None:
            return []
        return [
            go.Scatter(
                x=[None], y=[None], mode="markers", marker=dict(self.bar), showlegend=False,
                hoverinfo="skip",
            )
        ]  # fmt: skip


def by_group(
    values: Sequence[str] | pd.Series, colours: theme.Palette, *, most: int = 12
) -> Shades:
    """A hue for each of the largest groups, grey for the others and for what has no value."""
    given = pd.Series([str(v) for v in values], dtype=object)
    counts = given[given != ""].value_counts()
    ordered = sorted(counts.index, key=lambda name: (-int(counts[name]), name))
    shades = theme.category_colours(ordered[:most], colours)
    shown = [(name, shades[name], int(counts[name])) for name in ordered[:most]]
    rest = sum(int(counts[name]) for name in ordered[most:])
    if rest:
        shown.append((f"{len(ordered) - most} more", colours.rest, rest))
    if (given == "").any():
        shown.append(("not stated", colours.rest, int((given == "").sum())))
    return Shades([shades.get(name, colours.rest) for name in given], shown)


def number_scale(colours: theme.Palette) -> list[list[object]]:
    """Viridis without the end that the ground of the theme swallows."""
    low, high = (0.25, 1.0) if colours.dark else (0.0, 0.88)
    steps = np.linspace(0, 1, 9)
    shades = sample_colorscale("Viridis", (low + (high - low) * steps).tolist())
    return [[float(at), str(shade)] for at, shade in zip(steps, shades, strict=True)]


def by_number(
    values: Sequence[float] | pd.Series,
    title: str,
    colours: theme.Palette,
    *,
    log: bool = False,
    scale: Sequence[Sequence[object]] | None = None,
    reach: tuple[float, float] | None = None,
) -> Shades:
    """A colour scale over numbers; faint where there is no number."""
    numbers = np.asarray(values, dtype=np.float64)
    numbers = np.where(numbers > 0, numbers, np.nan) if log else numbers
    shown = np.log10(numbers) if log else numbers
    known = shown[np.isfinite(shown)]
    low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
    low, high = reach or (low, high if high > low else low + 1)
    scaled = np.clip((shown - low) / max(high - low, 1e-12), 0, 1)
    scale = scale or number_scale(colours)
    drawn = sample_colorscale(scale, np.nan_to_num(scaled).tolist()) if len(scaled) else []
    known_here = np.isfinite(scaled)
    shades = [str(c) if ok else colours.faint for c, ok in zip(drawn, known_here, strict=True)]
    bar: dict[str, object] = {
        "title": {"text": title, "side": "right", "font": {"size": LEGEND_TEXT}},
        "thickness": 8,
        "len": 0.6,
        "x": 1,
        "xpad": 2,
        "tickfont": {"size": 11, "color": colours.muted},
        "outlinewidth": 0,
    }
    if log:
        ticks = [e for e in np.arange(np.floor(low), np.ceil(high) + 0.5, 0.5) if low <= e <= high]
        bar |= {"tickvals": ticks, "ticktext": [parameters_text(10**e) for e in ticks]}
    marker = {"color": [low], "cmin": low, "cmax": high, "colorscale": scale, "showscale": True}
    return Shades(shades, (), {**marker, "colorbar": bar})


def ramp(colours: theme.Palette) -> list[list[object]]:
    """From far to near: the scale of distances, the same as under the pointer."""
    return [[0, colours.faint], [0.4, colours.accent], [1, colours.lowers]]


def legend_entries(
    figure: go.Figure,
    entries: Iterable[go.Scatter],
    name: str,
    title: str,
    y: float,
    *,
    width: int = 112,
    alike: bool = True,
) -> None:
    """Entries of a legend of its own below the figure, so that a saved picture carries it.

    Args:
        figure: Figure that gets them.
        entries: Traces that show nothing but their entry.
        name: legend, legend2, legend3, …
        title: What it explains.
        y: Upper end, from the bottom of the figure, in shares of its height.
        width: Pixels of an entry's words.
        alike: Draw all keys at one size; else lines keep their widths.
    """
    shown = list(entries)
    for entry in shown:
        entry.update(x=[None], y=[None], showlegend=True, legend=name, hoverinfo="skip")
    if not shown:
        return
    figure.add_traces(shown)
    figure.update_layout(
        {
            name: {
                "orientation": "h",
                "x": 0,
                "xanchor": "left",
                "y": y,
                "yanchor": "top",
                "yref": "container",
                "title": {"text": f"<b>{title}</b>", "font": {"size": LEGEND_TEXT}},
                "font": {"size": LEGEND_TEXT},
                "itemclick": False,
                "itemdoubleclick": False,
                "entrywidth": width,
                "entrywidthmode": "pixels",
                "itemwidth": 42 if shown[0].mode == "lines" else 30,
                "tracegroupgap": 0,
                "itemsizing": "constant" if alike else "trace",
                "bgcolor": "rgba(0,0,0,0)",
            }
        }
    )


def legend_lines(n: int, across: int) -> int:
    """Lines that so many entries take; none where there are none."""
    return -(-n // across)


def colour_entries(shades: Shades) -> list[go.Scatter]:
    """Entries of the groups of colours."""
    return [
        go.Scatter(mode="markers", name=f"{name} {n:,}", marker={"size": 9, "color": colour})
        for name, colour, n in shades.groups
    ]


def shape_entries(relations: Iterable[str], colours: theme.Palette) -> list[go.Scatter]:
    """Entries of the shapes that are drawn."""
    drawn = {operation(str(relation)) for relation in relations}
    return [
        go.Scatter(
            mode="markers",
            name=words,
            marker={"size": 9, "symbol": symbol, "color": colours.rest},
        )
        for words, (symbol, _) in SHAPES.items()
        if words in drawn
    ]
