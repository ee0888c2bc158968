"""The Suppression page: switch prototypes off and see what changes, and what else does."""

import pandas as pd
import streamlit as st

from dashboard import data, examples, service, state, text_batch
from dashboard.components.facts import page_head
from dashboard.components.generation_pair import Side, draw_controls, generation_pair
from dashboard.components.panel import panel, plain_errors
from dashboard.components.prompt_box import Reading, prompt_box, read, reading_strip
from dashboard.components.suppression_batch import batch_result
from dashboard.components.suppression_effects import distribution_panel, meter_panel
from dashboard.components.suppression_set import (
    current_off,
    read_members,
    set_panel,
    where_active,
    worked_example,
)
from dashboard.data import RunRef
from dashboard.service import Off


PROMPTS = examples.PROVOKING | {
    name: examples.PROMPTS[name] for name in ("Law", "Tale", "Encyclopedia", "Python", "XML")
}
"""Examples of the page: some that unwanted text may follow, some that it should not."""
HOW = """
- **Switching off** a prototype takes its slice out of the state; nothing is retrained or tuned.
  With nothing switched off the model is bit for bit the one that was trained.
- **Logits first.** The upper chart compares the two distributions of one next token: exact, without
  any sampling. Text comes second, because one text is one draw.
- **Same seed, same sampler.** All columns of text use the same random numbers; they differ by the
  set alone. Dotted underlines mark tokens drawn where a suppressed prototype was active.
- **Random control.** A set of as many prototypes that fire as often. An effect that the random set
  has too is an effect of damage, not of the concept.
- A text that the classifier gives 0.5 or more stays hidden until you reveal it.
"""


def page() -> None:
    """Draw the page: the live model first, what was measured over many prompts behind a tab."""
    ref = data.current()
    page_head("Suppression", "Switch prototypes off; see what changes, and what else does.", HOW)
    tabs = (text_batch.LIVE, text_batch.BATCH)
    state.read_choice("show", tabs, tabs[0])
    live, batch = st.tabs(tabs, key="show", on_change="rerun", bind="query-params")
    if live.open:
        with live, plain_errors():
            _live(ref)
    if batch.open:
        with batch:
            _batch(ref)


@panel
def _batch(ref: RunRef) -> None:
    batch_result(ref)


def _live(ref: RunRef) -> None:
    """One prompt: the set, the next token, texts, side effects."""
    reading = read(ref, prompt_box(ref, PROMPTS))
    found = service.activations(ref, reading.prompt)
    members = read_members(service.engine(ref).n_prototypes, worked_example(ref, found.frame))
    reading = where_active(reading, found.frame, members.off)
    active = found.frame[found.frame["position"] == reading.position]
    if found.notice:
        st.info(found.notice, icon=":material/content_cut:")
    _strip(reading, found.frame, members.off)
    left, right = st.columns([2, 3], gap="medium")
    with left:
        set_panel(ref, members, active, reading)
    off = current_off(members)
    with right:
        distribution_panel(ref, reading, off, state.read_int("target", None))
    text, meter = st.container(), st.container(border=data.has(ref, "prototypes"))
    with meter, plain_errors():
        meter_panel(ref, off)
    with text:
        _text(ref, reading, off)


def _strip(reading: Reading, frame: pd.DataFrame, off: tuple[int, ...]) -> None:
    """The prompt's tokens, shaded by how strongly the set is active."""
    own = frame[frame["prototype"].isin(off)]
    values = own.groupby("position")["activation"].sum()
    names = {
        position: "\n".join(
            f"#{p} {label}  {a:.2f}"
            for p, label, a in zip(
                rows["prototype"], rows["label"], rows["activation"], strict=True
            )
        )
        for position, rows in own.groupby("position")
    }
    titles = [
        f"position {t.position} · suppressed activation {values.get(t.position, 0.0):.2f}\n"
        f"{names.get(t.position, '')}"
        for t in reading.tokens
    ]
    st.caption(
        "Shaded: activation of what is switched off. Click a token to see the next-token "
        "distribution after it."
    )
    limit = max(1.0, float(values.max())) if len(values) else 1.0
    reading_strip(reading, values, titles, key="strip", limit=limit)


def _text(ref: RunRef, reading: Reading, off: Off) -> None:
    """Generations side by side: before, after, and a matched random set on request."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown("##### Text before and after", width="stretch")
        control = st.toggle(
            "Random control",
            key="control",
            bind="query-params",
            help="A third text with a random set of the same size and firing rate switched off.",
        )
    draw = draw_controls()
    sides = [
        Side("Before", "nothing switched off", Off()),
        Side("After", f"{len(off.prototypes):,} off, strength {off.strength:g}", off),
    ]
    if control and off.prototypes:
        random = service.matched_random(ref, off.prototypes, 0)
        sides.append(
            Side("Random", f"{len(random):,} matched at random", Off(random, off.strength))
        )
    generation_pair(ref, reading.prompt, sides, draw)
