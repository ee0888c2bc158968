"""The form of the page Add a model: place and name, checks, estimate, start."""

from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from dashboard import background, data, service_add as service, text_add as text, theme
from dashboard.components.facts import Fact, facts
from dashboard.components.panel import attempt
from dashboard.data import RunRef


if TYPE_CHECKING:
    from engine.live.adding import Prospect

CHECKED = "add_checked"
"""State that holds what was checked: run, place, name, prospect or sentence."""


def form(ref: RunRef, *, busy: bool) -> None:
    """Draw the form and what checking found.

    Args:
        ref: Run; one that may be changed.
        busy: Whether a model is being added now.
    """
    place, name = _fields()
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        pressed = st.button(
            text.CHECK, key="add_check", icon=":material/fact_check:", disabled=not place
        )
    if pressed:
        with st.spinner(text.CHECKING, show_time=True):
            st.session_state[CHECKED] = (ref.path, place, name, *attempt(
                service.prospect, ref, place, name))  # fmt: skip
    known = st.session_state.get(CHECKED)
    if known is None or known[:3] != (ref.path, place, name):
        st.caption(text.NOTHING)
    elif known[3] is None:
        st.error(known[4], icon=":material/error:")
    else:
        _found(ref, known[3], place, name, busy=busy)
    st.caption(text.COMMAND)
    st.code(service.command(ref, place, name), language="bash")


def _fields() -> tuple[str, str]:
    """Place and name as typed, without spaces around them."""
    left, right = st.columns([3, 2], gap="medium")
    with left:
        place = st.text_input(
            text.PLACE, key="place", bind="query-params", placeholder=text.PLACE_HINT,
            help=text.PLACE_HELP, max_chars=1000,
        )  # fmt: skip
    with right:
        name = st.text_input(
            text.NAME, key="name", bind="query-params", placeholder=text.NAME_HINT, max_chars=100
        )
    return (place or "").strip(), (name or "").strip()


def _found(ref: RunRef, found: "Prospect", place: str, name: str, *, busy: bool) -> None:
    """Checks, estimate and the button that starts."""
    checks_table(found)
    if not found.passed:
        st.error(text.FAILED, icon=":material/block:")
        return
    facts(
        [
            Fact("Questions", f"{found.n_probes:,}"),
            Fact("Takes about", theme.seconds_text(found.seconds), "", text.SECONDS),
            Fact("Memory", _bytes(found.memory), f"of {_bytes(found.free_memory)} free",
                 text.MEMORY),
            Fact("Disk", _bytes(found.disk), f"of {_bytes(found.free_disk)} free", text.DISK),
        ]
    )  # fmt: skip
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        st.button(
            text.ADD_IT,
            key="add_start",
            type="primary",
            icon=":material/add_circle:",
            disabled=busy,
            on_click=start,
            args=(ref, place, name, found.name),
        )
        st.caption(text.READY)


def checks_table(found: "Prospect") -> None:
    """One row a check."""
    rows = [
        {"": text.STATES[check.state][0], "Check": check.name, "Finding": check.said}
        for check in found.checks
    ]
    st.dataframe(
        pd.DataFrame(rows),
        key="add_checks",
        hide_index=True,
        height="content",
        column_config={
            "": st.column_config.TextColumn(width=36),
            "Check": st.column_config.TextColumn(width=130),
            "Finding": st.column_config.TextColumn(width=720),
        },
        alt="; ".join(f"{c.name} {text.STATES[c.state][1]}" for c in found.checks),
    )


def _bytes(size: int | None) -> str:
    return "–" if size is None else theme.bytes_text(size)


def start(ref: RunRef, place: str, name: str, label: str) -> None:
    """Start adding a model; a sentence where another is on its way."""
    _, problem = attempt(
        background.start, data.run_of(ref).path, service.arguments(ref, place, name), label
    )
    st.session_state["add_problem"] = problem
