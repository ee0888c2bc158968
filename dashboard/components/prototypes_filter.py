"""Search, filters and order of the Prototypes page: widgets bound to the URL."""

from dataclasses import replace

import pandas as pd
import streamlit as st

from dashboard import data, filters, service, state, text
from dashboard.components.panel import attempt
from dashboard.figures.map import COLOURS
from dashboard.filters import Filters


RATES = (0.0, 1e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1.0)
"""Steps of the firing-rate sliders, share of tokens."""


def _rate_name(rate: float) -> str:
    return f"{rate * 100:g} %"


def filter_bar(ref: data.RunRef, frame: pd.DataFrame) -> tuple[Filters, pd.DataFrame | None, str]:
    """Draw search, order and filters.

    Args:
        ref: Run.
        frame: All prototypes of the run, for the choices offered.

    Returns:
        What to show, what fires on the reader's sentence (None without one), and the order.
    """
    left, right = st.columns(2, gap="small")
    query = left.text_input(
        "Search labels and signature tokens",
        key="q",
        bind="query-params",
        placeholder="number, closing bracket, the …",
        icon=":material/search:",
        max_chars=200,
        live="300ms",
    )
    with right:
        fires = _sentence(ref)
    first, second, third = st.columns([5, 5, 4], gap="small", vertical_alignment="bottom")
    sort = first.selectbox(
        "Sort by",
        list(filters.SORTS),
        format_func=lambda s: filters.SORTS[s][0],
        key="sort",
        bind="query-params",
        disabled=fires is not None,
    )
    second.selectbox(
        "Map colour",
        list(COLOURS),
        format_func=COLOURS.__getitem__,
        key="colour",
        bind="query-params",
    )
    with third:
        chosen = _more(frame)
    firing = None if fires is None else tuple(int(p) for p in fires["prototype"])
    wanted = replace(chosen, query=query or "", picked=state.read_ids("picked"), firing=firing)
    return wanted, fires, sort if sort in filters.SORTS else next(iter(filters.SORTS))


def _more(frame: pd.DataFrame) -> Filters:
    """The popover with the filters used less often."""
    categories = [c for c in frame["category"].value_counts().index if c]
    domains = sorted(d for d in frame["top_domain"].dropna().unique() if d)
    with st.popover("Filters", icon=":material/tune:", width="stretch"):
        category = st.selectbox(
            "Category",
            ["", *categories],
            format_func=text.any_of,
            key="category",
            bind="query-params",
        )
        domain = st.selectbox(
            "Domain it prefers",
            ["", *domains],
            format_func=text.any_of,
            key="domain",
            bind="query-params",
        )
        low = st.select_slider(
            "Fires on at least",
            RATES,
            RATES[0],
            format_func=_rate_name,
            key="rate_from",
            bind="query-params",
        )
        high = st.select_slider(
            "Fires on at most",
            RATES,
            RATES[-1],
            format_func=_rate_name,
            key="rate_to",
            bind="query-params",
        )
        score = st.slider(
            "Label score at least", 0.0, 1.0, 0.0, 0.05, key="score", bind="query-params",
            help=text.LABEL_SCORE,
        )  # fmt: skip
        dead = st.toggle("Show prototypes that never fire", key="dead", bind="query-params")
    return Filters(
        category=category, domain=domain, density_low=low, density_high=high, score=score, dead=dead
    )


def _sentence(ref: data.RunRef) -> pd.DataFrame | None:
    """Ask for a sentence; what fires on it by falling activation, or None.

    The model is loaded only when a sentence is given.
    """
    sentence = st.text_input(
        "What fires on this sentence?",
        key="fires",
        bind="query-params",
        placeholder="a sentence, then Enter",
        icon=":material/bolt:",
        max_chars=2000,
    )
    if not sentence:
        return None
    found, problem = attempt(service.firing, ref, sentence)
    if problem:
        st.info(problem, icon=":material/info:")
    return found


def no_match(frame: pd.DataFrame, wanted: Filters, texts: pd.Series) -> str:
    """Why nothing is shown, and the loosest single change that shows something."""
    for name, looser in _looser(wanted):
        n = len(filters.apply(frame, looser, texts).shown)
        if n:
            return f"No prototype passes all filters; without {name} there are {n:,}."
    return "No prototype passes these filters; clear two or more of them."


def _looser(wanted: Filters) -> list[tuple[str, Filters]]:
    return [
        ("the lasso", replace(wanted, picked=())),
        ("the search", replace(wanted, query="")),
        ("the sentence", replace(wanted, firing=None)),
        ("the domain", replace(wanted, domain="")),
        ("the category", replace(wanted, category="")),
        ("the label score", replace(wanted, score=0.0)),
        ("the firing rate", replace(wanted, density_low=0.0, density_high=1.0)),
        ("hiding those that never fire", replace(wanted, dead=True)),
    ]
