"""Weights of one controller by prototype; a click opens the prototype's card in a window."""

import pandas as pd
import streamlit as st

from dashboard import data, state, text_control as text, theme
from dashboard.components.card import card_head, signature_chart
from dashboard.components.chart import chart
from dashboard.components.clicked import new_click
from dashboard.components.doors import door
from dashboard.components.export import export_buttons
from dashboard.components.neighbours import neighbours
from dashboard.components.panel import plain_errors
from dashboard.figures import signed_bars


N_BARS = 16
"""Largest weights drawn; the file holds all."""
N_NEIGHBOURS = 4
"""Strongest training neighbours on a card."""


def weights_panel(ref: data.RunRef, chosen: str, split: int) -> None:
    """Bars of the largest weights of one set and split.

    Args:
        ref: Run.
        chosen: Question set.
        split: Seed of the split.
    """
    rows = data.table(ref, "control_weights", where=(("set", chosen), ("seed", split)))
    rows = named(ref, rows.rename(columns={"weight": "value"}))
    rows = rows.sort_values("value", key=lambda s: -s.abs(), kind="stable")
    if rows.empty:
        st.caption("Every weight of this controller is 0: it changes no answer.")
        return
    drawn = rows.head(N_BARS)
    n_all = data.run_of(ref).tables.get("prototypes", {}).get("rows")
    of = f"n = {len(rows):,}" + (f" of {n_all:,} prototypes" if n_all else "") + " not 0"
    if len(drawn) < len(rows):
        of += f", {len(drawn)} drawn"
    key = f"control_weights_{chosen}_{split}"
    clicked = new_click(key, state.selected_ids(st.session_state.get(key)))
    if clicked is not None:
        state.write(card=clicked)
    chart(
        signed_bars.prototype_bars(
            drawn,
            axis=text.WEIGHTS_AXIS,
            title="Weights of the prototype controller",
            subtitle=f"{of}; label score in brackets, a click opens the card",
            selected=state.read_int("card", None),
            dark=theme.is_dark(),
        ),
        key=key,
        alt=signed_bars.bars_alt(drawn, "Weights"),
        file_name=f"{ref.name}-control-weights-{chosen}",
        select=("points",),
    )
    export_buttons(
        rows.rename(columns={"value": "weight"}),
        name=f"{ref.name}-control-weights-{chosen}-{split}",
        key="control_weights_file",
    )


def named(ref: data.RunRef, rows: pd.DataFrame) -> pd.DataFrame:
    """Rows with each prototype's `label` and `label_score`; empty and NaN without an index."""
    if not data.has(ref, "prototypes"):
        return rows.assign(label="", label_score=float("nan"))
    known = data.prototypes(ref)[["prototype", "label", "label_score"]]
    return rows.merge(known, on="prototype", how="left", validate="many_to_one").fillna(
        {"label": ""}
    )


def prototype_row(ref: data.RunRef, number: int) -> pd.Series | None:
    """The prototype's row of the index, if there is one."""
    if not data.has(ref, "prototypes"):
        return None
    frame = data.prototypes(ref)
    rows = frame[frame["prototype"] == number]
    return None if rows.empty else rows.iloc[0]


def open_card(ref: data.RunRef) -> None:
    """Open the window of the prototype that the URL asks for, if any."""
    number = state.read_int("card", None)
    if number is not None:
        _card(ref, number)


def _close() -> None:
    state.write(card=None)


@st.dialog("Prototype", width="large", on_dismiss=_close)
def _card(ref: data.RunRef, number: int) -> None:
    with plain_errors():
        row = prototype_row(ref, number)
        if row is None:
            st.text(f"This run's index holds no prototype {number}; close this window.")
            return
        card_head(row)
        door("prototypes", "Open its page", ":material/open_in_new:", prototype=str(number))
        signature_chart(ref, row, key="control_card", n=6)
        neighbours(ref, row, key="control_card", n_top=N_NEIGHBOURS, quantiles=False, links=False)
