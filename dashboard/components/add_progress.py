"""A model that is being added: progress, what it said, stop, go on; the same in every session."""

import streamlit as st

from dashboard import background, data, service_add as service, text_add as text, theme
from dashboard.background import Status
from dashboard.components.add_form import CHECKED
from dashboard.components.add_placed import CHOSEN
from dashboard.components.doors import escape_markdown
from dashboard.components.panel import attempt
from dashboard.data import RunRef


EVERY = 2.0
"""Seconds between two looks at a command that runs."""
SEEN = "add_seen"
"""State that holds which command this session last saw running."""
SHOWN = "add_shown"
"""State that holds which command's end was shown."""


def progress_panel(ref: RunRef) -> None:
    """How the last model that was added here stands; looks again while it runs."""
    found = service.status(ref)
    problem = st.session_state.pop("add_problem", None)
    if problem:
        st.warning(problem, icon=":material/lock:")
    if found is None:
        return
    if found.state == "running":
        st.session_state[SEEN] = found.work.pid
        _watching(ref)
    else:
        ended(ref, found)


@st.fragment(run_every=EVERY)
def _watching(ref: RunRef) -> None:
    found = service.status(ref)
    if found is None or found.state != "running":
        if found is None or service.is_read(ref, found):
            st.rerun(scope="app")
        st.caption(text.READING)
        return
    with st.container(border=True):
        with st.container(horizontal=True, gap="small", vertical_alignment="center"):
            st.markdown(f"**{_plain(text.RUNNING.format(label=found.work.label))}**", width=460)
            st.caption(theme.seconds_text(found.seconds), width=90)
            asked = st.session_state.get("add_stop") == found.work.pid
            st.button(
                text.CANCEL_NOW if asked else text.CANCEL, key="add_cancel",
                icon=":material/stop_circle:", on_click=_stop, args=(ref, found, asked),
            )  # fmt: skip
        share, words = shown_progress(found)
        st.progress(share, words)
        if asked:
            st.caption(text.STOPPING)
        _log(found)


def shown_progress(found: Status) -> tuple[float, str]:
    """Share and words of the bar."""
    if found.done is None or not found.total:
        return 0.0, found.sentence or text.NOT_REPORTED
    share = min(1.0, found.done / found.total)
    return share, f"{found.step}: {found.done:,} of {found.total:,}"


def _stop(ref: RunRef, found: Status, asked: bool) -> None:
    st.session_state["add_stop"] = found.work.pid
    background.stop(data.run_of(ref).path, at_once=asked)


def ended(ref: RunRef, found: Status) -> None:
    """How a command ended; one that stopped can be gone on with."""
    label = _plain(found.work.label)
    if found.state == "finished":
        if st.session_state.get(SEEN) == found.work.pid:
            _show_once(found)
            said = text.FINISHED.format(label=label, seconds=theme.seconds_text(found.seconds))
            st.success(said, icon=":material/check_circle:")
        return
    if found.state == "stopped":
        st.info(text.STOPPED.format(label=label), icon=":material/pause_circle:")
    else:
        st.error(
            text.BROKEN.format(label=label, sentence=_plain(found.sentence)),
            icon=":material/error:",
        )
    st.button(
        text.RESUME, key="add_resume", icon=":material/play_circle:", on_click=_resume,
        args=(ref, found),
    )  # fmt: skip
    _log(found)


def _show_once(found: Status) -> None:
    """Choose the model below and forget its checks, the first time its end is seen."""
    if st.session_state.get(SHOWN) != found.work.pid:
        st.session_state[SHOWN] = found.work.pid
        st.session_state[CHOSEN] = found.work.label
        st.session_state.pop(CHECKED, None)


def _resume(ref: RunRef, found: Status) -> None:
    path = data.run_of(ref).path
    _, problem = attempt(background.start, path, found.work.arguments, found.work.label)
    st.session_state["add_problem"] = problem


def _log(found: Status) -> None:
    with st.expander(text.LOG, icon=":material/terminal:"):
        st.code(found.log.strip() or "–", language="text", height=180)


def _plain(said: str) -> str:
    """A sentence without what Markdown would read as its own."""
    return escape_markdown(said)
