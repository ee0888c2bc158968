"""The Add a model page: checks, estimate, progress, and the model beside its nearest neighbours."""

import streamlit as st

from dashboard import data, service_add as service, text_add as text
from dashboard.components.add_form import form
from dashboard.components.add_placed import placed_panel
from dashboard.components.add_progress import progress_panel
from dashboard.components.elsewhere import no_models
from dashboard.components.facts import page_head
from dashboard.components.panel import empty_state, panel, plain_errors
from dashboard.data import RunRef


def page() -> None:
    """Draw the page; on a map that ships it says how to get one that takes models."""
    ref = data.current()
    page_head("Add a model", text.ADD, text.ADD_HOW)
    if not data.has(ref, "model_embeddings"):
        no_models("model_embeddings")
        return
    if service.ships(ref):
        _shipped(ref)
    else:
        with plain_errors():
            _add(ref)
    _placed(ref)


def _shipped(ref: RunRef) -> None:
    """Nothing of what ships is changed: the command that copies it, and the copy if it is there."""
    own = service.own_copy(ref)
    empty_state(text.SHIPPED.format(own=own), service.command(ref, "", ""))
    if service.has_own_copy(ref):
        st.caption(text.OWN_EXISTS)
        st.button(own, key="add_switch", on_click=_switch, args=(own,))
        return
    st.caption(text.SHIPPED_COPY)
    st.code(service.copy_command(ref), language="bash")


def _switch(name: str) -> None:
    st.session_state["run"] = name


def _add(ref: RunRef) -> None:
    found = service.status(ref)
    progress_panel(ref)
    form(ref, busy=found is not None and found.state == "running")


@panel
def _placed(ref: RunRef) -> None:
    placed_panel(ref)
