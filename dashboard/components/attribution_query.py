"""What is traced: one next token, or a span of the prompt's own tokens; all of it in the link."""

import pandas as pd
import streamlit as st

from dashboard import service, state
from dashboard.components.prompt_box import FOLD, Reading, forget
from dashboard.components.token_choice import token_choice
from dashboard.components.token_strip import Strip, StripClick, TokenCell, token_strips
from dashboard.data import RunRef
from dashboard.figures.tokens import glyphs
from dashboard.rankings import parse_span
from dashboard.service_attribution import Query


N_OFFERED = 60
"""Next tokens offered as targets."""
WAYS = {"next": "What comes next", "span": "Words of the text"}
"""What can be traced."""


def read_query(reading: Reading) -> Query:
    """The query of the link: the span it names, else the next token at its position."""
    raw = state.read_text("span", limit=16)
    span = parse_span(raw, len(reading.tokens)) if raw else None
    if raw and span is None:
        state.refuse(
            "span", raw, f"tokens of this text from 1 to {len(reading.tokens) - 1}, such as 1-2"
        )
    return Query(reading.prompt, reading.position, state.read_int("target", None), span)


def query_panel(ref: RunRef, reading: Reading) -> Query:
    """The prompt's tokens with what is traced marked, and the choice between a token and a span."""
    query = read_query(reading)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        _way(reading, query)
        if query.span is None:
            query = _target(ref, reading)
        else:
            _span_slider(reading, query.span)
    _strip(reading, query)
    return query


def _way(reading: Reading, query: Query) -> None:
    """Switch between the next token and a span; the span starts at the chosen token."""
    key = "attribution_way"
    st.session_state[key] = "next" if query.span is None else "span"

    def switch() -> None:
        start = min(max(1, reading.position), len(reading.tokens) - 1)
        span = f"{start}-{len(reading.tokens) - 1}" if st.session_state[key] == "span" else None
        state.write(span=span, target=None, sequence=None)

    st.segmented_control(
        "Trace",
        tuple(WAYS),
        required=True,
        format_func=WAYS.__getitem__,
        key=key,
        on_change=switch,
        disabled=len(reading.tokens) < 2,
        help="A token the model expects next, or tokens the text already holds.",
    )


def _target(ref: RunRef, reading: Reading) -> Query:
    """The next token that is traced, from the likeliest ones or typed."""
    likely = service.next_tokens(ref, reading.prompt, reading.position, N_OFFERED)
    with st.container(width=320):
        target = token_choice(
            ref,
            likely,
            "target",
            f"Next token after {reading.here}",
            default=int(likely["token_id"].iloc[0]),
            scope=f"{reading.position}:{hash(reading.prompt)}",
            help_text="The most likely next token unless another is chosen.",
        )
    return Query(reading.prompt, reading.position, target)


def _span_slider(reading: Reading, span: tuple[int, int]) -> None:
    """First and last token traced."""
    last = len(reading.tokens) - 1
    key = "attribution_span"
    if last < 2:
        return
    st.session_state[key] = span

    def move() -> None:
        low, high = st.session_state[key]
        state.write(span=f"{low}-{high}", sequence=None)

    st.slider(
        "Tokens traced, first and last",
        1,
        last,
        key=key,
        on_change=move,
        width=320,
        help="The loss of the query is the sum over these tokens.",
    )


def _strip(reading: Reading, query: Query) -> None:
    """The prompt; traced tokens are shaded, a click moves what is traced."""
    first, last = query.span or (-1, -1)
    values = pd.Series(0.0, index=range(len(reading.tokens)))
    values.loc[first:last] = 1.0 if query.span else 0.0

    def choose(click: StripClick) -> None:
        place = click.position
        forget()
        if query.span is None:
            state.write(position=place)
        else:
            state.write(span=f"{place}-{place}" if place else None)

    cells = [
        TokenCell(t.text, float(values[t.position]), _title(t.position, query), t.position)
        for t in reading.tokens
    ]
    focus = reading.position if query.span is None else first
    token_strips(
        [Strip(cells, focus=focus, selected=focus if query.span is None else None)],
        key="attribution_prompt",
        limit=2.0,
        selectable=True,
        on_click=choose,
        fold=FOLD,
    )


def _title(position: int, query: Query) -> str:
    if query.span is None:
        return f"position {position} · click to trace the token after it"
    traced = query.span[0] <= position <= query.span[1]
    return f"position {position}{' · traced' if traced else ''} · click to trace it alone"


def query_words(ref: RunRef, reading: Reading, query: Query) -> str:
    """What is traced, in words."""
    if query.span is not None:
        first, last = query.span
        words = glyphs("".join(t.text for t in reading.tokens[first : last + 1]))
        count = last - first + 1
        return f"{count:,} token{'s' if count > 1 else ''} ‘{words}’ at {first}–{last}"
    if query.target is None:
        return f"the next token after {reading.here}"
    token = service.veiled(ref, (service.engine(ref).token_text(query.target),))[0]
    return f"‘{token}’ after {reading.here}"
