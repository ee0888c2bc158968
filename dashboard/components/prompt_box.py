"""Where a prompt is typed or picked, and its tokens shown: the start of every live page."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from dashboard import examples, service, state
from dashboard.components.doors import HANDED
from dashboard.components.panel import attempt
from dashboard.components.token_strip import Scale, Strip, StripClick, TokenCell, token_strips
from dashboard.data import RunRef
from dashboard.figures.tokens import glyphs


if TYPE_CHECKING:
    from engine.live import Token

SNIPPET_LENGTH = 240
"""Characters of a held-out text taken as a prompt."""
FOLD = 240
"""Tokens of a long prompt shown around the chosen one until the reader unfolds it."""
DEPENDENT = ("position", "target", "against", "slice", "span", "sequence")
"""URL parameters that mean nothing once the prompt has changed."""


@dataclass(frozen=True)
class Reading:
    """A prompt, its tokens, and the token whose prediction is looked at."""

    prompt: str
    tokens: "Sequence[Token]"
    position: int

    @property
    def here(self) -> str:
        """The chosen token in words."""
        return f"token {self.position} ‘{glyphs(self.tokens[self.position].text)}’"


def forget() -> None:
    """Take out of the link what belongs to another prompt or token."""
    for name in DEPENDENT:
        st.query_params.pop(name, None)


def prompt_box(ref: RunRef, prompts: dict[str, str]) -> str:
    """Examples to pick from and a box to type in; the text is the `prompt` of the link."""
    first = next(iter(prompts.values()))
    handed = state.read_text(HANDED)
    if handed:
        st.session_state["prompt"] = handed  # what the box shows
        state.write(prompt=handed, **{HANDED: None})  # what a reader copies

    def pick() -> None:
        choice = st.session_state.get("example")
        st.session_state["example"] = None
        if choice:
            st.session_state["prompt"] = prompts[choice]
            forget()

    def held_out() -> None:
        found, _ = attempt(service.benign_texts, ref)
        texts = found[0] if found else examples.BENIGN
        st.session_state["prompt"] = random.choice(texts)[:SNIPPET_LENGTH].rsplit(" ", 1)[0]
        forget()

    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.pills(
            "Examples",
            list(prompts),
            key="example",
            on_change=pick,
            label_visibility="collapsed",
        )
        st.button(
            "Held-out text",
            on_click=held_out,
            type="tertiary",
            icon=":material/shuffle:",
            help="Start from a text the model was not trained on.",
        )
    return (
        st.text_area(
            "Prompt",
            first,
            key="prompt",
            bind="query-params",
            height=68,
            label_visibility="collapsed",
            on_change=forget,
            placeholder="Type a prompt and press Ctrl+Enter",
        )
        or ""
    )


def read(ref: RunRef, prompt: str) -> Reading:
    """Tokens of the prompt and the position of the link (the last token when it names none)."""
    tokens = service.tokens(ref, prompt)
    last = len(tokens) - 1
    position = state.read_int("position", last, high=last)
    return Reading(prompt, tokens, last if position is None else position)


def reading_strip(
    reading: Reading,
    values: pd.Series,
    titles: Sequence[str],
    *,
    key: str,
    scale: Scale = "activation",
    limit: float | None = None,
) -> None:
    """The prompt's tokens; a click makes a token the `position` of the link.

    Args:
        reading: Prompt and chosen position.
        values: One value a token; missing ones are not shaded.
        titles: One text a token, shown on hover.
        key: Widget key.
        scale: How values become colours.
        limit: Value of full intensity.
    """

    def choose(click: StripClick) -> None:
        forget()
        state.write(position=click.position)

    shades = values.reindex(range(len(reading.tokens))).fillna(0.0)
    cells = [
        TokenCell(token.text, float(shade), title, token.position)
        for token, shade, title in zip(reading.tokens, shades, titles, strict=True)
    ]
    token_strips(
        [Strip(cells, focus=reading.position, selected=reading.position)],
        key=key,
        scale=scale,
        limit=limit,
        selectable=True,
        on_click=choose,
        fold=FOLD,
    )
