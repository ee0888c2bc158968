"""The Overview page: what a run holds, doors, the numbers that matter, what is missing."""

import streamlit as st

from dashboard import data, text
from dashboard.components.facts import page_head
from dashboard.components.heads_overview import heads_at_a_glance, heads_hold
from dashboard.components.ledger import ledger
from dashboard.components.models_overview import models_at_a_glance, models_hold
from dashboard.components.overview_parts import doors, holds, missing, numbers
from dashboard.components.overview_pictures import pictures
from dashboard.components.panel import panel


def page() -> None:
    """Draw the page."""
    ref = data.current()
    page_head("Overview", text.OVERVIEW, text.OVERVIEW_HOW)
    run = data.run_of(ref)
    if run.kind == "heads":
        heads_hold(ref)
        st.space("xxsmall")
        doors(text.HEAD_DOORS)
        _heads(ref)
    elif run.kind == "models":
        models_hold(ref)
        st.space("xxsmall")
        doors(text.MODEL_DOORS)
        _models(ref)
    else:
        holds(run)
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
def _heads(ref: data.RunRef) -> None:
    heads_at_a_glance(ref)


@panel
def _models(ref: data.RunRef) -> None:
    models_at_a_glance(ref)


@panel
def _pictures(ref: data.RunRef) -> None:
    pictures(ref)
