"""The logit of one token after one position, as slices that add up."""

import pandas as pd
import streamlit as st

from dashboard import service, state
from dashboard.components.chart import chart
from dashboard.components.clicked import new_click
from dashboard.components.prompt_box import Reading
from dashboard.components.token_choice import token_choice
from dashboard.data import RunRef
from dashboard.figures import distribution, slices
from dashboard.theme import is_dark


N_TOKENS = 15
"""Next tokens drawn."""
N_OFFERED = 60
"""Next tokens offered as targets."""


def next_token_panel(
    ref: RunRef, reading: Reading, likely: pd.DataFrame, targets: tuple[int, ...]
) -> None:
    """Bars of the most likely next tokens; a click makes one the target."""
    drawn = likely.head(N_TOKENS)
    drawn = drawn.assign(shown=service.veiled(ref, tuple(drawn["token"])))
    key = "next_tokens"
    selected = chart(
        distribution.next_token_bars(drawn, is_dark(), targets),
        key=key,
        alt=distribution.next_token_alt(drawn),
        file_name=f"next-token-{reading.position}",
        select=("points",),
    )
    clicked = new_click(key, selected)
    if clicked is not None and clicked not in targets:
        state.write(target=clicked)
        st.rerun()


def choose_target(ref: RunRef, reading: Reading, likely: pd.DataFrame) -> tuple[int, int | None]:
    """The token explained and the one it is compared with, if any."""
    scope = f"{reading.position}:{hash(reading.prompt)}"
    first, second = st.columns(2)
    with first:
        target = token_choice(
            ref,
            likely,
            "target",
            "Explain the logit of",
            default=int(likely["token_id"].iloc[0]),
            scope=scope,
            help_text="The most likely next token unless another is chosen.",
        )
    with second:
        against = token_choice(
            ref,
            likely,
            "against",
            "and not of (optional)",
            default=None,
            scope=scope,
            help_text="Why the first and not this one: the difference of their logits.",
        )
    chosen = int(likely["token_id"].iloc[0]) if target is None else target
    return chosen, None if against == chosen else against


def slices_panel(
    ref: RunRef, reading: Reading, target: int, distractor: int | None, selected: int | None
) -> slices.SliceSum:
    """The waterfall and the sum in words; a click on a slice makes it the `slice` of the link."""
    shown = st.session_state.get("shown", 12)
    explained = service.explain(ref, reading.prompt, reading.position, target, distractor, shown)
    texts = (explained.target, explained.distractor or "")
    first, second = service.veiled(ref, texts)
    terms = slices.slice_sum(explained, first, second)
    key = "slices"
    chosen = int(terms.rows["prototype"].iloc[0]) if selected is None else selected
    points = chart(
        slices.waterfall(terms, is_dark(), chosen),
        key=key,
        alt=slices.alt_text(terms),
        file_name=f"slices-{reading.position}",
        select=("points",),
    )
    clicked = new_click(key, [p for p in points if p >= 0])
    if clicked is not None and clicked != selected:
        state.write(slice=clicked)
        st.rerun()
    additivity(terms)
    return terms


def additivity(terms: slices.SliceSum) -> None:
    """The sum in words, and an error in full view where it does not add up."""
    sentence = slices.additivity_sentence(terms)
    if terms.adds_up:
        st.caption(f":material/check: {sentence}.")
        return
    st.error(
        f"The slices do not add up: {sentence}, {terms.relative_gap:.1e} of the sum of absolute "
        f"terms where at most {slices.TOLERANCE:.0e} is allowed. Do not read this decomposition.",
        icon=":material/error:",
    )
