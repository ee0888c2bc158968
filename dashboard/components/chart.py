"""One way to draw a figure: no toolbar clutter, a name for screen readers, saved as SVG or PNG."""

from collections.abc import Iterable
from typing import Any, Literal

import plotly.graph_objects as go
import streamlit as st

from dashboard import state


Mode = Literal["points", "box", "lasso"]
FORMATS = ("svg", "png")


def chart(
    figure: go.Figure,
    *,
    key: str,
    alt: str,
    file_name: str,
    select: Iterable[Mode] = (),
) -> tuple[int, ...]:
    """Draw `figure`; returns the ids in `customdata` of what the reader selected.

    Args:
        figure: Figure of `dashboard.figures`, never changed here.
        key: Widget key; a new key clears the selection.
        alt: Text read instead of the picture.
        file_name: Name of the saved picture, without extension.
        select: Selection modes among points, box and lasso; none makes a picture.
    """
    modes = tuple(select)
    chosen = st.session_state.get("figures", "svg")
    config = _config(file_name, modes, chosen if chosen in FORMATS else "svg")
    if not modes:
        st.plotly_chart(figure, key=key, alt=alt, theme=None, config=config)
        return ()
    st.plotly_chart(
        figure, key=key, alt=alt, theme=None, on_select="rerun", selection_mode=modes, config=config
    )
    return state.selected_ids(st.session_state.get(key))


def _config(file_name: str, modes: tuple[Mode, ...], form: str) -> dict[str, Any]:
    buttons: list[list[str]] = [["toImage"]]
    if "lasso" in modes:
        buttons = [
            ["pan2d", "lasso2d", "select2d", "zoomIn2d", "zoomOut2d", "resetScale2d"],
            *buttons,
        ]
    return {
        "displaylogo": False,
        "displayModeBar": True if "lasso" in modes else "hover",
        "scrollZoom": "lasso" in modes,
        "modeBarButtons": buttons,
        "toImageButtonOptions": {"format": form, "filename": file_name, "scale": 2},
    }


def format_picker() -> None:
    """Choice of the picture format every figure's camera button saves."""
    st.segmented_control(
        "Figures save as",
        FORMATS,
        default="svg",
        required=True,
        format_func=str.upper,
        key="figures",
        bind="query-params",
        help="Hover over a figure and press the camera to save it.",
    )
