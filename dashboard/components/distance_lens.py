"""A line below a map: while the pointer is on a mark, all marks show their true cosine to it."""

import base64
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import streamlit as st
from jaxtyping import Float, UInt8
from streamlit.components.v2 import component

from dashboard import theme
from dashboard.figures.model_marks import ramp


MOST = 1200
"""Models up to which every cosine is sent to the browser; a byte each."""
_ASSETS = Path(__file__).with_name("assets")
_draw = component(
    "headwater_distance_lens",
    css=(_ASSETS / "distance_lens.css").read_text(encoding="utf-8"),
    js=(_ASSETS / "distance_lens.js").read_text(encoding="utf-8"),
)


def reach_of(cosines: Float[np.ndarray, "models models"]) -> tuple[float, float]:
    """Cosines at both ends of the scale: all but the lowest 2 % of pairs, and the highest pair."""
    off = cosines[~np.eye(len(cosines), dtype=bool)]
    if not len(off):
        return 0.0, 1.0
    low, high = float(np.quantile(off, 0.02)), float(off.max())
    return low, high if high > low else low + 1e-6


def as_bytes(
    cosines: Float[np.ndarray, "models models"], low: float, high: float
) -> UInt8[np.ndarray, "models models"]:
    """Cosines in 255 steps between two ends, clipped to them."""
    return np.round(255 * np.clip((cosines - low) / (high - low), 0, 1)).astype(np.uint8)


def distance_lens(
    cosines: Float[np.ndarray, "models models"],
    names: Sequence[str],
    order: Sequence[int],
    *,
    chart: str,
    idle: str,
    key: str,
    on_click: Callable[[int], None],
) -> None:
    """Draw the line and let it recolour the chart `chart`.

    Args:
        cosines: Cosines of models, before any picture.
        names: Models in that order.
        order: Place of the model of each mark of the chart's trace `models`.
        chart: Widget key of the chart.
        idle: What the line says while the pointer is elsewhere.
        key: Widget key.
        on_click: Called with the place of a mark that was clicked, before the page reruns.
    """

    def changed() -> None:
        place = clicked_place(st.session_state.get(key), len(names))
        if place is not None:
            on_click(place)

    low, high = reach_of(cosines)
    packed = base64.b64encode(as_bytes(cosines, low, high).tobytes()).decode()
    stops = [[at, _rgb(str(shade))] for at, shade in ramp(theme.palette())]
    data = {
        "chart": chart,
        "names": list(names),
        "order": [int(place) for place in order],
        "cosines": packed,
        "low": low,
        "high": high,
        "ramp": stops,
        "idle": idle,
    }
    _draw(data=data, key=key, on_clicked_change=changed)


def clicked_place(state: object, n: int) -> int | None:
    """The place that a component's state carries, checked; None for anything else."""
    raw = state.get("clicked") if isinstance(state, dict) else getattr(state, "clicked", None)
    place = raw.get("place") if isinstance(raw, dict) else None
    if not isinstance(place, int) or isinstance(place, bool):
        return None
    return place if 0 <= place < n else None


def _rgb(shade: str) -> list[int]:
    return [int(shade[i : i + 2], 16) for i in (1, 3, 5)]
