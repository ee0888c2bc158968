"""Which methods order the texts, and the facts of a query: loss, pool, time."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import streamlit as st

from dashboard import data, rankings, state, text_attribution as text, theme
from dashboard.components.attribution_query import query_words
from dashboard.components.facts import Fact, facts
from dashboard.components.prompt_box import Reading
from dashboard.data import RunRef
from dashboard.service_attribution import Query


if TYPE_CHECKING:
    from engine.live import AttributionPool, AttributionScores

DRAWN = 3_000
"""Sequences that indexing draws where nothing is said; from there on only all are more."""
ALL = "all"
"""Choice of every domain."""


@dataclass(frozen=True)
class Choice:
    """What the reader asked for."""

    method: str
    tail: str
    n: int
    """Sequences listed."""
    domain: str
    """Domain kept; empty keeps all."""


def controls(pool: "AttributionPool") -> Choice:
    """Method, tail, size and domain in one line; all in the link."""
    names = (*pool.variants, *text.NEEDS_TEXT)
    state.read_choice("method", names, pool.default)
    state.read_choice("domain", (ALL, *pool.domains), ALL)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        method = st.selectbox(
            "Method",
            names,
            index=names.index(pool.default),
            key="method",
            bind="query-params",
            width=240,
            help="Cached methods search the index; the others read the pool's text anew.",
        )
        tail = st.segmented_control(
            "Texts",
            tuple(rankings.TAILS),
            default="helpful",
            required=True,
            key="tail",
            bind="query-params",
            help=text.SIGN,
        )
        n = st.selectbox(
            "Listed", rankings.SIZES, index=0, key="top", bind="query-params", width=90
        )
        domain = st.selectbox(
            "Domain",
            (ALL, *pool.domains),
            key="domain",
            bind="query-params",
            width=150,
        )
    st.caption(f"{method}: {text.method_words(method)}.")
    return Choice(method, tail or "helpful", n, "" if domain == ALL else domain)


def second_method(pool: "AttributionPool", method: str) -> str:
    """The method compared with the page's; empty where none is."""
    names = tuple(name for name in (*pool.variants, *text.NEEDS_TEXT) if name != method)
    default = next((name for name in ("activations", "errors") if name in names), names[0])
    state.read_choice("beside", names, default)
    return st.selectbox(
        f"{method} compared with",
        names,
        index=names.index(default),
        key="beside",
        bind="query-params",
        help="A second order of the same texts: overlap, rank correlation and places.",
    )


def asked(ref: RunRef, method: str, query: Query, pool: "AttributionPool") -> bool:
    """Whether to compute now: what runs the model over the whole pool waits for a click, once."""
    if method not in text.NEEDS_MODEL:
        return True
    agreed: set[tuple[RunRef, str, Query]] = st.session_state.setdefault("headwater_asked", set())
    wanted = (ref, method, query)
    if wanted in agreed:
        return True
    st.button(
        f"Read the whole pool for {method}",
        key=f"attribution_ask_{method}",
        on_click=agreed.add,
        args=(wanted,),
        icon=":material/play_arrow:",
        help="The model reads every sequence of the pool for this query.",
    )
    st.caption(
        f"{method} runs the model over all {pool.n_tokens:,} tokens of the pool; on a few cores "
        "that takes from seconds to minutes."
    )
    return False


def query_facts(ref: RunRef, reading: Reading, query: Query, traced: "AttributionScores") -> None:
    """What was traced, its loss, what was searched, and how long each part took."""
    n_sequences = traced.n_sequences
    times = [
        Fact(f"Time, {name}", _milliseconds(seconds), "", text.TIMES.get(name, ""))
        for name, seconds in traced.seconds.items()
    ]
    facts(
        [
            Fact("Traced", query_words(ref, reading, query)),
            Fact("Loss of the query", theme.number(traced.loss), "nats", text.LOSS),
            Fact(
                "Pool",
                f"{n_sequences:,} sequences",
                f"{traced.n_tokens:,} tokens",
                text.BOUNDED_SHORT,
            ),
            Fact("Scores in", traced.unit, _conditioned(traced.method), text.UNIT),
            *times,
        ]
    )
    for notice in traced.notices:
        st.info(notice, icon=":material/content_cut:")


def _conditioned(method: str) -> str:
    """What a score's unit is divided by, where a variant conditions the query's gradient."""
    return "over curvature" if {"diagonal", "coupled"} & set(method.split("+")) else ""


def _milliseconds(seconds: float) -> str:
    return f"{theme.number(seconds * 1000)} ms" if seconds < 1 else theme.seconds_text(seconds)


def bounded_pool(ref: RunRef, pool: "AttributionPool") -> None:
    """That the pool is bounded, and the command that indexes more."""
    st.caption(text.BOUNDED)
    command = data.run_of(ref).command_of_stage("attribution")
    every = " --all" if pool.n_sequences >= DRAWN else ""
    st.code(command + every, language="bash")
