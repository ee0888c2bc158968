"""Probes asked in other words, or with their options in another order.

Each way keeps the question's own words, so that attributions of these can be held against each
other although the words around them differ.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from engine.able.columns import Columns
from engine.able.probes import Probe, ProbeSet, Style, letter_probe, text_probe


_BEFORE, _AFTER = "Question: ", "\nAnswer: "


Orders = list[Int[np.ndarray, "..."]]
"""Of each probe the place of the option that comes first, and so on."""


@dataclass(frozen=True)
class Asked:
    """A probe taken apart."""

    source: str
    """Set it comes from."""
    question: str
    """The question alone."""
    choices: tuple[str, ...]
    """Texts of its options."""
    answer: int
    """Right one, counted from 0."""


def take_apart(probe: Probe, style: str) -> Asked:
    """Question and choices of a probe of a set.

    Raises:
        ConfigError: A lettered probe is not of the paper's format.
    """
    text = text_probe(probe) if style == "letters" else probe
    question = text.prompt.removeprefix(_BEFORE).removesuffix(_AFTER)
    return Asked(text.source, question, text.options, text.answer)


def _texts(before: str, after: str) -> Callable[[Asked], Probe]:
    def worded(asked: Asked) -> Probe:
        prompt = f"{before}{asked.question}{after}"
        return Probe(asked.source, prompt, asked.choices, asked.answer)

    return worded


def _letters(asked: Asked) -> Probe:
    return letter_probe(asked.source, asked.question, asked.choices, asked.answer)


TEMPLATES: dict[str, Callable[[Asked], Probe]] = {
    "letters": _letters,
    "texts": _texts(_BEFORE, _AFTER),
    "short": _texts("Q: ", "\nA: "),
    "plain": _texts("", " "),
    "chat": _texts("User: ", "\nAssistant: "),
}
"""Ways of asking: the paper's; the option's text after `Answer:`; shorter marks; the question
alone; and as in a conversation."""


def reworded(probes: ProbeSet, template: str) -> ProbeSet:
    """The same probes in the same order, asked another way."""
    made = tuple(TEMPLATES[template](take_apart(p, probes.style)) for p in probes.probes)
    style: Style = "letters" if template == "letters" else "texts"
    return ProbeSet(f"{probes.name} as {template}", made, style)


def orders(probes: ProbeSet, seed: int = 0) -> Orders:
    """A random order of each probe's options: place of the option that comes first, and so on."""
    return [
        np.random.default_rng([seed, number]).permutation(len(probe.options))
        for number, probe in enumerate(probes.probes)
    ]


def shuffled(probes: ProbeSet, given: Orders) -> ProbeSet:
    """The same probes with their options, and the lettered choices, in the given orders."""
    make = TEMPLATES[probes.style]
    made: list[Probe] = []
    for probe, order in zip(probes.probes, given, strict=True):
        asked = take_apart(probe, probes.style)
        choices = tuple(asked.choices[place] for place in order)
        answer = int(np.flatnonzero(order == asked.answer)[0])
        made.append(make(Asked(asked.source, asked.question, choices, answer)))
    return ProbeSet(f"{probes.name} shuffled", tuple(made), probes.style)


def question_columns(
    columns: Columns,
    questions: Sequence[str],
    given: Orders | None = None,
) -> Int[np.ndarray, " kept"]:
    """Columns of the words that lie within the question, by probe, option and word.

    Sets that differ by their template alone have as many, in the same order.

    Args:
        columns: Of the probes as they are asked.
        questions: The question of each probe, which its prompt holds.
        given: Orders that the options were put in; they come back to the order they had.
    """
    kept: list[np.ndarray] = []
    for number, (probe, question) in enumerate(zip(columns.probes.probes, questions, strict=True)):
        start = probe.prompt.index(question)
        end = start + len(question)
        inside = [start <= first and last <= end for first, last in probe.word_spans]
        block = columns.block(number)
        places = np.arange(block.start, block.stop).reshape(len(probe.options), probe.n_words)
        if given is not None:
            places = places[np.argsort(given[number])]
        kept.append(places[:, inside].ravel())
    return np.concatenate(kept)
