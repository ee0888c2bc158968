"""Links from one page to another that keep the run and carry what is looked at."""

import re

import streamlit as st


_MARKDOWN = re.compile(r"([\\`*_{}\[\]()<>#+.!|~$:-])")


def door(path: str, label: str, icon: str, **parameters: str) -> None:
    """A link to the page `path` with URL parameters; the run goes along."""
    page = st.session_state.get("headwater_pages", {}).get(path)
    if page is None:
        return
    run = st.query_params.get("run")
    wanted = {"run": run, **parameters} if run else parameters
    st.page_link(page, label=label, icon=icon, query_params=wanted)


def escape_markdown(text: str) -> str:
    """Text that Markdown shows as it is."""
    return _MARKDOWN.sub(r"\\\1", text)
