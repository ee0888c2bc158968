"""Which prototypes are switched off: members of a set, each with its toggle, and ways to add more.

The URL holds the set (`set`) and the members that are switched on again (`on`); `set=none` is a set
that the reader has emptied.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import pandas as pd
import streamlit as st

from dashboard import data, service, state
from dashboard.components.prompt_box import Reading
from dashboard.data import RunRef
from dashboard.figures.tokens import glyphs
from dashboard.service import Off
from dashboard.theme import percent


PER_PAGE = 8
"""Toggles on screen at once."""
N_FOUND = 200
"""Search results listed."""
EMPTIED = "none"
_WAYS = ("Active here", "Concept", "Search", "Ids")


@dataclass(frozen=True)
class Members:
    """A set: everything in it, and what of it is switched off."""

    ids: tuple[int, ...]
    off: tuple[int, ...]


def read_members(n_prototypes: int, default: Sequence[int]) -> Members:
    """The set of the link; `default` when the link names none."""
    raw = st.query_params.get("set")
    if raw is None:
        ids = tuple(sorted(default))
    else:
        ids = () if raw == EMPTIED else state.read_ids("set", below=n_prototypes)
    on = set(state.read_ids("on", below=n_prototypes))
    return Members(ids, tuple(i for i in ids if i not in on))


def _write(ids: Iterable[int], on: Iterable[int] = ()) -> None:
    members = set(ids)
    state.write(set=members or EMPTIED, on=set(on) & members)


def worked_example(ref: RunRef, frame: pd.DataFrame) -> tuple[int, ...]:
    """The set a page opens on: the first saved concept, else what is most active at the end.

    Args:
        ref: Run.
        frame: Active prototypes of the prompt: position, prototype, activation.
    """
    saved = service.concepts(ref)
    if saved:
        return next(iter(saved.values()))
    last = frame[frame["position"] == frame["position"].max()]
    return tuple(int(p) for p in last.nlargest(1, "activation")["prototype"])


def where_active(reading: Reading, frame: pd.DataFrame, off: Sequence[int]) -> Reading:
    """The reading, moved to the last token where the set is active when the link names no token."""
    places = frame.loc[frame["prototype"].isin(off), "position"]
    if "position" in st.query_params or places.empty:
        return reading
    return replace(reading, position=int(places.max()))


def set_panel(ref: RunRef, members: Members, active: pd.DataFrame, reading: Reading) -> None:
    """Strength, toggles and ways to add prototypes.

    Args:
        ref: Run.
        members: The set.
        active: Prototypes active at the chosen token: prototype, label, activation, by rank.
        reading: Prompt and chosen token.
    """
    here = dict(zip(active["prototype"].astype(int), active["activation"], strict=True))
    n_here = len(here.keys() & set(members.off))
    st.markdown(
        f"##### {len(members.off):,} of {len(members.ids):,} switched off, {n_here} active here"
    )
    state.check_number("strength", 0, 1)
    st.slider(
        "Strength",
        0.0,
        1.0,
        1.0,
        0.05,
        key="strength",
        bind="query-params",
        help="1 removes the slices of these prototypes, 0.5 halves them, 0 leaves the model alone.",
    )
    _toggles(ref, members, here)
    with st.expander("Add prototypes", icon=":material/add:", expanded=not members.ids):
        _add(ref, members, active, reading)


def _toggles(ref: RunRef, members: Members, here: dict[int, float]) -> None:
    """One toggle a member, those active at the chosen token first."""
    if not members.ids:
        st.caption("Nothing is in the set; the model runs as it was trained.")
        return
    names = labels(ref, members.ids)
    ordered = sorted(members.ids, key=lambda i: (-here.get(i, 0.0), i))
    n_pages = -(-len(ordered) // PER_PAGE)
    page = 1
    if n_pages > 1:
        page = min(int(st.session_state.get("set_page") or 1), n_pages)
    for member in ordered[(page - 1) * PER_PAGE : page * PER_PAGE]:
        _toggle(member, names[member], members, here.get(member))
    if n_pages > 1:
        st.pagination(n_pages, key="set_page")
        st.caption(f"{PER_PAGE} of {len(ordered):,} on screen; those active here come first.")
    with st.container(horizontal=True, gap="small"):
        st.button("All off", on_click=_write, args=(members.ids,), type="tertiary")
        st.button("All on", on_click=_write, args=(members.ids, members.ids), type="tertiary")
        st.button("Empty the set", on_click=_write, args=((),), type="tertiary")


def _toggle(member: int, label: str, members: Members, activation: float | None) -> None:
    key = f"off_{member}"
    st.session_state[key] = member in members.off

    def flip() -> None:
        off = set(members.off) ^ {member}
        _write(members.ids, set(members.ids) - off)

    note = "" if activation is None else f":primary[active here {activation:.2f}]"
    words = " · ".join(part for part in (note, label) if part)
    st.toggle(f"#{member}  {words}".rstrip(), key=key, on_change=flip)


def labels(ref: RunRef, ids: Sequence[int]) -> dict[int, str]:
    """Label by prototype as Markdown, empty where the run is not indexed."""
    from dashboard.components.doors import escape_markdown

    if not data.has(ref, "prototypes"):
        return dict.fromkeys(ids, "")
    frame = data.prototypes(ref)
    known = frame.loc[frame["prototype"].isin(ids), ["prototype", "label"]]
    found = dict(zip(known["prototype"].astype(int), known["label"], strict=True))
    return {i: escape_markdown(str(found.get(i, ""))) for i in ids}


def _add(ref: RunRef, members: Members, active: pd.DataFrame, reading: Reading) -> None:
    """One way to add at a time."""
    way = st.segmented_control(
        "From", _WAYS, default=_WAYS[0], required=True, key="add", label_visibility="collapsed"
    )
    if way == "Concept":
        _add_concept(ref, members)
    elif way == "Search":
        _add_found(ref, members)
    elif way == "Ids":
        _add_ids(ref, members)
    else:
        st.caption(f"What is active at {glyphs(reading.tokens[reading.position].text)}")
        _pick(active[["prototype", "label", "activation"]], members, "active")


def _add_concept(ref: RunRef, members: Members) -> None:
    saved = service.concepts(ref)
    if not saved:
        st.caption("This run has no saved concepts; `headwater index` writes them.")
        return
    name = st.selectbox("Concept", list(saved), key="concept")
    n_new = len(set(saved[name]) - set(members.ids))
    with st.container(horizontal=True, gap="small"):
        st.button(
            f"Add {n_new:,}",
            on_click=_write,
            args=({*members.ids, *saved[name]}, set(members.ids) - set(members.off)),
            disabled=n_new == 0,
        )
        st.button("Use this set alone", on_click=_write, args=(saved[name],), type="tertiary")


def _add_found(ref: RunRef, members: Members) -> None:
    if not data.has(ref, "prototypes"):
        st.caption("This run has no index, so it has no labels; `headwater index` writes them.")
        return
    query = st.text_input(
        "Search labels and tokens",
        key="find",
        placeholder="unwanted, after an article, digits …",
        icon=":material/search:",
        live="300ms",
        label_visibility="collapsed",
    )
    if not query:
        return
    texts = data.search_texts(ref)
    match = pd.Series(data=True, index=texts.index)
    for word in query.lower().split():
        match &= texts.str.contains(word, regex=False)
    found = data.prototypes(ref)[match.to_numpy()]
    found = found.sort_values("firing_rate", ascending=False)[["prototype", "label", "firing_rate"]]
    if found.empty:
        st.caption("No label or raised token holds all of these words; try fewer or shorter ones.")
        return
    st.caption(
        f"{len(found):,} found" + (f", {N_FOUND} listed" if len(found) > N_FOUND else "") + "."
    )
    if len(found):
        shown = found.head(N_FOUND).assign(firing_rate=lambda f: f["firing_rate"].map(percent))
        _pick(shown, members, "found")


def _add_ids(ref: RunRef, members: Members) -> None:
    typed = st.text_input(
        "Ids", key="ids", placeholder="3, 5, 8", label_visibility="collapsed", max_chars=4000
    )
    try:
        ids = state.decode_ids(typed or "")
    except ValueError:
        st.caption(":material/error: Type whole numbers with commas between them.")
        return
    n_prototypes = service.engine(ref).n_prototypes
    known = [i for i in ids if i < n_prototypes]
    if len(known) < len(ids):
        st.caption(f":material/error: This run has prototypes 0 to {n_prototypes - 1:,}.")
    _button(known, members, "ids")


def _pick(frame: pd.DataFrame, members: Members, key: str) -> None:
    """A table whose selected rows are added; all of them when none is selected."""
    event = st.dataframe(
        frame,
        key=f"{key}_{hash(tuple(frame['prototype']))}",
        hide_index=True,
        height=min(35 * len(frame) + 38, 210),
        lazy=False,
        on_select="rerun",
        selection_mode="multi-row",
        column_config={
            "prototype": st.column_config.NumberColumn("#", format="%d", width=56),
            "label": "Label",
            "activation": st.column_config.NumberColumn("Activation (cosine)", format="%.3f"),
            "firing_rate": "Fires on (share of tokens)",
        },
        alt=f"{len(frame)} prototypes that can be added to the set.",
    )
    rows = [r for r in state.selected_rows(event) if r < len(frame)]
    chosen = frame.iloc[rows] if rows else frame
    _button(chosen["prototype"].astype(int).tolist(), members, key)


def _button(ids: Sequence[int], members: Members, key: str) -> None:
    new = set(ids) - set(members.ids)
    st.button(
        f"Switch off {len(new):,} more" if new else "All of these are in the set",
        key=f"add_{key}",
        on_click=_write,
        args=({*members.ids, *ids}, set(members.ids) - set(members.off)),
        disabled=not new,
    )


def current_off(members: Members) -> Off:
    """What is switched off, and how far, as the slider has it."""
    return Off(members.off, float(st.session_state.get("strength", 1.0)))
