"""Colours, number formats and the Plotly template, the same on every page and in both themes."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import plotly.graph_objects as go
import streamlit as st


FONT = '"Source Sans", "Source Sans 3", "Segoe UI", system-ui, sans-serif'
MONOSPACE = '"Source Code Pro", ui-monospace, Menlo, Consolas, monospace'

OKABE_ITO = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#8A7F00")
"""Okabe and Ito's palette; its yellow is darkened to stay visible on white."""
EXTENDED = (*OKABE_ITO, "#332288", "#882255", "#44AA99", "#999933", "#AA4499")
"""Twelve categories at most; what comes after is grey (`Palette.rest`)."""

_LIGHTER = {"#0072B2": "#3E97D1", "#332288": "#8E82DC", "#882255": "#C9648F", "#AA4499": "#C86BB9"}
"""Dark colours of the twelve and what stands for them on a dark ground."""


@dataclass(frozen=True)
class Palette:
    """The colours of one theme."""

    dark: bool
    background: str
    panel: str
    text: str
    muted: str
    grid: str
    accent: str
    """The one accent: activations, selections, links."""
    raises: str
    """Blue: raises a logit."""
    lowers: str
    """Orange: lowers a logit."""
    rest: str
    """Grey: residual, others, hidden."""
    faint: str
    """Grey behind everything: context points, empty bars."""


LIGHT = Palette(
    dark=False,
    background="#FFFFFF",
    panel="#F4F6F7",
    text="#1B2127",
    muted="#59636D",
    grid="#E6EAED",
    accent="#00706A",
    raises="#0072B2",
    lowers="#C65300",
    rest="#7A838C",
    faint="#D3D9DE",
)
DARK = Palette(
    dark=True,
    background="#11161B",
    panel="#1A2127",
    text="#E4E9ED",
    muted="#9FAAB4",
    grid="#29323A",
    accent="#4CC2B4",
    raises="#56B4E9",
    lowers="#F0913A",
    rest="#8B959F",
    faint="#38434D",
)


def is_dark() -> bool:
    """Whether this browser shows the dark theme."""
    return st.context.theme.type == "dark"


def palette(dark: bool | None = None) -> Palette:
    """Colours of the theme asked for, or of the theme on screen."""
    return DARK if (is_dark() if dark is None else dark) else LIGHT


def category_colours(names: list[str], colours: Palette) -> dict[str, str]:
    """A colour for each name in order; from the thirteenth on, the palette's grey."""
    shades = [(_LIGHTER.get(c, c) if colours.dark else c) for c in EXTENDED]
    return {n: shades[i] if i < len(shades) else colours.rest for i, n in enumerate(names)}


def layout(dark: bool, *, height: int = 280, **changes: Any) -> go.Layout:
    """Plotly layout shared by every figure; `changes` go on top."""
    if isinstance(title := changes.get("title"), dict) and "subtitle" in title:
        changes["title"] = _two_lines(title, palette(dark))
    return go.Layout(template=_template(dark), height=height, **changes)


@lru_cache(maxsize=2)
def _template(dark: bool) -> go.layout.Template:
    """Fonts, grid, margins and hover labels of one theme."""
    colours = palette(dark)
    axis = {
        "gridcolor": colours.grid,
        "linecolor": colours.faint,
        "zerolinecolor": colours.faint,
        "tickfont": {"color": colours.muted, "size": 12},
        "title": {"font": {"color": colours.muted, "size": 12}, "standoff": 8},
        "automargin": True,
    }
    return go.layout.Template(
        layout={
            "font": {"family": FONT, "color": colours.text, "size": 13},
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "colorway": list(EXTENDED),
            "xaxis": axis,
            "yaxis": axis,
            "margin": {"l": 8, "r": 8, "t": 54, "b": 8},
            "title": {
                "font": {"size": 13, "color": colours.text, "weight": 600},
                "x": 0,
                "xanchor": "left",
                "xref": "container",
                "y": 1,
                "yref": "container",
                "yanchor": "top",
                "pad": {"t": 14},
            },
            "hoverlabel": {
                "bgcolor": colours.panel,
                "bordercolor": colours.faint,
                "font": {"color": colours.text, "family": FONT, "size": 12},
                "align": "left",
            },
            "legend": {"font": {"color": colours.muted, "size": 12}, "bgcolor": "rgba(0,0,0,0)"},
            "dragmode": False,
            "bargap": 0.12,
            "modebar": {
                "bgcolor": "rgba(0,0,0,0)",
                "color": colours.muted,
                "activecolor": colours.accent,
            },
        }
    )


def _two_lines(title: dict[str, Any], colours: Palette) -> dict[str, Any]:
    """Title and subtitle as one text: Plotly sets its own subtitles too far below."""
    small = f"<span style='font-size:12px;font-weight:400;color:{colours.muted}'>"
    text = f"{title['text']}<br>{small}{title['subtitle']['text']}</span>"
    return {**{k: v for k, v in title.items() if k != "subtitle"}, "text": text}


def table_height(rows: int, most: int) -> int | Literal["content"]:
    """Height of a table: as tall as its rows, never above `most` pixels."""
    return "content" if 31 * (rows + 1) <= most else most


def _plain(value: float, digits: int) -> str:
    """`value` with `digits` significant digits and thousands separators, no exponent."""
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:,.{decimals}f}"


def number(value: float | None, digits: int = 3) -> str:
    """Three significant digits, thousands separators; an en dash where there is none."""
    if value is None or not math.isfinite(value):
        return "–"
    if value == 0:
        return "0"
    if not 1e-4 <= abs(value) < 1e9:
        return f"{value:.{digits - 1}e}"
    return _plain(value, digits)


def signed(value: float | None, digits: int = 3) -> str:
    """`number` with its sign always shown."""
    text = number(value, digits)
    return f"+{text}" if value is not None and value > 0 else text.replace("-", "−")


def percent(share: float | None, digits: int = 3) -> str:
    """A share as per cent."""
    if share is None or not math.isfinite(share):
        return "–"
    return f"{number(share * 100, digits)} %"


def count(value: float | None) -> str:
    """A whole number with thousands separators."""
    return "–" if value is None or not math.isfinite(value) else f"{round(value):,}"


def bytes_text(size: float) -> str:
    """Bytes in the largest decimal unit that keeps them above one."""
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{number(size)} {unit}"
        size /= 1000
    return f"{number(size)} TB"


def seconds_text(seconds: float | None) -> str:
    """A duration in the two largest units."""
    if seconds is None or not math.isfinite(seconds):
        return "–"
    if seconds < 90:
        return f"{number(seconds)} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s"
