"""Try your own text on one prototype."""

import pandas as pd
import streamlit as st

from dashboard import data, service, text, theme
from dashboard.components.panel import panel
from dashboard.components.token_strip import TokenCell, token_strip


@panel
def own_text(ref: data.RunRef, prototype: pd.Series) -> None:
    """A text field and the prototype's activation on each of its tokens."""
    st.markdown("**Try your own text on this prototype**")
    typed = st.text_area(
        "Text",
        key="own",
        bind="query-params",
        placeholder=text.OWN_TEXT,
        max_chars=2000,
        height=68,
        label_visibility="collapsed",
    )
    if not typed:
        st.caption("The model is loaded when you enter a text; it stays on this machine.")
        return
    frame = service.strip(ref, typed, int(prototype["prototype"]))
    cells = [
        TokenCell(
            str(row["token"]),
            float(row["activation"]),
            f"activation {row['activation']:.3f} · cosine {row['similarity']:+.3f} · "
            f"position {row['position']}",
        )
        for row in frame.to_dict("records")
    ]
    token_strip(cells, key="own_strip", limit=float(prototype["max_activation"]) or None)
    active = int((frame["activation"] > 0).sum())
    best = frame.iloc[int(frame["similarity"].to_numpy().argmax())]
    st.caption(
        f"Active on {active} of {len(frame)} tokens; largest cosine "
        f"{theme.signed(float(best['similarity']))} at position {int(best['position'])}."
    )
