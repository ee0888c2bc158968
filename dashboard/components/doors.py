"""Links from one page to another that keep the run and carry what is looked at."""

import re

import streamlit as st


HANDED = "handed"
"""Parameter in which a prompt travels. The box of the page one leaves is bound to `prompt` and
takes that out of the new address when it goes; the box of the next page reads this one first."""
HANDED_RUN = "into"
"""Parameter in which another run travels, for the same reason: the run picker is bound to `run`."""
_MARKDOWN = re.compile(r"([\\`*_{}\[\]()<>#+.!|~$:-])")


def door(path: str, label: str, icon: str, **parameters: str) -> None:
    """A link to the page `path` with URL parameters; the run goes along unless one is named."""
    page = st.session_state.get("headwater_pages", {}).get(path)
    if page is None:
        return
    if "prompt" in parameters:
        parameters[HANDED] = parameters.pop("prompt")
    if "run" in parameters:
        wanted = {HANDED_RUN: parameters.pop("run"), **parameters}
    else:
        run = st.query_params.get("run")
        wanted = {"run": run, **parameters} if run else parameters
    st.page_link(page, label=label, icon=icon, query_params=wanted)


def escape_markdown(text: str) -> str:
    """Text that Markdown shows as it is."""
    return _MARKDOWN.sub(r"\\\1", text)
