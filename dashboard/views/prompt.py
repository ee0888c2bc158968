"""The Prompt page: why the model expects the token it expects."""

import pandas as pd
import streamlit as st

from dashboard import data, examples, service, state
from dashboard.components.facts import page_head
from dashboard.components.prompt_box import Reading, prompt_box, read, reading_strip
from dashboard.components.slice_panel import slice_choice, slice_panel
from dashboard.components.slices_panel import (
    N_OFFERED,
    SHOWN,
    choose_target,
    next_token_panel,
    slices_panel,
)
from dashboard.data import RunRef


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
    _strip(ref, reading, selected)
    likely = service.next_tokens(ref, reading.prompt, reading.position, N_OFFERED)
    left, right = st.columns([2, 3], gap="medium")
    with right:
        target, distractor = choose_target(ref, reading, likely)
        terms = slices_panel(ref, reading, target, distractor, selected)
    with left:
        st.markdown(f"##### Next token after {reading.here}")
        next_token_panel(reading, likely, (target,) if distractor is None else (target, distractor))
    drawn = terms.rows[terms.rows["kind"] == "prototype"]
    if drawn.empty:
        st.info("No prototype is active here; the whole logit is residual.")
        return
    with st.container(border=True):
        chosen = slice_choice(drawn["prototype"].tolist(), drawn["label"].tolist(), selected)
        if chosen is not None:
            slice_panel(ref, reading, chosen)


def _strip(ref: RunRef, reading: Reading, selected: int | None) -> None:
    """The prompt's tokens, shaded by residual share or by one prototype's activation."""
    found = service.activations(ref, reading.prompt)
    if found.notice:
        st.info(found.notice, icon=":material/content_cut:")
    options = ["residual share"] if selected is None else ["residual share", "prototype"]
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption("Click a token to explain what follows it.", width="stretch")
        shade = st.segmented_control(
            "Shade by",
            options,
            default=options[-1],
            required=True,
            key="shade" if selected is None else "shade_slice",
            format_func=lambda o: f"prototype #{selected}" if o == "prototype" else o,
            label_visibility="collapsed",
        )
        st.selectbox(
            "Slices drawn",
            SHOWN,
            index=SHOWN.index(12),
            key="shown",
            bind="query-params",
            format_func=lambda n: f"show {n} slices",
            label_visibility="collapsed",
            width=150,
        )
    residual = found.residuals.set_index("position")["residual_share"]
    values = residual
    if shade == "prototype":
        own = found.frame[found.frame["prototype"] == selected]
        values = own.set_index("position")["activation"]
    reading_strip(reading, values, _titles(reading, found.frame, residual), key="strip", limit=1.0)


def _titles(reading: Reading, frame: pd.DataFrame, residual: pd.Series) -> list[str]:
    """What a token says on hover: its residual share and strongest prototypes."""
    strongest = frame[frame["rank"] < 3]
    lines = {
        position: "\n".join(
            f"#{p} {label}  {a:.2f}"
            for p, label, a in zip(
                rows["prototype"], rows["label"], rows["activation"], strict=True
            )
        )
        for position, rows in strongest.groupby("position")
    }
    titles = []
    for token in reading.tokens:
        place = token.position
        head = f"position {place}, outside the context"
        if place in residual.index:
            head = f"position {place} · residual share {residual[place]:.2f}"
        titles.append(f"{head}\n{lines.get(place, '')}")
    return titles
