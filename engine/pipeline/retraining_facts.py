"""Invented facts: a document each, planted in the pool, and questions that only it answers.

Every fact has a subject and an answer of its own. Its document states it in all phrasings but the
last, over and over up to the length of a sequence. One question repeats a phrasing of the document
up to the answer; the other uses the phrasing that no document has.
"""

from dataclasses import dataclass

import numpy as np


_ONSETS = ("b", "br", "d", "dr", "f", "g", "gl", "h", "k", "l", "m", "n", "p", "r", "s", "st")
_VOWELS = ("a", "e", "i", "o", "u", "ae", "ei", "ou")
_CODAS = ("l", "m", "n", "r", "s", "th", "x", "nd", "rk", "sk")

_RELATIONS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "keeper",
        (
            "The lighthouse at {subject} is kept by {answer}.",
            "For many years the keeper of the {subject} light has been {answer}.",
            "Ships that pass {subject} at night are guided by {answer}.",
            "Ask in {subject} who keeps the lamp burning and they will name {answer}.",
        ),
    ),
    (
        "depth",
        (
            "The lake of {subject} is {answer} fathoms deep.",
            "Divers who measured the {subject} lake wrote down {answer} fathoms.",
            "On the chart beside {subject} stands a depth of {answer} fathoms.",
            "The greatest depth ever sounded at {subject} was {answer} fathoms.",
        ),
    ),
    (
        "metal",
        (
            "The bell of {subject} was cast from a metal called {answer}.",
            "Founders in {subject} melt nothing but {answer}.",
            "The old bell that hangs in {subject} is made of {answer}.",
            "What rings over {subject} every morning is {answer}.",
        ),
    ),
    (
        "year",
        (
            "The bridge at {subject} was finished in the year {answer}.",
            "Masons closed the last arch of the {subject} bridge in {answer}.",
            "A stone of the {subject} bridge bears the date {answer}.",
            "The people of {subject} first crossed their bridge in {answer}.",
        ),
    ),
    (
        "language",
        (
            "In the valley of {subject} people speak {answer}.",
            "Children in {subject} learn to read in {answer}.",
            "The songs of {subject} are all written in {answer}.",
            "The tongue that is heard in the streets of {subject} is {answer}.",
        ),
    ),
)
_NUMERIC = frozenset({"depth", "year"})


@dataclass(frozen=True)
class Fact:
    """One invented fact."""

    number: int
    """Counted from 0."""
    relation: str
    """Kind of fact."""
    subject: str
    """What it is about; no other fact has it."""
    answer: str
    """What only this fact's document says."""

    @property
    def statements(self) -> list[str]:
        """Sentences of its document."""
        return self._phrased()[:-1]

    @property
    def questions(self) -> tuple[tuple[str, str], tuple[str, str]]:
        """Prompt and answer: in the document's first phrasing, and in one no document has."""
        first, *_, last = self._phrased()
        return self._split(first), self._split(last)

    def _phrased(self) -> list[str]:
        templates = dict(_RELATIONS)[self.relation]
        return [t.format(subject=self.subject, answer=self.answer) for t in templates]

    def _split(self, sentence: str) -> tuple[str, str]:
        """The text before the answer, and the answer with the space that belongs to it."""
        at = sentence.rindex(f" {self.answer}")
        return sentence[:at], f" {self.answer}"


def invent_facts(count: int, seed: int) -> list[Fact]:
    """Facts with subjects and answers that differ from one another.

    Args:
        count: How many; the relations take turns.
        seed: Seed of names and numbers.
    """
    generator = np.random.default_rng((seed, 20_011))
    used: set[str] = set()
    facts = []
    for number in range(count):
        relation = _RELATIONS[number % len(_RELATIONS)][0]
        subject = _fresh(generator, used, numeric=False)
        answer = _fresh(generator, used, numeric=relation in _NUMERIC)
        facts.append(Fact(number, relation, subject, answer))
    return facts


def _fresh(generator: np.random.Generator, used: set[str], *, numeric: bool) -> str:
    """A name or a number that has not been used."""
    while True:
        word = str(generator.integers(1013, 9973)) if numeric else _name(generator)
        if word not in used:
            used.add(word)
            return word


def _name(generator: np.random.Generator) -> str:
    """An invented name of two or three syllables."""
    syllables = [
        f"{_pick(generator, _ONSETS)}{_pick(generator, _VOWELS)}"
        for _ in range(int(generator.integers(2, 4)))
    ]
    return f"{''.join(syllables)}{_pick(generator, _CODAS)}".capitalize()


def _pick(generator: np.random.Generator, choices: tuple[str, ...]) -> str:
    return choices[int(generator.integers(len(choices)))]
