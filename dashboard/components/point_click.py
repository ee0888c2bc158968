"""A click on a mark of a map counts, even while the map is set to draw a lasso."""

from collections.abc import Callable
from pathlib import Path

import streamlit as st
from streamlit.components.v2 import component


_ASSETS = Path(__file__).with_name("assets")
_listen = component(
    "headwater_point_click", js=(_ASSETS / "point_click.js").read_text(encoding="utf-8")
)


def point_click(*, chart: str, trace: str, key: str, on_click: Callable[[int], None]) -> None:
    """Listen to clicks on a chart; draws nothing.

    Args:
        chart: Widget key of the chart.
        trace: Name of the trace whose marks carry ids in `customdata`.
        key: Widget key.
        on_click: Called with the id of a mark that was clicked, before the page reruns.
    """

    def changed() -> None:
        found = clicked_id(st.session_state.get(key))
        if found is not None:
            on_click(found)

    _listen(data={"chart": chart, "trace": trace}, key=key, on_clicked_change=changed)


def clicked_id(state: object) -> int | None:
    """The id that a component's state carries, checked; None for anything else."""
    raw = state.get("clicked") if isinstance(state, dict) else getattr(state, "clicked", None)
    found = raw.get("id") if isinstance(raw, dict) else None
    if not isinstance(found, int) or isinstance(found, bool):
        return None
    return found if found >= 0 else None
