"""The Prototypes page: search, map and table on the left, the card on the right."""

import random

import pandas as pd
import streamlit as st

from dashboard import data, filters, state, text
from dashboard.components.browser import map_panel, selection_bar, table_panel
from dashboard.components.card import card_figures, card_head, nearest_table
from dashboard.components.dialogs import open_dialogs
from dashboard.components.facts import page_head
from dashboard.components.neighbours import neighbours
from dashboard.components.own_text import own_text
from dashboard.components.panel import attempt, empty_state, panel
from dashboard.components.prototypes_filter import filter_bar, no_match


N_TOP = 6
"""Strongest tokens a card shows at first."""
N_TOP_ALL = 1000
"""More than any index keeps."""


def page() -> None:
    """Draw the page; it opens on the prototype whose label is best supported."""
    ref = data.current()
    page_head("Prototypes", text.PROTOTYPES, text.PROTOTYPES_HOW)
    if data.run_of(ref).kind == "dense":
        empty_state(text.DENSE)
        return
    frame = data.prototypes(ref)
    left, right = st.columns([9, 11], gap="medium")
    with left, st.container(key="browser"):
        order, chosen = _browse(ref, frame)
    with right:
        _navigation(ref, order, chosen)
        _card(ref, frame[frame["prototype"] == chosen].iloc[0])


def _browse(ref: data.RunRef, frame: pd.DataFrame) -> tuple[list[int], int]:
    """Filters, map and table; returns the table's order and the chosen prototype."""
    wanted, fires, sort = filter_bar(ref, frame)
    texts, problem = attempt(data.search_texts, ref) if wanted.query else (None, None)
    if problem:
        st.caption(f"Only labels are searched. {problem}")
    texts = frame["label"].str.lower() if texts is None else texts
    found = filters.apply(frame, wanted, texts)
    rows = filters.ordered(found.shown, sort, wanted.firing)
    if fires is not None:
        rows = rows.assign(fires=rows["prototype"].map(fires.set_index("prototype")["activation"]))
    order = rows["prototype"].tolist()
    chosen = state.read_int("prototype", None, high=len(frame) - 1)
    if chosen is None:
        searched = bool(order) and (fires is not None or bool(wanted.query))
        chosen = order[0] if searched else _worked_example(frame)
    map_panel(found, chosen, wanted.picked)
    st.caption(f"{found.sentence(len(frame))} {text.MAP_HINT}")
    if rows.empty:
        st.info(no_match(frame, wanted, texts), icon=":material/filter_alt_off:")
    else:
        table_panel(rows, chosen)
    selection_bar(ref, found, wanted.picked)
    return order, chosen


def _worked_example(frame: pd.DataFrame) -> int:
    """A prototype worth opening first: well labelled, neither rare nor everywhere, not unwanted."""
    least = max(0.05, float(frame["unwanted_share"].quantile(0.2)))
    calm = frame[(frame["unwanted_share"] <= least) & frame["firing_rate"].between(1e-4, 3e-2)]
    pool = calm if len(calm) else frame
    gain = pool["label_score"].fillna(0) - pool["random_label_score"].fillna(0.5)
    return int(pool["prototype"].iloc[int(gain.to_numpy().argmax())])


def _go(order: list[int], chosen: int, by: int | None) -> None:
    """Move along the table's order; None goes anywhere in it."""
    goal = random.choice(order) if by is None and order else filters.step(order, chosen, by or 1)
    state.write(prototype=goal, mark=None)


def _navigation(ref: data.RunRef, order: list[int], chosen: int) -> None:
    """Previous, next, random, and the way to switch this prototype off."""
    place = order.index(chosen) + 1 if chosen in order else None
    moves = (("Previous", -1, "P"), ("Next", 1, "N"), ("Random", None, "X"))
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        for name, by, shortcut in moves:
            st.button(
                name, key=f"go_{name.lower()}", shortcut=shortcut, on_click=_go,
                args=(order, chosen, by), disabled=not order,
            )  # fmt: skip
        st.caption(f"{place:,} of {len(order):,}" if place else "not among the rows shown")
        st.page_link(
            st.session_state["headwater_pages"]["suppression"],
            label="Switch it off",
            icon=":material/toggle_off:",
            query_params={"run": ref.name, "set": str(chosen)},
        )


@panel
def _card(ref: data.RunRef, prototype: pd.Series) -> None:
    """The card; it reruns on its own when a token is clicked."""
    chosen = int(prototype["prototype"])
    open_dialogs(ref, prototype)
    card_head(prototype)
    card_figures(ref, prototype, key="card")
    everything = st.toggle("Show every strongest token kept", key="more", bind="query-params")
    neighbours(ref, prototype, key="card", n_top=N_TOP_ALL if everything else N_TOP)
    own_text(ref, prototype)
    nearest_table(ref, chosen, key="card")
