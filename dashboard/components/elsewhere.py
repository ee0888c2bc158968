"""What a page says on a run that holds other things: what the run is, and where to look instead."""

import html
from collections.abc import Callable

import streamlit as st

from dashboard import data, text, text_heads, text_models
from dashboard.components.doors import door
from dashboard.data import RunRef


MOST = 6
"""Runs offered at most."""


SHOWING: dict[str, tuple[tuple[str, str, str], ...]] = {
    "heads": (
        ("heads", "Heads", ":material/visibility:"),
        ("emergence", "Emergence", ":material/trending_up:"),
    ),
    "models": (
        ("models", "Models", ":material/hub:"),
        ("catalogue", "Catalogue", ":material/account_tree:"),
    ),
}
"""Pages that show runs without prototypes, by kind: path, title, icon."""


def no_prototypes(title: str, kind: str) -> None:
    """On a run of heads or models: pages that show it, and runs that the page `title` shows."""
    st.html(f'<div class="hw-head"><h1>{html.escape(title)}</h1></div>')
    with st.container(border=True):
        st.text(text.NO_PROTOTYPES[kind])
        st.caption(text.SHOWN_HERE)
        with st.container(horizontal=True, gap="small"):
            for path, name, icon in SHOWING[kind]:
                door(path, name, icon)
            door("overview", "Overview of this run", ":material/dashboard:")
        _switches(text.HOLDS_PROTOTYPES, lambda other: data.has(other, "prototypes"))


def no_heads(table: str = "head_scores") -> None:
    """On a run without heads: the runs that hold some, or the commands that make one.

    Args:
        table: What the page cannot do without.
    """
    with st.container(border=True):
        st.text(text_heads.NO_HEADS)
        if _switches(text_heads.HOLDS_HEADS, lambda other: data.has(other, table)):
            return
        st.caption(text_heads.NO_HEADS_ANYWHERE)
        st.code(text_heads.NO_HEADS_COMMANDS, language="bash")


def no_models(table: str = "model_embeddings") -> None:
    """On a run without a map of models: the runs that hold one, or the commands that make one.

    Args:
        table: What the page cannot do without.
    """
    with st.container(border=True):
        st.text(text_models.NO_MODELS)
        if _switches(text_models.HOLDS_MODELS, lambda other: data.has(other, table)):
            return
        st.caption(text_models.NO_MODELS_ANYWHERE)
        st.code(text_models.NO_MODELS_COMMANDS, language="bash")


def _switches(sentence: str, fits: Callable[[RunRef], bool]) -> bool:
    """A button for each run that fits; returns whether there is one."""
    names = [other.name for other in data.run_refs() if fits(other)][:MOST]
    if not names:
        return False
    st.caption(sentence)
    with st.container(horizontal=True, gap="small"):
        for name in names:
            st.button(name, key=f"switch_{name}", on_click=_switch, args=(name,))
    return True


def _switch(name: str) -> None:
    """Choose a run in the sidebar."""
    st.session_state["run"] = name
