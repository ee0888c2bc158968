"""The Attribution page: from a prediction to the training texts that made it likelier."""

from typing import TYPE_CHECKING

import streamlit as st

from dashboard import (
    data,
    examples,
    rankings,
    service_attribution as service,
    text_attribution as text,
)
from dashboard.components.attribution_badge import badge
from dashboard.components.attribution_controls import (
    asked,
    bounded_pool,
    controls,
    query_facts,
    second_method,
)
from dashboard.components.attribution_detail import document_dialog, pick, place_of, shares_panel
from dashboard.components.attribution_export import export
from dashboard.components.attribution_list import text_list
from dashboard.components.attribution_pictures import comparison_panel, domains_chart, scores_chart
from dashboard.components.attribution_query import query_panel
from dashboard.components.attribution_validity import validity_section
from dashboard.components.facts import page_head
from dashboard.components.panel import panel, plain_errors
from dashboard.components.prompt_box import prompt_box, read
from dashboard.data import RunRef
from dashboard.rankings import Listing
from dashboard.service_attribution import Query


if TYPE_CHECKING:
    from engine.live import AttributionPool, AttributionScores


def page() -> None:
    """Draw the page; it opens on the first example, traced by the run's default method."""
    ref = data.current()
    page_head("Attribution", text.SENTENCE, text.HOW)
    prompt = prompt_box(ref, examples.PROMPTS)
    with plain_errors():
        pool = service.pool(ref)
        reading = read(ref, prompt)
        query = query_panel(ref, reading)
        choice = controls(pool)
        badge(ref, choice.method)
        if asked(ref, choice.method, query, pool):
            with st.spinner("Searching the pool …", show_time=True):
                traced = service.traced(ref, query, choice.method)
            query_facts(ref, reading, query, traced)
            found = rankings.listing(traced.frame, choice.tail, choice.n, choice.domain)
            _answer(ref, pool, query, traced, found)
            _whole_pool(ref, pool, query, traced, found)
        bounded_pool(ref, pool)
    validity_section(ref)


def _answer(
    ref: RunRef, pool: "AttributionPool", query: Query, traced: "AttributionScores", found: Listing
) -> None:
    """The texts with the tokens that carry their score, and why the chosen one is there."""
    chosen = pick(found.rows, traced.frame)
    detail = traced.method if traced.method in pool.variants else pool.default
    left, right = st.columns([3, 2], gap="large")
    with left:
        st.caption(f"{found.sentence} {text.sign_of(traced.method)}")
        if detail != traced.method:
            st.caption(text.other_detail(traced.method, detail))
        wanted = tuple(int(s) for s in found.rows["sequence"])
        tokens = service.token_scores(ref, query, detail, wanted)
        text_list(ref, found, tokens, None if chosen is None else int(chosen["sequence"]))
        export(
            ref, query, traced, found, lambda sequence: service.shares(ref, query, detail, sequence)
        )
    if chosen is None:
        return
    sequence = int(chosen["sequence"])
    with right, st.container(key="attribution_side"):
        place = place_of(traced.frame, sequence, found.tail)
        shares_panel(ref, chosen, service.shares(ref, query, detail, sequence), place)
    document_dialog(ref, chosen, service.token_scores(ref, query, detail, (sequence,)))


@panel
def _whole_pool(
    ref: RunRef, pool: "AttributionPool", query: Query, traced: "AttributionScores", found: Listing
) -> None:
    """Scores of the pool, domains of the list, and a second method's order."""
    left, middle, right = st.columns([3, 3, 4], gap="medium")
    with left:
        scores_chart(traced.frame, found, likeness=traced.method in text.LIKENESSES)
    with middle:
        domains_chart(traced.frame, found)
    with right:
        beside = second_method(pool, traced.method)
        if asked(ref, beside, query, pool):
            second = service.traced(ref, query, beside)
            comparison_panel(traced.frame, second.frame, (traced.method, beside), found.n)
