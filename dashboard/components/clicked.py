"""A click on a chart counts once, although the chart keeps it selected."""

from collections.abc import Sequence

import streamlit as st


def new_click(key: str, selected: Sequence[int]) -> int | None:
    """The id a reader has just clicked on the chart `key`; None when the selection is an old one.

    Args:
        key: Widget key of the chart.
        selected: Ids its selection holds in this run.
    """
    seen = f"{key}:seen"
    before = st.session_state.get(seen, ())
    now = tuple(selected)
    st.session_state[seen] = now
    return now[0] if now and now != before else None
