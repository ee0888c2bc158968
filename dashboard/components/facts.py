"""A dense line of labelled numbers, and the sentence and popover every page opens with."""

import html
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import streamlit as st


MOST_CHIPS = 12
"""Groups a legend names; the others are counted together."""


@dataclass(frozen=True)
class Fact:
    """One labelled number."""

    name: str
    value: str
    note: str = ""
    """Small print after the value: a unit, a comparison."""
    help: str = ""
    """Shown on hover."""


_STYLE = Path(__file__).with_name("assets") / "page.css"


def page_style() -> None:
    """The style sheet of the pages, once a run."""
    st.html(f"<style>{_STYLE.read_text(encoding='utf-8')}</style>")


def facts(items: Iterable[Fact]) -> None:
    """Draw labelled numbers in one wrapping line; every word is escaped."""
    cells = "".join(_cell(item) for item in items)
    st.html(f'<dl class="hw-facts">{cells}</dl>')


def _cell(item: Fact) -> str:
    name, value, note = (html.escape(t) for t in (item.name, item.value, item.note))
    title = f' title="{html.escape(item.help)}"' if item.help else ""
    small = f" <span>{note}</span>" if note else ""
    return f"<div{title}><dt>{name}</dt><dd>{value}{small}</dd></div>"


def chips(groups: Iterable[tuple[str, str, int]]) -> None:
    """A legend of coloured dots: name, colour and size of each group; every word is escaped."""
    listed = list(groups)
    if len(listed) > MOST_CHIPS:
        rest = listed[MOST_CHIPS:]
        listed = [
            *listed[:MOST_CHIPS],
            (f"{len(rest)} more groups", rest[0][1], sum(n for *_, n in rest)),
        ]
    items = "".join(
        f'<span><i style="background:{html.escape(colour)}"></i>{html.escape(name)} {n:,}</span>'
        for name, colour, n in listed
    )
    if items:
        st.html(f'<div class="hw-chips">{items}</div>')


def page_head(title: str, sentence: str, how: str) -> None:
    """Title, one sentence on what one is looking at, and a popover on how to read it."""
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        name, line = html.escape(title), html.escape(sentence)
        st.html(f'<div class="hw-head"><h1>{name}</h1><p>{line}</p></div>')
        with st.popover("How to read this", type="tertiary", icon=":material/help:"):
            st.markdown(how)
