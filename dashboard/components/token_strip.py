"""Token strips: monospaced text whose background is a value per token.

One component draws any number of strips, so a card with twenty documents costs one element. Text
goes to the browser as data and into the page through `textContent` alone, never as HTML.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

import streamlit as st
from streamlit.components.v2 import component


Scale = Literal["activation", "signed"]

_ASSETS = Path(__file__).with_name("assets")
_GLYPHS = {"\n": "⏎", "\t": "⇥", "\r": "␍", " ": "·", "\0": "␀", "\u200b": "∅"}


@dataclass(frozen=True)
class TokenCell:
    """One token of a strip."""

    text: str
    value: float = 0.0
    """What the background shows: an activation in [0, 1], or a signed number."""
    title: str = ""
    """Shown on hover."""
    position: int | None = None
    """What a click returns; the place in the strip when None."""


@dataclass(frozen=True)
class Strip:
    """One line of tokens with a heading."""

    cells: Sequence[TokenCell]
    tag: str = ""
    """A word in bold before the heading, such as the domain."""
    heading: str = ""
    note: str = ""
    focus: int | None = None
    """Place in the strip that is underlined and around which a long strip folds."""
    masked: bool = False
    """Hide the text until the reader reveals this strip."""
    key: str = ""
    """What a click returns beside the position."""
    link: str = ""
    """Words of a small button at the end of the heading; a click on it returns position None."""
    selected: int | None = None
    """Position drawn as chosen."""
    group: str = ""
    """Title drawn above this strip, where a group of strips begins."""
    spaced: bool = False
    """Write a space after each cell, outside its shade: cells are words."""


@dataclass(frozen=True)
class StripClick:
    """What the reader clicked."""

    key: str
    position: int | None
    """Position of the token, or None for the strip's own button."""


@dataclass(frozen=True)
class _Data:
    strips: list[dict[str, object]]
    scale: Scale
    limit: float
    selectable: bool
    fold: int
    histogram: str
    glyphs: dict[str, str] = field(default_factory=lambda: dict(_GLYPHS))


_draw = component(
    "headwater_token_strip",
    css=(_ASSETS / "token_strip.css").read_text(encoding="utf-8"),
    js=(_ASSETS / "token_strip.js").read_text(encoding="utf-8"),
)


def token_strip(
    tokens: Sequence[TokenCell],
    *,
    key: str,
    scale: Scale = "activation",
    limit: float | None = None,
    selectable: bool = False,
    selected: int | None = None,
    on_select: Callable[[int], None] | None = None,
) -> int | None:
    """Draw one strip; returns the position clicked in this run, if any.

    Args:
        tokens: Tokens in order.
        key: Widget key; required, so that new data redraw the same element.
        scale: `activation` shades with the accent from 0; `signed` uses blue and orange.
        limit: Value of full intensity; the largest magnitude when None.
        selectable: Whether a click is reported.
        selected: Position drawn as chosen.
        on_select: Called with the position before the page reruns.
    """

    def pick(click: StripClick) -> None:
        if on_select and click.position is not None:
            on_select(click.position)

    click = token_strips(
        [Strip(tokens, selected=selected)],
        key=key,
        scale=scale,
        limit=limit,
        selectable=selectable,
        on_click=pick if on_select else None,
        fold=0,
    )
    return click.position if click else None


def token_strips(
    strips: Sequence[Strip],
    *,
    key: str,
    scale: Scale = "activation",
    limit: float | None = None,
    selectable: bool = False,
    on_click: Callable[[StripClick], None] | None = None,
    fold: int = 0,
    histogram: str = "",
) -> StripClick | None:
    """Draw several strips in one element; returns what was clicked in this run, if anything.

    Args:
        strips: Strips from top to bottom.
        key: Widget key.
        scale: As in `token_strip`.
        limit: Value of full intensity, shared by all strips.
        selectable: Whether clicks on tokens are reported.
        on_click: Called with the click before the page reruns.
        fold: Show this many tokens around the focus until the reader unfolds; 0 shows all.
        histogram: Key of the chart whose bin is marked while a token is hovered.
    """
    values = [abs(c.value) for s in strips for c in s.cells]
    data = _Data(
        strips=[asdict(s) for s in strips],
        scale=scale,
        limit=limit or max([*values, 1e-9]),
        selectable=selectable,
        fold=fold,
        histogram=histogram,
    )

    def changed() -> None:
        click = _click(st.session_state.get(key))
        if on_click and click:
            on_click(click)

    result = _draw(data=asdict(data), key=key, on_clicked_change=changed)
    return _click(result)


def _click(state: object) -> StripClick | None:
    """The click a component's state carries, checked; None for anything else."""
    raw = state.get("clicked") if isinstance(state, dict) else getattr(state, "clicked", None)
    if not isinstance(raw, dict):
        return None
    position = raw.get("position")
    ok = position is None or (isinstance(position, int) and not isinstance(position, bool))
    return StripClick(key=str(raw.get("key", "")), position=position) if ok else None
