"""The one place where an engine's error becomes a sentence, and the panels built on it."""

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import streamlit as st

from dashboard import text
from engine.errors import EngineError


Value = TypeVar("Value")


def empty_state(sentence: str, command: str | None = None, *, title: str | None = None) -> None:
    """A quiet box that says what is missing and the command that makes it."""
    with st.container(border=True):
        if title:
            st.markdown(f"**{title}**")
        st.text(sentence)
        if command:
            st.code(command, language="bash")


@contextmanager
def plain_errors() -> Iterator[None]:
    """Show an `EngineError` raised inside as an empty state instead of a traceback."""
    try:
        yield
    except EngineError as error:
        sentence, command = text.split_command(str(error))
        empty_state(sentence, command)


def attempt(function: Callable[..., Value], *args: Any) -> tuple[Value | None, str | None]:
    """`function(*args)`, or the sentence of the `EngineError` it raised; for optional parts."""
    try:
        return function(*args), None
    except EngineError as error:
        return None, str(error).replace("`", "")


def panel(function: Callable[..., None]) -> Callable[..., None]:
    """A part of a page that reruns on its own and shows its own errors as sentences."""

    @functools.wraps(function)
    def guarded(*args: Any, **kwargs: Any) -> None:
        with plain_errors():
            function(*args, **kwargs)

    return st.fragment(guarded)
