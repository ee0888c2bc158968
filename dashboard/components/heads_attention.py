"""Attention of one head on a text: a sample, an example or what the reader types."""

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from dashboard import service_heads as service, state, text_heads as text, theme
from dashboard.components.chart import chart
from dashboard.components.facts import Fact, facts
from dashboard.components.heads_controls import HeadView
from dashboard.components.panel import attempt
from dashboard.components.token_strip import TokenCell, token_strip
from dashboard.data import RunRef
from dashboard.figures import heads as figures
from dashboard.service_heads import SampleText


if TYPE_CHECKING:
    from engine.live.heads import HeadPattern


SAMPLE, EXAMPLE = "The sample above", "A text"
"""What the pattern is drawn of."""


def attention_panel(ref: RunRef, view: HeadView, sample: SampleText | None) -> None:
    """Draw the pattern; without weights one sentence says so.

    Args:
        ref: Run.
        view: Head looked at.
        sample: Sample shown above, if it has text.
    """
    st.markdown(f"### What head {view.head} attends to")
    _, problem = attempt(service.reader, ref, view.seed)
    if problem:
        st.info(problem, icon=":material/visibility_off:")
        return
    found, problem = _pattern(ref, view, sample)
    if problem:
        st.info(problem, icon=":material/info:")
    if found is None:
        return
    texts = [token.text for token in found.tokens]
    left, right = st.columns([2, 3], gap="large")
    with left:
        _scores(found.scores, found.n_left_out)
        _from_token(found.attention, texts)
    with right:
        chart(
            figures.attention_map(found.attention, texts, view.head, dark=theme.is_dark()),
            key="heads_attention",
            alt=figures.attention_alt(found.attention, texts, view.head),
            file_name=f"{ref.name}-head-{view.head}-attention",
        )


def _pattern(
    ref: RunRef, view: HeadView, sample: SampleText | None
) -> "tuple[HeadPattern | None, str | None]":
    """The pattern asked for, or the sentence that says why there is none."""
    sources = [EXAMPLE] if sample is None or not sample.ids else [SAMPLE, EXAMPLE]
    with st.container(horizontal=True, gap="medium", vertical_alignment="center"):
        chosen = sources[0]
        if len(sources) > 1:
            state.read_choice("on", sources, sources[0])
            chosen = st.segmented_control(
                "Text", sources, default=sources[0], required=True, key="on",
                bind="query-params", label_visibility="collapsed",
            )  # fmt: skip
        if chosen == EXAMPLE:
            st.pills(
                "Examples",
                list(text.EXAMPLE_TEXTS),
                key="heads_example",
                on_change=_take_example,
                label_visibility="collapsed",
            )
    if chosen == SAMPLE and sample is not None:
        return attempt(service.sample_pattern, ref, view.seed, view.head, sample.ids)
    first = next(iter(text.EXAMPLE_TEXTS.values()))
    typed = st.text_area(
        "Text", first, key="typed", bind="query-params", height=90, max_chars=1000,
        label_visibility="collapsed", placeholder="Type a text and press Ctrl+Enter",
    )  # fmt: skip
    return attempt(service.pattern, ref, view.seed, view.head, typed or "")


def _take_example() -> None:
    choice = st.session_state.get("heads_example")
    st.session_state["heads_example"] = None
    if choice:
        st.session_state["typed"] = text.EXAMPLE_TEXTS[choice]


def _scores(scores: dict[str, float], left_out: int) -> None:
    items = [
        Fact(f"{words}, here", theme.number(scores[metric]), "", text.METRIC_HELP)
        for metric, words in text.METRICS.items()
        if metric in scores
    ]
    if left_out:
        items.append(Fact("Left out", f"{left_out:,}", "tokens at the end"))
    facts(items)


def _from_token(attention: np.ndarray, texts: list[str]) -> None:
    """The text, shaded by what one of its tokens attends to."""
    last = len(texts) - 1
    at = state.read_int("from", last, high=last)
    at = last if at is None else at
    st.caption(f"Shaded: what token {at:,} (outlined) attends to; click another.")
    cells = [
        TokenCell(token, float(share), f"token {place:,} · attention {share:.3f}", place)
        for place, (token, share) in enumerate(zip(texts, attention[at], strict=True))
    ]
    token_strip(
        cells, key="heads_attention_strip", limit=max(0.05, float(attention[at].max())),
        selectable=True, selected=at, on_select=_look_from,
    )  # fmt: skip
    order = np.argsort(-attention[at], kind="stable")[:5]
    rows = pd.DataFrame(
        {
            "Attended token": [f"{int(p)}  {texts[int(p)]!r}" for p in order],
            "Back": [at - int(p) for p in order],
            "Attention": [float(attention[at, p]) for p in order],
        }
    )
    st.dataframe(
        rows,
        key="heads_attended",
        hide_index=True,
        height="content",
        column_config={"Attention": st.column_config.NumberColumn(format="%.3f")},
        alt=f"The five tokens that token {at} attends to most.",
    )


def _look_from(position: int) -> None:
    state.write(**{"from": position})
