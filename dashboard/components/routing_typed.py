"""A typed question: models ranked by the router that the run keeps, and what backs the choice."""

from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from dashboard import data, service_routing as service, text_routing as text, theme
from dashboard.components.facts import Fact, facts
from dashboard.components.pair_distance import question_of
from dashboard.components.panel import empty_state
from dashboard.components.routing_question import Asked, near_questions, ranking_panel
from dashboard.data import RunRef


if TYPE_CHECKING:
    from engine.live.routing import RankedModels

HEIGHT = 90
"""Pixels of the box."""


def typed_question(ref: RunRef, asked: Asked) -> None:
    """A question of the reader's own, which no table holds an answer to."""
    if not service.keeps_router(ref):
        empty_state(text.NO_LIVE, data.run_of(ref).command_for("model_routes"))
        return
    question = st.text_area(
        "Question", _example(ref), key="asked", bind="query-params", height=HEIGHT,
        placeholder=text.TYPE_HERE, label_visibility="collapsed",
    )  # fmt: skip
    if not (question or "").strip():
        st.info(text.NOTHING_TYPED, icon=":material/edit_note:")
        return
    found = service.ranked(ref, str(question), asked.budget)
    if found.unknown_words:
        words = ", ".join(found.unknown_words[:12])
        st.caption(text.UNKNOWN.format(words=words))
    _beside(found)
    left, right = st.columns([3, 2], gap="large")
    with left:
        rows = found.models.rename(columns={"n_parameters": "parameters"})
        rows = rows.assign(correct=np.full(len(rows), None, dtype=object))
        hidden = len(service.reader(ref).names) - len(rows)
        ranking_panel(ref, rows, hidden, "the router that the run keeps", text.BAND_PREDICTION)
        st.caption(text.INTERVAL)
    with right:
        st.markdown(f"**{text.BACKED}**")
        near_questions(ref, str(question), str(rows["model"].iloc[0]))


def _example(ref: RunRef) -> str:
    """What the box opens with: a question of the run."""
    return question_of(str(service.questions(ref)["prompt"].iloc[-1]))


def _beside(found: "RankedModels") -> None:
    """The first choice beside what the router expects of the single best and of a random model."""
    first = found.models.iloc[0].to_dict()
    interval = f"[{first['low']:.0%}, {first['high']:.0%}]"
    facts(
        [
            Fact("First choice", str(first["model"])),
            Fact("Predicted", theme.percent(first["predicted"]), interval, text.PREDICTED),
            Fact("Right on questions like it", theme.percent(first["backing"]), "", text.BACKING),
            Fact(
                "Single best",
                found.single_best,
                f"predicted {theme.percent(found.expected_best)}",
                text.ASKED_SINGLE,
            ),
            Fact(
                "Random model",
                theme.percent(found.expected_random),
                "predicted",
                text.ASKED_RANDOM,
            ),
        ]
    )
