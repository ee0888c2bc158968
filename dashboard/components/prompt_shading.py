"""The prompt's tokens, shaded by residual share or by one prototype."""

import pandas as pd
import streamlit as st

from dashboard import service
from dashboard.components.prompt_box import Reading, reading_strip
from dashboard.data import RunRef


SHOWN = (4, 8, 12, 16, 32)
"""How many slices a waterfall draws on their own."""


def shaded_prompt(ref: RunRef, reading: Reading, selected: int | None) -> None:
    """The prompt's tokens, shaded by residual share or by one prototype's activation."""
    found = service.activations(ref, reading.prompt)
    if found.notice:
        st.info(found.notice, icon=":material/content_cut:")
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(
            "Click a token to explain what follows it. Shaded: "
            + ("residual share." if selected is None else "what you choose here."),
            width="stretch",
        )
        shade = "residual share" if selected is None else _shade(selected)
        st.selectbox(
            "Slices drawn",
            SHOWN,
            index=SHOWN.index(12),
            key="shown",
            bind="query-params",
            format_func=lambda n: f"show {n} slices",
            label_visibility="collapsed",
            width=150,
        )
    residual = found.residuals.set_index("position")["residual_share"]
    values = residual
    if shade == "prototype":
        own = found.frame[found.frame["prototype"] == selected]
        values = own.set_index("position")["activation"]
    reading_strip(reading, values, _titles(reading, found.frame, residual), key="strip", limit=1.0)


def _shade(selected: int) -> str | None:
    """What shades the tokens once a prototype is chosen."""
    return st.segmented_control(
        "Shade by",
        ("prototype", "residual share"),
        default="prototype",
        required=True,
        key="shade",
        format_func=lambda o: f"prototype #{selected}" if o == "prototype" else o,
        label_visibility="collapsed",
    )


def _titles(reading: Reading, frame: pd.DataFrame, residual: pd.Series) -> list[str]:
    """What a token says on hover: its residual share and strongest prototypes."""
    strongest = frame[frame["rank"] < 3]
    lines = {
        position: "\n".join(
            f"#{p} {label}  {a:.2f}"
            for p, label, a in zip(
                rows["prototype"], rows["label"], rows["activation"], strict=True
            )
        )
        for position, rows in strongest.groupby("position")
    }
    titles = []
    for token in reading.tokens:
        place = token.position
        head = f"position {place}, outside the context"
        if place in residual.index:
            head = f"position {place} · residual share {residual[place]:.2f}"
        titles.append(f"{head}\n{lines.get(place, '')}")
    return titles
