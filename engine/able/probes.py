"""Probes: a prompt, the options that may follow it, and how both are written."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from engine.errors import ConfigError
from engine.provenance import fingerprint
from engine.questions import Question


Style = Literal["letters", "texts"]
"""What is scored: the letter of an option, as in the paper, or its text."""
STYLES: tuple[Style, ...] = ("letters", "texts")
LETTERS = "ABCDEFGHIJ"
_NUMBERS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_WORD = re.compile(r"\S+")
_SPACES = re.compile(r"\s*\n\s*")
_PARTS = re.compile(
    r"\A.*?^Question: (?P<question>.*)\nChoices:\n(?P<choices>A\. .*)\nAnswer:\s*\Z",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class Probe:
    """One multiple-choice question as a model reads it."""

    source: str
    """Name of the set it comes from."""
    prompt: str
    """All a model reads before an option, the separating newline or space included."""
    options: tuple[str, ...]
    """Texts whose log-probabilities are attributed; two or more, all different."""
    answer: int
    """Right option, counted from 0."""

    @cached_property
    def id(self) -> str:
        """Hash of prompt and options, 16 hex digits: the same in whatever set the probe stands."""
        return fingerprint([self.prompt, self.options])

    @cached_property
    def word_spans(self) -> tuple[tuple[int, int], ...]:
        """First and last character, the latter exclusive, of every word: a run without spaces."""
        return tuple(match.span() for match in _WORD.finditer(self.prompt))

    @property
    def n_words(self) -> int:
        """Words of the prompt."""
        return len(self.word_spans)

    @property
    def words(self) -> tuple[str, ...]:
        """The words of the prompt."""
        return tuple(self.prompt[start:end] for start, end in self.word_spans)


@dataclass(frozen=True)
class ProbeSet:
    """Probes in order, all different."""

    name: str
    """What was asked for."""
    probes: tuple[Probe, ...]
    style: Style = "letters"
    """What is scored."""
    n_left_out: int = 0
    """Rows that were no probe, or a probe once more."""

    @cached_property
    def fingerprint(self) -> str:
        """Changes whenever a prompt, an option or the order does."""
        return fingerprint([probe.id for probe in self.probes])

    @property
    def sources(self) -> tuple[str, ...]:
        """Names of the sets, in order of appearance."""
        return tuple(dict.fromkeys(probe.source for probe in self.probes))

    def __len__(self) -> int:
        return len(self.probes)


def paper_prompt(question: str, choices: Iterable[str]) -> str:
    """The paper's prompt: an instruction, the question, the lettered choices, `Answer:`, a newline.

    Source: arXiv 2606.07524, public probe set; the newline is what its code appends.

    Raises:
        ConfigError: There are fewer than 2 or more than 10 choices.
    """
    texts = list(choices)
    if not 2 <= len(texts) <= len(LETTERS):
        raise ConfigError(f"A probe has 2 to {len(LETTERS)} options, and this one {len(texts)}.")
    letters = list(LETTERS[: len(texts)])
    named = f"{', '.join(letters[:-1])} or {letters[-1]}"
    lines = [f"{letter}. {text}" for letter, text in zip(letters, texts, strict=True)]
    return "\n".join(
        [
            f"Given the following question and {_NUMBERS[len(texts) - 2]} candidate choices, "
            f"choose the best one. Your response should end with one of {named}.",
            f"Question: {question}",
            "Choices:",
            *lines,
            "Answer:\n",
        ]
    )


def letter_probe(source: str, question: str, choices: Iterable[str], answer: int) -> Probe:
    """A probe whose options are letters; question and choices are written as they are."""
    texts = list(choices)
    return Probe(source, paper_prompt(question, texts), tuple(LETTERS[: len(texts)]), answer)


def probe_of(question: Question) -> Probe:
    """A question of any set as the paper writes it; a passage stands before the question.

    Line breaks of a choice become spaces, so that its lines are not taken for other choices.
    """
    asked = f"{question.passage}\n{question.question}" if question.passage else question.question
    choices = [_SPACES.sub(" ", choice) for choice in question.options]
    return letter_probe(question.set, asked, choices, question.answer)


def text_probe(probe: Probe) -> Probe:
    """The same question with the options' own texts to be scored, after `Answer:` and a space.

    Raises:
        ConfigError: The prompt is not of the paper's format, so its choices cannot be told.
    """
    found = _PARTS.match(probe.prompt)
    texts = _choices(found["choices"]) if found else []
    if found is None or len(texts) != len(probe.options):
        raise ConfigError(
            f"The choices of the probe {probe.prompt[:60]!r} cannot be read from its prompt; "
            "score letters instead (--style letters)."
        )
    prompt = f"Question: {found['question']}\nAnswer: "
    return Probe(probe.source, prompt, tuple(texts), probe.answer)


def probe_set(
    name: str, probes: Iterable[Probe], style: Style = "letters", n_left_out: int = 0
) -> ProbeSet:
    """A set of the given probes; what was there before, or has two equal options, is left out.

    Raises:
        ConfigError: No probe is left, or a prompt has no choices to be scored by text.
    """
    found: dict[str, Probe] = {}
    for given in probes:
        probe = text_probe(given) if style == "texts" else given
        whole = len(set(probe.options)) == len(probe.options) and probe.n_words > 0
        if whole and probe.id not in found:
            found[probe.id] = probe
        else:
            n_left_out += 1
    if not found:
        raise ConfigError(f"The probe set {name} holds no question; name another with --probes.")
    return ProbeSet(name, tuple(found.values()), style, n_left_out)


def _choices(text: str) -> list[str]:
    """Choices of `A. ...` lines; a line that begins with no next letter goes on with its choice."""
    found: list[str] = []
    for line in text.split("\n"):
        if len(found) < len(LETTERS) and line.startswith(f"{LETTERS[len(found)]}. "):
            found.append(line[3:])
        elif found:
            found[-1] += f"\n{line}"
    return found
