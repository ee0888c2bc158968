"""What the Catalogue page looks at: filters, colour, places and model, all of them in the URL."""

from dataclasses import dataclass

import pandas as pd
import streamlit as st

from dashboard import service_catalogue as service, state, text_catalogue as text
from dashboard.service_catalogue import Held


ANY = ""
_WIDTH = 158


@dataclass(frozen=True)
class CatalogueView:
    """What is looked at."""

    colour: str
    """A key of `COLOURS` or of `SCORES`."""
    on_map: bool
    """Whether places are those of a run's picture."""
    chosen: str
    """Model of the card."""
    hidden: frozenset[str]
    """Models that the filters hide."""
    said: str
    """What is hidden by which filter, in a sentence."""
    filters: str
    """Filters in use, in words."""


def controls(frame: pd.DataFrame, held: dict[str, Held]) -> CatalogueView:
    """Draw filters and controls of the page.

    Args:
        frame: What `service.models` gives.
        held: What `service.held` gives.
    """
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        query = st.text_input(
            "Search", key="q", bind="query-params", placeholder=text.SEARCH, width=200
        )
        families = [str(f) for f in frame["label"].value_counts().index]
        family = _choice("Family", "family", families)
        relation = _named("How it was made", "relation", text.RELATIONS)
        evidence = _named("Lineage", "evidence", text.EVIDENCE, text.EVIDENCE_HELP)
        where = _named("Embedded", "embedded", text.EMBEDDED)
    colour, on_map, scored = _looks()
    masks = {
        "search": _found(frame, query or ""),
        "family": frame["label"].eq(family) if family else None,
        "how it was made": frame["relation"].eq(relation) if relation else None,
        "lineage": frame["evidence"].eq(evidence) if evidence else None,
        "embedded": _where(frame, held).eq(where) if where else None,
        "published scores": frame["published"] if scored else None,
    }
    used = {name: mask for name, mask in masks.items() if mask is not None}
    keep = pd.Series(True, index=frame.index)
    for mask in used.values():
        keep &= mask
    hidden = frozenset(str(model) for model in frame.loc[~keep, "model"])
    return CatalogueView(
        colour, on_map, _model(frame), hidden, _said(used, len(frame), len(hidden)),
        ", ".join(used),
    )  # fmt: skip


def _choice(label: str, key: str, options: list[str], help_text: str = "") -> str:
    state.read_choice(key, options, ANY)
    shown = st.selectbox(
        label,
        [ANY, *options],
        key=key,
        bind="query-params",
        format_func=lambda name: name or "any",
        width=_WIDTH,
        help=help_text or None,
    )
    return str(shown or ANY)


def _named(label: str, key: str, names: dict[str, str], help_text: str = "") -> str:
    """A choice shown, and written into the link, in words; returns its name."""
    words = _choice(label, key, list(names.values()), help_text)
    return next((name for name, said in names.items() if said == words), ANY)


def _found(frame: pd.DataFrame, query: str) -> pd.Series | None:
    """Models whose name, family, parent or declared base holds every word."""
    wanted = query.lower().split()
    if not wanted:
        return None
    columns = ("model", "label", "parent", "declared_base", "architecture")
    texts = frame[columns[0]].str.lower()
    for column in columns[1:]:
        texts = texts + " " + frame[column].str.lower()
    keep = pd.Series(True, index=frame.index)
    for word in wanted:
        keep &= texts.str.contains(word, regex=False)
    return keep


def _where(frame: pd.DataFrame, held: dict[str, Held]) -> pd.Series:
    """embedded, failed or no for each model."""
    found = [held[str(m)].status if str(m) in held else "no" for m in frame["model"]]
    return pd.Series(found, index=frame.index, dtype=object)


def _said(used: dict[str, pd.Series], total: int, n_hidden: int) -> str:
    if not n_hidden:
        return f"All {total:,} models shown."
    by = ", ".join(f"{name} ({int((~mask).sum()):,})" for name, mask in used.items())
    return f"{n_hidden:,} of {total:,} hidden by {by}."


def _looks() -> tuple[str, bool, bool]:
    """Colour, whether places are those of a map, and whether models without scores are hidden."""
    names = {**text.COLOURS, **text.SCORES}
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        words = list(names.values())
        state.read_choice("colour", words, words[0])
        shown = st.selectbox("Colour", words, key="colour", bind="query-params", width=210)
        colour = next((name for name, said in names.items() if said == shown), "family")
        scored = st.toggle("With published scores only", key="scored", bind="query-params")
        if service.map_places(service.models()) is None:
            return colour, False, scored
        ways = list(text.POSITIONS.values())
        state.read_choice("places", ways, ways[1])
        way = st.segmented_control(
            "Arranged by", ways, default=ways[1], required=True, key="places",
            bind="query-params", help=text.POSITIONS_HELP,
        )  # fmt: skip
    return colour, way == ways[1], scored


def _model(frame: pd.DataFrame) -> str:
    """The model of the link, else the one that most others go back to."""
    asked = state.read_text("model")
    lineage = service.lineage_of(frame)
    if asked in lineage.parents or asked in lineage.outside:
        return asked
    if asked:
        state.refuse("model", asked, "a hub id of the catalogue")
    return max((str(m) for m in frame["model"]), key=lambda m: len(lineage.descendants(m)))


def choose(model: str) -> None:
    """Make a model the one of the card."""
    state.write(model=model)
