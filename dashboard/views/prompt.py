"""The Prompt page: why the model expects the token it expects."""

import streamlit as st

from dashboard import data, examples, service, state
from dashboard.components.attribution_doors import trace_token
from dashboard.components.chart import chart
from dashboard.components.facts import page_head
from dashboard.components.prompt_box import prompt_box, read
from dashboard.components.prompt_shading import shaded_prompt
from dashboard.components.slice_panel import slice_choice, slice_panel
from dashboard.components.slices_panel import (
    N_OFFERED,
    choose_target,
    next_token_panel,
    slices_panel,
)
from dashboard.figures.firing import firing_map
from dashboard.figures.tokens import glyphs
from dashboard.theme import is_dark


HOW = """
- **Tokens.** A click chooses a token; the page then explains what the model expects *after* it.
- **Slices.** The logit of a token is a sum: one slice for each active prototype, and the residual,
  the part of the state that no active prototype covers. A slice is the prototype's activation (a
  cosine from 0 to 1) times its fixed logit for that token. Blue raises, orange lowers.
- **Adds up.** The emitted logit, the slices and the residual are computed apart from each other.
  The gap between them is printed; above one part in ten thousand the page says so.
- **Why A and not B.** With a second token every bar is a difference of logits.
- A label is a navigation aid, with its own score; the training neighbours are the evidence.
"""


def page() -> None:
    """Draw the page."""
    ref = data.current()
    page_head("Prompt", "Which prototypes make the next token likely, and from which text.", HOW)
    reading = read(ref, prompt_box(ref, examples.PROMPTS))
    selected = state.read_int("slice", None)
    shaded_prompt(ref, reading, selected)
    likely = service.next_tokens(ref, reading.prompt, reading.position, N_OFFERED)
    left, right = st.columns([2, 3], gap="medium")
    with right:
        target, distractor = choose_target(ref, reading, likely)
        trace_token(reading.prompt, reading.position, target)
        terms = slices_panel(ref, reading, target, distractor, selected)
    with left:
        st.markdown(f"##### Next token after {reading.here}")
        next_token_panel(
            ref, reading, likely, (target,) if distractor is None else (target, distractor)
        )
    drawn = terms.rows[terms.rows["kind"] == "prototype"]
    if drawn.empty:
        st.info("No prototype is active here; the whole logit is residual.")
        return
    with st.container(border=True):
        chosen = slice_choice(drawn["prototype"].tolist(), drawn["label"].tolist(), selected)
        if chosen is not None:
            slice_panel(ref, reading, chosen)
    with st.expander("Every token: which prototypes are active where", icon=":material/grid_on:"):
        frame = service.activations(ref, reading.prompt).frame
        texts = [glyphs(token.text) for token in reading.tokens]
        figure, alt = firing_map(frame, texts, reading.position, is_dark())
        chart(figure, key="firing", alt=alt, file_name="prompt-prototypes")
