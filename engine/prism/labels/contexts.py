"""What can be said of a position: tokens at it and before it, the prediction, and the structure.

Structure (brackets, quotation, repetition ...) is read over a window from its start to the
position, so a predicate never looks ahead; what follows is represented by the model's own most
probable next token.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from jaxtyping import Bool, Int

from engine.prism.labels import words
from engine.prism.labels.vocabulary import Vocabulary


STRUCTURES: tuple[tuple[str, str], ...] = (
    ("at the start of a line", words.CATEGORY_LAYOUT),
    ("in an indented line", words.CATEGORY_LAYOUT),
    ("at the end of a sentence", words.CATEGORY_PUNCTUATION),
    ("inside quotation marks", words.CATEGORY_PUNCTUATION),
    ("inside brackets", words.CATEGORY_PUNCTUATION),
    ("inside a tag", words.CATEGORY_MARKUP),
    ("inside a link or path", words.CATEGORY_MARKUP),
    ("inside a word", words.CATEGORY_MORPHOLOGY),
    ("inside a number", words.CATEGORY_NUMBERS),
    ("on a repeated pair of tokens", words.CATEGORY_REPETITION),
    ("predicting what followed before", words.CATEGORY_REPETITION),
    ("predicting a token seen before", words.CATEGORY_REPETITION),
    ("near the start of a document", words.CATEGORY_LAYOUT),
)
"""Phrase and category of each structural feature; the order of the columns of `structure`."""

SLOTS = ("predicted", "current", "previous")
"""Tokens a feature may speak of; the state sits on `current` and predicts the next."""

NEAR_START = 8
"""Positions that count as the start of a document."""

LINK_REACH = 24
"""Tokens a link or tag may reach before it no longer counts as open."""


@dataclass(frozen=True)
class Contexts:
    """Contexts of a set of positions; every field has one row per position."""

    document: Int[np.ndarray, " n"]
    """Document of the position."""
    position: Int[np.ndarray, " n"]
    """Token within the document."""
    predicted: Int[np.ndarray, " n"]
    """Most probable next token."""
    current: Int[np.ndarray, " n"]
    """Token at the position."""
    previous: Int[np.ndarray, " n"]
    """Token before it; -1 at the start of a window."""
    domain: Int[np.ndarray, " n"]
    """Number of the document's domain."""
    structure: Bool[np.ndarray, "n structures"]
    """Columns as in `STRUCTURES`."""

    def __len__(self) -> int:
        return len(self.document)

    def take(self, rows: Any) -> "Contexts":
        """The contexts of some rows, by index or mask."""
        return Contexts(**{f.name: getattr(self, f.name)[rows] for f in fields(self)})

    @classmethod
    def concatenate(cls, parts: Sequence["Contexts"]) -> "Contexts":
        """Several sets in a row."""
        return cls(
            **{f.name: np.concatenate([getattr(p, f.name) for p in parts]) for f in fields(cls)}
        )


@dataclass(frozen=True)
class TokenMarks:
    """Per token of the vocabulary, what the structural features count."""

    line_break: Bool[np.ndarray, " vocab"]
    blank_line: Bool[np.ndarray, " vocab"]
    indent: Bool[np.ndarray, " vocab"]
    blank: Bool[np.ndarray, " vocab"]
    stop: Bool[np.ndarray, " vocab"]
    closer: Bool[np.ndarray, " vocab"]
    letters: Bool[np.ndarray, " vocab"]
    ends_in_letter: Bool[np.ndarray, " vocab"]
    digits: Bool[np.ndarray, " vocab"]
    ends_in_digit: Bool[np.ndarray, " vocab"]
    tag_open: Bool[np.ndarray, " vocab"]
    tag_close: Bool[np.ndarray, " vocab"]
    link: Bool[np.ndarray, " vocab"]
    quotes: Int[np.ndarray, " vocab"]
    brackets: Int[np.ndarray, " vocab"]

    @classmethod
    def of(cls, vocabulary: Vocabulary) -> "TokenMarks":
        """Read the marks off the tokens' texts."""
        texts = vocabulary.texts

        def flag(test: Any) -> np.ndarray:
            return np.fromiter((bool(test(t)) for t in texts), bool, len(texts))

        def count(test: Any) -> np.ndarray:
            return np.fromiter((test(t) for t in texts), np.int32, len(texts))

        return cls(
            line_break=flag(lambda t: "\n" in t),
            blank_line=flag(lambda t: t.count("\n") > 1),
            indent=flag(lambda t: t.endswith(("  ", "\t")) or (t.isspace() and len(t) > 1)),
            blank=flag(lambda t: t[:1].isspace()),
            stop=flag(lambda t: t.strip("\"'”’) ")[-1:] in {".", "!", "?"} and bool(t.strip())),
            closer=flag(lambda t: bool(t.strip()) and not t.strip("\"'”’)")),
            letters=flag(lambda t: t[:1].isalpha()),
            ends_in_letter=flag(lambda t: t[-1:].isalpha()),
            digits=flag(lambda t: t.strip().isdigit()),
            ends_in_digit=flag(lambda t: t[-1:].isdigit()),
            tag_open=flag(lambda t: "<" in t and ">" not in t.split("<")[-1]),
            tag_close=flag(lambda t: ">" in t and "<" not in t.split(">")[-1]),
            link=flag(lambda t: "://" in t or "www" in t or t.strip() in {"http", "https"}),
            quotes=count(lambda t: t.count('"') + t.count("“") + t.count("”")),
            brackets=count(lambda t: sum(t.count(c) for c in "([") - sum(t.count(c) for c in ")]")),
        )


def window_contexts(
    vocabulary: Vocabulary,
    marks: TokenMarks,
    tokens: Int[np.ndarray, " n"],
    predicted: Int[np.ndarray, " n"],
    document: Int[np.ndarray, " n"],
    position: Int[np.ndarray, " n"],
    domain: Int[np.ndarray, " n"],
    window: Int[np.ndarray, " n"],
) -> Contexts:
    """Contexts of all positions of consecutive windows.

    Args:
        vocabulary: Token texts.
        marks: Their structural marks.
        tokens: Tokens of the windows, one window after another.
        predicted: The model's most probable next token at each.
        document: Their documents.
        position: Their positions.
        domain: Number of each one's domain.
        window: Number of each one's window, rising.
    """
    index = np.arange(len(tokens))
    start = index[np.searchsorted(window, window, side="left")] if len(tokens) else index
    previous = np.where(index > start, np.roll(tokens, 1), -1)
    structure = np.stack(
        [
            *_line_structure(marks, tokens, start, index),
            *_span_structure(marks, tokens, start, index),
            *_word_structure(marks, tokens, previous, predicted),
            *_repetition(tokens, predicted, window, start, len(vocabulary)),
            position < NEAR_START,
        ],
        axis=1,
    )
    return Contexts(document, position, predicted, tokens, previous, domain, structure)


def _last(flags: np.ndarray, start: np.ndarray, index: np.ndarray) -> np.ndarray:
    """Index of the latest flagged token up to each token, within its window; -1 where none."""
    latest = np.maximum.accumulate(np.where(flags, index, -1))
    return np.where(latest >= start, latest, -1)


def _since(counts: np.ndarray, origin: np.ndarray) -> np.ndarray:
    """Sum of `counts` after `origin` up to each token."""
    total = np.cumsum(counts)
    return total - np.where(origin >= 0, total[np.maximum(origin, 0)], 0)


def _line_structure(
    marks: TokenMarks, tokens: np.ndarray, start: np.ndarray, index: np.ndarray
) -> list[np.ndarray]:
    """At a line's start, in an indented line, at a sentence's end."""
    breaks = marks.line_break[tokens]
    line = _last(breaks, start, index)
    after = np.minimum(line + 1, len(tokens) - 1)
    in_line = line >= 0
    indented = in_line & (
        marks.indent[tokens[np.maximum(line, 0)]] | ((after <= index) & marks.indent[tokens[after]])
    )
    stop = marks.stop[tokens]
    before = np.where(index > start, np.roll(stop, 1), False)
    return [breaks, indented & ~breaks, stop | (marks.closer[tokens] & before)]


def _span_structure(
    marks: TokenMarks, tokens: np.ndarray, start: np.ndarray, index: np.ndarray
) -> list[np.ndarray]:
    """Inside quotation marks, brackets, a tag, a link."""
    paragraph = np.maximum(_last(marks.blank_line[tokens], start, index), start - 1)
    quoted = _since(marks.quotes[tokens], paragraph) % 2 == 1
    bracketed = _since(marks.brackets[tokens], paragraph) > 0
    opened = _last(marks.tag_open[tokens], start, index)
    closed = _last(marks.tag_close[tokens], start, index)
    tagged = (opened >= 0) & (opened > closed) & (index - opened < LINK_REACH)
    linked = _last(marks.link[tokens], start, index)
    blank = _last(marks.blank[tokens], start, index)
    in_link = (linked >= 0) & (blank <= linked) & (index - linked < LINK_REACH)
    return [quoted, bracketed, tagged, in_link]


def _word_structure(
    marks: TokenMarks, tokens: np.ndarray, previous: np.ndarray, predicted: np.ndarray
) -> list[np.ndarray]:
    """Inside a word (the prediction goes on with it), inside a number."""
    in_word = marks.ends_in_letter[tokens] & marks.letters[predicted]
    del previous
    return [in_word, marks.ends_in_digit[tokens] & marks.digits[predicted]]


def _repetition(
    tokens: np.ndarray, predicted: np.ndarray, window: np.ndarray, start: np.ndarray, size: int
) -> list[np.ndarray]:
    """Pair seen before in the window; its follower predicted; the predicted token seen before."""
    index = np.arange(len(tokens))
    pair = np.where(index > start, np.roll(tokens, 1), size).astype(np.int64) * (size + 1) + tokens
    earlier = _earlier(window, pair)
    repeated = (earlier >= 0) & (index > start)
    follower = tokens[np.minimum(np.maximum(earlier, 0) + 1, len(tokens) - 1)]
    seen = _earlier_query(window, tokens, predicted)
    return [repeated, repeated & (follower == predicted), seen]


def _earlier(window: np.ndarray, key: np.ndarray) -> np.ndarray:
    """Index of the latest earlier row of the same window with the same key; -1 where none."""
    order = np.lexsort((np.arange(len(key)), key, window))
    same = (window[order][1:] == window[order][:-1]) & (key[order][1:] == key[order][:-1])
    found = np.full(len(key), -1, np.int64)
    found[order[1:]] = np.where(same, order[:-1], -1)
    return found


def _earlier_query(window: np.ndarray, key: np.ndarray, query: np.ndarray) -> np.ndarray:
    """Whether `query` equals the key of an earlier row, or of this one, of the same window."""
    n = len(key)
    both = np.concatenate([key, query])
    rows = np.concatenate([np.arange(n), np.arange(n)])
    is_query = np.repeat([0, 1], n)
    windows = np.concatenate([window, window])
    order = np.lexsort((is_query, rows, both, windows))
    groups = np.concatenate(
        [
            [True],
            (windows[order][1:] != windows[order][:-1]) | (both[order][1:] != both[order][:-1]),
        ]
    )
    first = np.maximum.accumulate(np.where(groups, np.arange(2 * n), 0))
    keys_before = np.cumsum(is_query[order] == 0)
    base = np.where(first > 0, keys_before[np.maximum(first - 1, 0)], 0)
    seen = np.empty(2 * n, bool)
    seen[order] = keys_before - base > 0
    return seen[n:]


@dataclass(frozen=True)
class FeatureSpace:
    """All general features: attributes of three tokens, structures and domains."""

    vocabulary: Vocabulary
    """Token attributes."""
    domains: tuple[str, ...]
    """Names of the domains by number."""

    def __len__(self) -> int:
        return 3 * len(self.vocabulary.attributes) + len(STRUCTURES) + len(self.domains)

    def matrix(self, contexts: Contexts) -> Bool[np.ndarray, "features n"]:
        """Every feature at every context, one row a feature."""
        has = self.vocabulary.has
        absent = (contexts.previous < 0)[:, None]
        return np.concatenate(
            [
                has[contexts.predicted],
                has[contexts.current],
                has[contexts.previous] & ~absent,
                contexts.structure,
                contexts.domain[:, None] == np.arange(len(self.domains)),
            ],
            axis=1,
        ).T

    def describe(self, feature: int) -> tuple[str, str, str]:
        """Slot ("predicted", "current", "previous", "structure" or "domain"), phrase, category."""
        attributes = self.vocabulary.attributes
        slot, column = divmod(feature, len(attributes))
        if slot < len(SLOTS):
            attribute = attributes[column]
            return SLOTS[slot], attribute.phrase, attribute.category
        column = feature - len(SLOTS) * len(attributes)
        if column < len(STRUCTURES):
            phrase, category = STRUCTURES[column]
            return "structure", phrase, category
        domain = self.domains[column - len(STRUCTURES)]
        category = words.CATEGORY_UNWANTED if domain == "unwanted" else words.topic_category(domain)
        return "domain", domain, category
