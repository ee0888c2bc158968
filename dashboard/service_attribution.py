"""Attribution behind its page: pure functions of small arguments over one engine a run."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from dashboard import service
from dashboard.data import RunRef


if TYPE_CHECKING:
    from engine.live import AttributionPool, AttributionQuery, AttributionScores


@dataclass(frozen=True)
class Query:
    """A prediction to trace, in small hashable values."""

    prompt: str
    position: int
    """Token after which the target is predicted; of no meaning with a span."""
    target: int | None = None
    """Token id predicted there; the likeliest where None."""
    span: tuple[int, int] | None = None
    """First and last token of the prompt whose own predictions are traced, both included."""


def _asked(query: Query) -> "AttributionQuery":
    """The same in the engine's words."""
    from engine.live import AttributionQuery

    return AttributionQuery(query.prompt, query.target, query.position, query.span)


@st.cache_data(max_entries=8, show_spinner="Opening the pool …")
def pool(ref: RunRef) -> "AttributionPool":
    """What can be searched; where there is no pool, the error says how one is made."""
    return service.engine(ref).attribution.pool


@st.cache_resource(max_entries=48, show_spinner=False)
def traced(ref: RunRef, query: Query, method: str) -> "AttributionScores":
    """The whole pool scored by one method; read-only."""
    return service.engine(ref).attribution.scores(_asked(query), method)


@st.cache_data(max_entries=64, show_spinner=False)
def token_scores(
    ref: RunRef, query: Query, method: str, sequences: tuple[int, ...]
) -> pd.DataFrame:
    """What each token of some sequences adds to their scores, with its text where that is here."""
    return service.engine(ref).attribution.token_scores(_asked(query), method, sequences)


@st.cache_data(max_entries=256, show_spinner=False)
def shares(ref: RunRef, query: Query, method: str, sequence: int) -> pd.DataFrame:
    """prototype, label and share of one sequence's score, by falling size."""
    return service.engine(ref).attribution.shares(_asked(query), method, sequence)
