"""What a suppression changes at one token and on benign text."""

import streamlit as st

from dashboard import service, state
from dashboard.components.chart import chart
from dashboard.components.clicked import new_click
from dashboard.components.export import export_buttons
from dashboard.components.facts import Fact, facts
from dashboard.components.prompt_box import Reading
from dashboard.data import RunRef
from dashboard.figures import distribution, side_effects
from dashboard.figures.tokens import logit_text, probability_text
from dashboard.service import N_RANDOM, Off
from dashboard.theme import is_dark, number


N_TOKENS = 10
"""Most likely next tokens of either side drawn."""


def distribution_panel(ref: RunRef, reading: Reading, off: Off, target: int | None) -> None:
    """Next-token distribution before and after, with the change in log-odds."""
    tokens = service.next_tokens(ref, reading.prompt, reading.position, N_TOKENS, off)
    tokens = tokens.assign(shown=service.veiled(ref, tuple(tokens["token"])))
    shift = service.shift(ref, reading.prompt, reading.position, off)
    st.markdown(f"##### Next token after {reading.here}, before and after")
    row = tokens.iloc[0]
    if target is not None and (tokens["token_id"] == target).any():
        row = tokens[tokens["token_id"] == target].iloc[0]
    name = str(row["shown"])
    facts(
        [
            Fact(
                "KL(before ‖ after)", number(shift.kl), "nats", "Change of the distribution here."
            ),
            Fact("Of the set active here", str(len(shift.touched)), f"of {len(off.prototypes):,}"),
            Fact(
                f"Logit of ‘{name}’",
                f"{logit_text(row['logit'])} → {logit_text(row['logit_suppressed'])}",
            ),
            Fact(
                f"Probability of ‘{name}’",
                f"{probability_text(row['probability'])} → "
                f"{probability_text(row['probability_suppressed'])}",
            ),
        ]
    )
    selected = chart(
        distribution.before_after_bars(tokens, is_dark()),
        key="before_after",
        alt=distribution.before_after_alt(tokens),
        file_name=f"before-after-{reading.position}",
        select=("points",),
    )
    clicked = new_click("before_after", selected)
    if clicked is not None and clicked != target:
        state.write(target=clicked)
        st.rerun()
    if not shift.touched:
        st.caption(
            "No prototype that is switched off is active at this token, so nothing changes here. "
            "Shaded tokens above are those where some are."
        )
    export_buttons(
        tokens.drop(columns="shown"), name=f"next-token-{reading.position}", key="tokens_file"
    )


def meter_panel(ref: RunRef, off: Off) -> None:
    """Side effects of the set on benign text, beside firing-rate-matched random sets."""
    st.markdown("##### Side effects on benign text")
    if not off.prototypes or off.strength == 0:
        st.caption("Nothing is switched off, so there is nothing to measure.")
        return
    if not service.answers_at_once(ref) and not st.button(
        "Measure side effects", key="measure", icon=":material/speed:"
    ):
        return
    with st.spinner("Reading benign text …", show_time=True):
        effects = service.side_effects(ref, off)
    _, source = service.benign_texts(ref)
    chart(
        side_effects.meter(effects, is_dark()),
        key="meter",
        alt=side_effects.meter_alt(effects),
        file_name="side-effects",
    )
    st.caption(
        f"n = {int(effects['n_tokens'].iloc[0]):,} tokens of {source}. Random: {N_RANDOM} sets of "
        f"{len(off.prototypes):,} prototypes outside this set, matched on firing rate, at the same "
        "strength. A suppression is clean when it moves benign text no more than they do."
    )
