"""The Heads page: every head of a model, and the training samples behind the one looked at."""

import pandas as pd
import streamlit as st

from dashboard import data, service_heads as service, text_heads as text
from dashboard.components.elsewhere import no_heads
from dashboard.components.facts import page_head
from dashboard.components.heads_atlas import atlas_row, marks_of
from dashboard.components.heads_attention import attention_panel
from dashboard.components.heads_controls import HeadView, baseline, controls, traced_only
from dashboard.components.heads_detail import (
    bin_of_link,
    head_facts,
    histogram_panel,
    natural_only,
    tail_panels,
    traced_heads,
)
from dashboard.components.heads_samples import bin_panel, sample_detail
from dashboard.components.panel import empty_state, panel
from dashboard.data import RunRef
from dashboard.figures.heads import Marks
from dashboard.service_heads import SampleText


def page() -> None:
    """Draw the page; it opens on the head that the study chose and the samples that raise it."""
    ref = data.current()
    page_head("Heads", text.HEADS, text.HEADS_HOW)
    if data.has(ref, "head_scores"):
        scores = baseline(ref)
        view = controls(ref, scores)
        _atlas(ref, scores, view)
        head_facts(ref, scores, view, marks_of(ref, scores, view))
    elif len(service.traced(ref)):
        view = traced_only(ref)
        empty_state(text.NO_SCORES, data.run_of(ref).command_of_stage("monitor"))
        head_facts(ref, pd.DataFrame(columns=["seed", "name"]), view, Marks(view.head, {}))
    else:
        no_heads()
        return
    _samples_and_attention(ref, view)


@panel
def _atlas(ref: RunRef, scores: pd.DataFrame, view: HeadView) -> None:
    atlas_row(ref, scores, view, marks_of(ref, scores, view))


@panel
def _samples_and_attention(ref: RunRef, view: HeadView) -> None:
    sample: SampleText | None = None
    traced = traced_heads(ref, view)
    if view.head in traced:
        sample = _influence(ref, view)
    elif traced:
        shown = ", ".join(traced[:8]) + (", …" if len(traced) > 8 else "")
        empty_state(text.NOT_TRACED.format(head=view.head, heads=shown))
    else:
        empty_state(text.NO_INFLUENCE, data.run_of(ref).command_of_stage("influence"))
    attention_panel(ref, view, sample)


def _influence(ref: RunRef, view: HeadView) -> SampleText | None:
    """Histogram and samples on the left, how heavy the tail is and one sample on the right."""
    left, right = st.columns([3, 2], gap="large")
    with right:
        tail_panels(ref, view)
    with left:
        picture = st.container()
        natural = natural_only(ref, view)
        chosen = bin_of_link(ref, view, natural=natural)
        with picture:
            histogram_panel(ref, view, chosen, natural=natural)
        sample = bin_panel(ref, view, chosen, natural=natural)
        if sample is None:
            return None
        with st.container(border=True):
            return sample_detail(ref, view, sample)
