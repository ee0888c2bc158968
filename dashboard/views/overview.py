"""The Overview page: what a run holds, three doors, the numbers that matter, what is missing."""

import streamlit as st

from dashboard import data, text
from dashboard.components.facts import page_head
from dashboard.components.ledger import ledger
from dashboard.components.overview_parts import doors, holds, missing, numbers, pictures
from dashboard.components.panel import panel


def page() -> None:
    """Draw the page."""
    ref = data.current()
    page_head("Overview", text.OVERVIEW, text.OVERVIEW_HOW)
    holds(data.run_of(ref))
    st.space("xxsmall")
    doors()
    st.markdown("### The numbers that matter")
    numbers(ref)
    st.space("xxsmall")
    _pictures(ref)
    st.markdown("### What is missing")
    missing(ref)
    ledger()


@panel
def _pictures(ref: data.RunRef) -> None:
    pictures(ref)
