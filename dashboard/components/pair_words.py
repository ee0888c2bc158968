"""One question read by two models: words of each option shaded, with sums that add up."""

import html
from dataclasses import dataclass

import numpy as np
import pandas as pd
import streamlit as st

from dashboard import model_words, service_pair as service, text_pair as text, theme
from dashboard.components.pair_controls import PairView
from dashboard.components.token_strip import Strip, TokenCell, token_strips
from dashboard.data import RunRef
from dashboard.figures.pair import SECOND


@dataclass(frozen=True)
class Side:
    """What one model makes of the question."""

    name: str
    block: np.ndarray
    """Attribution of words in nats [options, words]; empty where it did not read the question."""
    slot: np.ndarray
    """That of tokens that span no character [options]."""
    scores: np.ndarray
    """Log-probabilities of the options; NaN where it did not read the question."""
    choice: int
    """Option chosen; -1 where it did not read the question."""
    rounding: float
    """Most that storing moved a word, in nats."""

    @property
    def top(self) -> float:
        """Largest absolute attribution of a word."""
        return float(np.abs(self.block).max(initial=0.0))

    @property
    def sums(self) -> pd.DataFrame:
        """Sums by option."""
        return model_words.totals(self.block, self.slot)


@dataclass(frozen=True)
class Reading:
    """A question and both models."""

    probe: int
    source: str
    prompt: str
    options: tuple[str, ...]
    answer: int
    sides: tuple[Side, Side]

    @property
    def hidden(self) -> bool:
        """Whether its text may not be published."""
        return self.source == text.GATED

    @property
    def words(self) -> list[tuple[str, int]]:
        """Words as they are written, each with whether a line ends behind it."""
        found = lines_of(self.prompt)
        return [(f"word{k}", ends) if self.hidden else (w, ends) for k, (w, ends) in
                enumerate(found)]  # fmt: skip


def reading(ref: RunRef, view: PairView, probe: int, *, against: bool) -> Reading:
    """A question as both models of a pair read it.

    Args:
        ref: Run.
        view: The pair.
        probe: The question.
        against: Take the mean over the options from every attribution.
    """
    rows = service.probes(ref)
    row = rows[rows["probe"] == probe].iloc[0].to_dict()
    options = tuple(str(option) for option in row["options"])
    first, second = (_side(ref, name, probe, len(options), against) for name in view.names)
    return Reading(
        probe, str(row["source"]), str(row["prompt"]), options, int(row["answer"]), (first, second)
    )


def _side(ref: RunRef, name: str, probe: int, n_options: int, against: bool) -> Side:
    words = service.words_of(ref, name)
    block = words.blocks.get(probe, np.zeros((0, 0)))
    slot = words.slots.get(probe, np.zeros(0))
    if against:
        block, slot = model_words.against_others(block), model_words.against_others(slot)
    known = service.options_of(ref, name)
    own = known.loc[probe].to_dict() if probe in known.index else {}
    scores = np.asarray(own.get("log_probabilities", [np.nan] * n_options), np.float64)
    choice = int(own.get("choice", -1))
    return Side(name, block, slot, scores, choice, words.rounding.get(probe, 0.0))


def lines_of(prompt: str) -> list[tuple[str, int]]:
    """Words of a prompt, each with whether a line ends behind it and more text follows."""
    lines = [model_words.prompt_words(line) for line in prompt.split("\n")]
    kept = [line for line in lines if line]
    found: list[tuple[str, int]] = []
    for number, line in enumerate(kept):
        ends = int(number < len(kept) - 1)
        found.extend((word, ends if at == len(line) - 1 else 0) for at, word in enumerate(line))
    return found


def words_panel(read: Reading, *, alike: bool) -> None:
    """Strips of both models side by side, an option a strip, each with its sums.

    Args:
        read: The question.
        alike: Shade both by one scale.
    """
    tops = [side.top for side in read.sides]
    limits = [max(tops)] * 2 if alike else tops
    for place, column in enumerate(st.columns(2, gap="large")):
        side = read.sides[place]
        with column:
            st.html(heading(side.name, place))
            if not side.block.size:
                st.info(text.NOT_READ.format(model=side.name), icon=":material/content_cut:")
                continue
            token_strips(
                [option_strip(read, place, option) for option in range(len(read.options))],
                key=f"pair_words_{place}",
                scale="signed",
                limit=limits[place] or None,
            )


def heading(name: str, place: int) -> str:
    """A model's name behind a dot of its colour."""
    shade = theme.palette().accent if place == 0 else SECOND
    return (
        f'<div class="hw-chips"><span><i style="background:{shade}"></i>'
        f"<b>{html.escape(name)}</b></span></div>"
    )


def option_strip(read: Reading, place: int, option: int) -> Strip:
    """Words of one option of one model; hovering a word gives both models' numbers."""
    side = read.sides[place]
    marks = (("chosen", side.choice == option), ("the right one", read.answer == option))
    score = f"{side.scores[option]:.2f}".replace("-", "−")
    return Strip(
        cells(read, place, option),
        tag=option_name(read.options[option]),
        heading=", ".join(word for word, holds in marks if holds),
        note=f"log-probability {score} · {sums_sentence(side.sums.iloc[option])}",
        key=f"{place}-{option}",
        spaced=True,
    )


def option_name(option: str) -> str:
    """An option on one line."""
    shown = " ".join(option.split())
    return shown if len(shown) <= 40 else shown[:39] + "…"


def sums_sentence(sums: pd.Series) -> str:
    """What raises, what lowers, what lies outside words, and the whole, each with its sign."""
    parts = [f"{_signed(sums['raises'])} raises", f"{_signed(sums['lowers'])} lowers"]
    if sums["slot"]:
        parts.append(f"{_signed(sums['slot'])} outside words")
    return f"{', '.join(parts)} = {_signed(sums['total'])}"


def _signed(value: float) -> str:
    return f"{value:+.2f}".replace("-", "−")


def cells(read: Reading, place: int, option: int) -> list[TokenCell]:
    """A cell a word, with the line breaks of the prompt between them."""
    own, other = read.sides[place], read.sides[1 - place]
    whole = float(np.abs(own.block[option]).sum()) or 1.0
    made: list[TokenCell] = []
    for at, (word, breaks) in enumerate(read.words):
        value = float(own.block[option, at])
        said = f"{theme.signed(value)} nats, {abs(value) / whole:.1%} of the words' absolute sum"
        if other.block.size:
            said += f"\n{other.name}: {theme.signed(float(other.block[option, at]))} nats"
        made.append(TokenCell(word, value, f"{word}\n{said}", at))
        made.extend([TokenCell("\n")] * breaks)
    return made
