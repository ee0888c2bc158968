"""Text generated before and after, side by side, token by token, from the same random numbers."""

import html
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard import service, state
from dashboard.components.attribution_doors import trace_text
from dashboard.components.facts import Fact, facts
from dashboard.data import RunRef
from dashboard.service import SENSITIVE, Draw, Off
from dashboard.theme import number


KEPT = 12
"""Finished texts a session remembers."""
SEEDS, LENGTHS = (0, 2**31 - 1), (8, 160)
"""Lowest and highest seed, and number of tokens generated."""
HEATS, TOP_PS = (0.0, 1.5), (0.05, 1.0)
"""Lowest and highest temperature, and share of probability drawn from."""
HEIGHT = 190
"""Pixels of a text's box."""
_STYLE = Path(__file__).with_name("assets") / "generation.css"


@dataclass(frozen=True)
class Written:
    """A text as far as it is written: pieces, each with whether the set was active there."""

    pieces: tuple[tuple[str, bool], ...] = ()
    classifier: float | None = None
    wordlist: float | None = None
    missing: tuple[str, ...] = ()
    ending: str = ""

    @property
    def text(self) -> str:
        """The text."""
        return "".join(piece for piece, _ in self.pieces)

    @property
    def masked(self) -> bool:
        """Whether it is hidden until revealed: scored as unwanted, or not scored at all."""
        return bool(self.pieces) and (self.classifier is None or self.classifier >= SENSITIVE)


@dataclass(frozen=True)
class Side:
    """One column: a title and what is switched off in it."""

    title: str
    note: str
    off: Off


def draw_controls() -> Draw:
    """Seed, length and sampler, shared by every column; all in the link."""
    checked = (("seed", SEEDS), ("tokens", LENGTHS), ("temperature", HEATS), ("top_p", TOP_PS))
    for name, (low, high) in checked:
        state.check_number(name, low, high)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        seed = st.number_input(
            "Seed", *SEEDS, 0, key="seed", bind="query-params", width=130,
            help="The same seed gives every column the same random numbers.",
        )  # fmt: skip
        n_tokens = st.slider(
            "Tokens", *LENGTHS, 48, 8, key="tokens", bind="query-params", width=190
        )
        temperature = st.slider(
            "Temperature", *HEATS, 0.8, 0.05, key="temperature", bind="query-params", width=190
        )
        top_p = st.slider("Top p", *TOP_PS, 0.95, 0.05, key="top_p", bind="query-params", width=190)
    return Draw(int(seed), int(n_tokens), float(temperature), float(top_p))


def generation_pair(ref: RunRef, prompt: str, sides: list[Side], draw: Draw) -> None:
    """Write every side that is not written yet, then show texts, scores and masks."""
    kept: dict[tuple[object, ...], Written] = st.session_state.setdefault("headwater_texts", {})
    keys = [(ref, prompt, side.off, draw) for side in sides]
    st.html(f"<style>{_STYLE.read_text(encoding='utf-8')}</style>")
    columns = st.columns(len(sides), gap="medium")
    slots = []
    for column, side in zip(columns, sides, strict=True):
        with column:
            st.markdown(f"**{side.title}**  :gray[{side.note}]")
            with st.container(height=HEIGHT, border=True):
                slots.append(st.empty())
    todo = [i for i, key in enumerate(keys) if key not in kept]
    for i, key in enumerate(keys):
        slots[i].html(_page(prompt, kept.get(key, Written()), shown=False))
    if todo and not _asked(ref, keys):
        return
    finished = _write_all(ref, prompt, [sides[i] for i in todo], draw, [slots[i] for i in todo])
    for i, written in zip(todo, finished, strict=True):
        kept[keys[i]] = written
    while len(kept) > KEPT:
        kept.pop(next(iter(kept)))
    for key, slot, column, side in zip(keys, slots, columns, sides, strict=True):
        _show(ref, prompt, kept[key], slot, column, key, side)


def _asked(ref: RunRef, keys: Sequence[tuple[object, ...]]) -> bool:
    """Small models write at once; a large one when the button is pressed."""
    if service.answers_at_once(ref):
        return True
    return st.button("Generate", key=f"write_{hash(tuple(keys))}", icon=":material/play_arrow:")


def _write_all(
    ref: RunRef, prompt: str, sides: list[Side], draw: Draw, slots: list[DeltaGenerator]
) -> list[Written]:
    """Write all sides in turns, one token each; every piece is scored before it is shown."""
    streams = [service.generate(ref, prompt, draw, side.off) for side in sides]
    written = [Written() for _ in sides]
    open_ = list(range(len(sides)))
    while open_:
        for i in tuple(open_):
            step = next(streams[i], None)
            if step is None:
                open_.remove(i)
                continue
            pieces = (*written[i].pieces, (step.text, step.touched))
            written[i] = replace(written[i], pieces=pieces, ending=step.ending)
        scores = service.scores(ref, tuple(w.text for w in written))
        for i, slot in enumerate(slots):
            written[i] = replace(
                written[i],
                classifier=scores.classifier[i] if scores.classifier else None,
                wordlist=scores.wordlist[i] if scores.wordlist else None,
                missing=scores.missing,
            )
            slot.html(_page(prompt, written[i], shown=False))
    return written


def _show(
    ref: RunRef,
    prompt: str,
    written: Written,
    slot: DeltaGenerator,
    column: DeltaGenerator,
    key: tuple[object, ...],
    side: Side,
) -> None:
    """The finished text with its scores; a masked one with the button that reveals it."""
    reveal = f"reveal_{side.title}_{hash(key)}"
    shown = bool(st.session_state.get(f"{reveal}_shown"))
    slot.html(_page(prompt, written, shown=shown))
    with column:
        facts(_facts(written, side))
        if shown or not written.masked:
            trace_text(ref, prompt, written.text)
        if written.masked:
            st.button(
                "Hide again" if shown else "Reveal this one",
                key=reveal,
                type="tertiary",
                icon=":material/visibility_off:" if shown else ":material/visibility:",
                on_click=lambda: st.session_state.update({f"{reveal}_shown": not shown}),
            )
        for sentence in written.missing:
            st.caption(sentence)


def _facts(written: Written, side: Side) -> list[Fact]:
    touched = sum(mark for _, mark in written.pieces)
    found = [
        Fact(
            "Classifier", number(written.classifier), "", "Probability of unwanted content, 0 to 1."
        ),
        Fact("Word list", number(written.wordlist), "", "Share of words on a list of profanity."),
        Fact("Tokens", str(len(written.pieces)), written.ending),
    ]
    if side.off.prototypes:
        help_text = "Tokens drawn where a suppressed prototype was active; underlined in the text."
        found.append(
            Fact("Touched", str(touched), "token" if touched == 1 else "tokens", help_text)
        )
    return found


def _page(prompt: str, written: Written, *, shown: bool) -> str:
    """The box's content; every character of prompt and text is escaped."""
    start = f'<span class="prompt">{html.escape(prompt)}</span>'
    if written.masked and not shown:
        why = (
            f"Hidden: the classifier gives it {written.classifier:.2f}, {SENSITIVE} or more."
            if written.classifier is not None
            else "Hidden: no scorer is on this machine, so nothing is known of it."
        )
        return f'<p class="hw-text">{start}</p><div class="hw-mask">{html.escape(why)}</div>'
    body = "".join(
        f'<span class="touched">{html.escape(piece)}</span>' if mark else html.escape(piece)
        for piece, mark in written.pieces
    )
    return f'<p class="hw-text">{start}{body}</p>'
