"""A dense line of labelled numbers, and the sentence and popover every page opens with."""

import html
from collections.abc import Iterable
from dataclasses import dataclass

import streamlit as st


@dataclass(frozen=True)
class Fact:
    """One labelled number."""

    name: str
    value: str
    note: str = ""
    """Small print after the value: a unit, a comparison."""
    help: str = ""
    """Shown on hover."""


_STYLE = """<style>
.hw-facts { display: flex; flex-wrap: wrap; gap: 4px 22px; margin: 0; font-size: 0.9rem; }
.hw-facts div { display: flex; flex-direction: column; min-width: 64px; }
.hw-facts dt { font-size: 0.78rem; opacity: 0.72; white-space: nowrap; }
.hw-facts dd { margin: 0; font-weight: 600; white-space: nowrap; }
.hw-facts dd { font-variant-numeric: tabular-nums; }
.hw-facts dd span { font-weight: 400; opacity: 0.72; font-size: 0.82rem; }
.hw-facts [title] { cursor: help; }
</style>"""


def facts(items: Iterable[Fact]) -> None:
    """Draw labelled numbers in one wrapping line; every word is escaped."""
    cells = "".join(_cell(item) for item in items)
    st.html(f'{_STYLE}<dl class="hw-facts">{cells}</dl>')


def _cell(item: Fact) -> str:
    name, value, note = (html.escape(t) for t in (item.name, item.value, item.note))
    title = f' title="{html.escape(item.help)}"' if item.help else ""
    small = f" <span>{note}</span>" if note else ""
    return f"<div{title}><dt>{name}</dt><dd>{value}{small}</dd></div>"


def page_head(title: str, sentence: str, how: str) -> None:
    """Title, one sentence on what one is looking at, and a popover on how to read it."""
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        st.markdown(f"## {title}", width="content")
        st.caption(sentence, width="stretch")
        with st.popover("How to read this", type="tertiary", icon=":material/help:"):
            st.markdown(how)
