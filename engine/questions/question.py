"""One multiple-choice question, and a set of them without duplicates."""

import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from engine.errors import ConfigError
from engine.provenance import fingerprint


logger = logging.getLogger(__name__)
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_LABEL = re.compile(r"^\s*([A-Z])[.)]\s*", re.MULTILINE)
_QUESTION_KEYS = ("question", "question_stem", "goal")
_PASSAGE_KEYS = ("passage", "context")
_OPTION_KEYS = ("options", "choices")
_ANSWER_KEYS = ("answer", "answerKey", "label")


class MalformedRowError(ValueError):
    """A row that is no answered multiple-choice question; the text says why."""


@dataclass(frozen=True)
class Question:
    """A question with its options, of which one is right."""

    id: str
    """Hash of text, options and answer: 16 hex digits, the same wherever the set is read."""
    set: str
    """Name of the set."""
    question: str
    """The question, without surrounding space."""
    passage: str
    """Text the question is about; empty where there is none."""
    options: tuple[str, ...]
    """Texts of the options, two or more, all different."""
    answer: int
    """Right option, counted from 0."""
    number: int = 0
    """Place in its set, counted from 0."""

    @property
    def prompt(self) -> str:
        """What a model reads before an option: passage, question and the word `Answer:`."""
        passage = f"{self.passage}\n" if self.passage else ""
        return f"{passage}Question: {self.question}\nAnswer:"


@dataclass(frozen=True)
class QuestionSet:
    """The questions of one set, and what of it was left out."""

    name: str
    questions: tuple[Question, ...]
    n_malformed: int = 0
    """Rows that are no answered question."""
    n_duplicates: int = 0
    """Rows whose text and options were there before."""

    @property
    def chance(self) -> float:
        """Accuracy expected of guessing: the mean over questions of 1 over options."""
        return sum(1 / len(q.options) for q in self.questions) / max(1, len(self.questions))

    def __len__(self) -> int:
        return len(self.questions)

    def __iter__(self) -> Iterator[Question]:
        return iter(self.questions)


def question_set(name: str, rows: Iterable[Any]) -> QuestionSet:
    """A set from rows of any layout that `question_of` reads; what it does not read is counted.

    A row whose question, passage and options were there before is a duplicate, whatever its answer.

    Raises:
        ConfigError: No row is an answered question.
    """
    found: dict[str, Question] = {}
    malformed = duplicates = total = 0
    reason = ""
    for total, row in enumerate(rows, start=1):
        try:
            question = question_of(name, row)
        except MalformedRowError as error:
            malformed += 1
            reason = reason or f"row {total}: {error}"
            continue
        key = fingerprint([question.question, question.passage, question.options])
        duplicates += key in found
        found.setdefault(key, replace(question, number=len(found)))
    if not found:
        why = f" The first: {reason}." if reason else ""
        raise ConfigError(
            f"The question set {name} holds no answered multiple-choice question among its "
            f"{total:,} rows.{why} A row needs question, options and answer."
        )
    if malformed or duplicates:
        logger.info(
            "%s: %d questions; left out: %d malformed rows, %d duplicates%s",
            name,
            len(found),
            malformed,
            duplicates,
            f" (first malformed: {reason})" if reason else "",
        )
    return QuestionSet(name, tuple(found.values()), malformed, duplicates)


def question_of(name: str, row: Any) -> Question:
    """A question from a row in one of the layouts in use.

    Options are a list, a text with a line `A. ...` each, an object of labels and texts, or columns
    `answerA`, `answerB`, ...; the answer is an option's text, its label, its letter or, as a whole
    number, its place counted from 0.

    Raises:
        MalformedRowError: Something is missing, or the answer is not among the options.
    """
    if not isinstance(row, Mapping):
        raise MalformedRowError("it is no object")
    question = _text(row, _QUESTION_KEYS)
    if not question:
        raise MalformedRowError("it has no question")
    labels, options = _options(row)
    if len(options) < 2:
        raise MalformedRowError(f"it has {len(options)} options, and a choice needs 2 or more")
    if len(set(options)) < len(options) or not all(options):
        raise MalformedRowError("two of its options are the same or one is empty")
    passage = _text(row, _PASSAGE_KEYS)
    answer = _answer(row, labels, options)
    mark = fingerprint([question, passage, options, answer])
    return Question(mark, name, question, passage, tuple(options), answer)


def choose_items(found: QuestionSet, items: int | None) -> QuestionSet:
    """The set itself, or `items` of its questions in an order that their hashes fix.

    Raises:
        ConfigError: `items` is not positive.
    """
    if items is None or items >= len(found):
        return found
    if items < 1:
        raise ConfigError(f"--items is {items}; it must be 1 or more.")
    chosen = {q.id for q in sorted(found, key=lambda q: q.id)[:items]}
    kept = tuple(q for q in found if q.id in chosen)
    return replace(found, questions=kept)


def _text(row: Mapping[str, Any], keys: tuple[str, ...]) -> str:
    value = next((row[key] for key in keys if isinstance(row.get(key), str)), "")
    return value.strip()


def _options(row: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Labels and texts of the options; labels are letters where the row names none."""
    given = next((row[key] for key in _OPTION_KEYS if key in row), None)
    if given is None:
        columns = [f"answer{letter}" for letter in LETTERS if f"answer{letter}" in row]
        return list(LETTERS[: len(columns)]), [str(row[column]).strip() for column in columns]
    if isinstance(given, str):
        return _lettered(given)
    if isinstance(given, Mapping) and {"label", "text"} <= given.keys():
        return [str(x) for x in given["label"]], [str(x).strip() for x in given["text"]]
    if isinstance(given, Mapping):
        return [str(x) for x in given], [str(x).strip() for x in given.values()]
    if isinstance(given, list | tuple):
        return list(LETTERS[: len(given)]), [str(x).strip() for x in given]
    raise MalformedRowError("its options are neither a list nor a text of lettered lines")


def _lettered(text: str) -> tuple[list[str], list[str]]:
    """Options of `A. ...` lines in the order of letters; an option may run over several lines."""
    starts: list[re.Match[str]] = []
    for match in _LABEL.finditer(text):
        if match[1] == LETTERS[len(starts) % len(LETTERS)]:
            starts.append(match)
    ends = [match.start() for match in starts[1:]] + [len(text)]
    options = [text[m.end() : end].strip() for m, end in zip(starts, ends, strict=False)]
    return [match[1] for match in starts], options


def _answer(row: Mapping[str, Any], labels: list[str], options: list[str]) -> int:
    given = next((row[key] for key in _ANSWER_KEYS if row.get(key) is not None), None)
    if isinstance(given, bool) or not isinstance(given, int | str):
        raise MalformedRowError("it has no answer")
    if isinstance(given, int):
        if 0 <= given < len(options):
            return given
        raise MalformedRowError(f"its answer {given} is no place among its options")
    text = given.strip()
    bare = _LABEL.sub("", text, count=1).strip()
    for known, asked in ((options, text), (labels, text), (options, bare)):
        if asked in known:
            return known.index(asked)
    numbers = [str(number) for number in range(1, len(options) + 1)]
    if text in numbers and "answerA" in row:  # social_i_qa counts its answers from 1
        return numbers.index(text)
    raise MalformedRowError(f"its answer {text[:60]!r} is not among its options")
