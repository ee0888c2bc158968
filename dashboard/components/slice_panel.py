"""What stands behind a slice: its prototype's label, numbers and training neighbours."""

import pandas as pd
import streamlit as st

from dashboard import data, state
from dashboard.components.card import card_head
from dashboard.components.dialogs import open_dialogs
from dashboard.components.doors import door
from dashboard.components.neighbours import neighbours
from dashboard.components.prompt_box import Reading
from dashboard.data import RunRef


N_NEIGHBOURS = 5
"""Training neighbours read beside a slice."""


def slice_choice(ids: list[int], labels: list[str], current: int | None) -> int | None:
    """A list of the slices drawn, for readers who do not click on charts; the link's `slice`."""
    names = {i: f"#{i}  {label}" for i, label in zip(ids, labels, strict=True)}
    if current is not None and current not in names:
        names[current] = f"#{current}"
    key = "slice_choice"
    chosen = ids[0] if current is None and ids else current
    if chosen is not None:
        st.session_state[key] = chosen

    def choose() -> None:
        state.write(slice=st.session_state[key])

    st.selectbox(
        "Read the prototype behind a slice",
        list(names),
        format_func=lambda i: names[i],
        key=key,
        on_change=choose,
        help="The same as a click on a bar of the waterfall.",
    )
    return chosen


def slice_panel(ref: RunRef, reading: Reading, prototype: int) -> None:
    """Label with its score, rates, training neighbours; doors to its page and to suppression."""
    row = indexed(ref, prototype)
    if row is None:
        st.markdown(f"#### #{prototype}")
    else:
        card_head(row, level="####")
    with st.container(horizontal=True, gap="small"):
        door("prototypes", "Open its page", ":material/open_in_new:", prototype=str(prototype))
        door(
            "suppression",
            "Suppress it",
            ":material/toggle_off:",
            prompt=reading.prompt,
            position=str(reading.position),
            set=str(prototype),
        )
    if row is None:
        st.caption("This run has no index, so nothing is known of its training neighbours.")
        return
    neighbours(ref, row, key="slice", n_top=N_NEIGHBOURS, quantiles=False)
    open_dialogs(ref, row)


def indexed(ref: RunRef, prototype: int) -> pd.Series | None:
    """The prototype's row of the index, if there is one."""
    if not data.has(ref, "prototypes"):
        return None
    frame = data.prototypes(ref)
    rows = frame[frame["prototype"] == prototype]
    return None if rows.empty else rows.iloc[0]
