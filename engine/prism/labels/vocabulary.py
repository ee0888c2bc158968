"""What can be said of a token by its text alone: one boolean attribute a column."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from jaxtyping import Bool
from tokenizers import Tokenizer

from engine.prism.labels import words


@dataclass(frozen=True)
class Attribute:
    """One yes-or-no property of a token's text."""

    phrase: str
    """Noun phrase that names a token with it: "a preposition"."""
    category: str
    """Broad category of a label led by it."""


@dataclass(frozen=True)
class Vocabulary:
    """Texts of all tokens and their attributes."""

    texts: tuple[str, ...]
    """Decoded text of each token; spaces and line breaks are kept."""
    attributes: tuple[Attribute, ...]
    """What the columns of `has` mean."""
    has: Bool[np.ndarray, "vocab attributes"]
    """True where a token has an attribute."""

    @classmethod
    def of(cls, texts: Iterable[str]) -> "Vocabulary":
        """Describe a list of token texts."""
        kept = tuple(texts)
        columns, attributes = [], []
        for attribute, test in attribute_tests():
            columns.append(np.fromiter((test(text) for text in kept), bool, len(kept)))
            attributes.append(attribute)
        return cls(kept, tuple(attributes), np.stack(columns, axis=1))

    @classmethod
    def load(cls, tokenizer: Path, size: int = 0) -> "Vocabulary":
        """Read a `tokenizer.json`; ids up to the model's `size` that it lacks have no text."""
        texts = token_texts(Tokenizer.from_file(str(tokenizer)))
        return cls.of([*texts, *[""] * (size - len(texts))])

    def __len__(self) -> int:
        return len(self.texts)

    def category(self, token: int) -> str:
        """Category of a label that names this very token."""
        order = np.flatnonzero(self.has[token])
        return self.attributes[order[0]].category if len(order) else words.CATEGORY_VOCABULARY


def token_texts(tokenizer: Tokenizer) -> list[str]:
    """Text of every token id: byte-level pieces decoded, sentence-piece blanks made spaces."""
    size = tokenizer.get_vocab_size(with_added_tokens=True)
    return [piece_text(tokenizer.id_to_token(i) or "") for i in range(size)]


def piece_text(piece: str) -> str:
    """Readable text of one vocabulary entry."""
    table = byte_of_character()
    if piece and all(character in table for character in piece):
        return bytes(table[c] for c in piece).decode("utf-8", errors="replace")
    return piece.replace("▁", " ")


@cache
def byte_of_character() -> dict[str, int]:
    """The byte each character of a byte-level vocabulary stands for (GPT-2's table, inverted)."""
    kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
    table = {chr(byte): byte for byte in kept}
    others = [byte for byte in range(256) if byte not in set(kept)]
    table.update({chr(256 + i): byte for i, byte in enumerate(others)})
    return table


Test = Callable[[str], bool]


def attribute_tests() -> list[tuple[Attribute, Test]]:
    """All attributes with their tests, the most telling first."""
    return [*_word_tests(), *_sign_tests(), *_shape_tests(), *_suffix_tests()]


def starts_word(text: str) -> bool:
    """Whether a token opens a word by itself: a blank or line break, then a letter."""
    return len(text) > 1 and text[0].isspace() and text.lstrip()[:1].isalpha()


def is_piece(text: str) -> bool:
    """Whether a token is letters with no blank before them."""
    return text.isalpha()


def _in_class(members: frozenset[str]) -> Test:
    def test(text: str) -> bool:
        word = text.strip()
        opens = starts_word(text) or (word[:1].isupper() and len(word) > 1)
        return opens and word.lower() in members

    return test


def _word_tests() -> list[tuple[Attribute, Test]]:
    tests: list[tuple[Attribute, Test]] = [
        (Attribute("a code keyword", words.CATEGORY_CODE), lambda t: t.strip() in words.CODE_ONLY)
    ]
    for phrase, category, members in words.WORD_CLASSES:
        tests.append((Attribute(phrase, category), _in_class(members)))
    return tests


def _matches(pattern: str) -> Test:
    compiled = re.compile(pattern)
    return lambda text: compiled.search(text) is not None


_SIGNS: tuple[tuple[str, str, str], ...] = (
    ("a year", words.CATEGORY_NUMBERS, r"^\s?(1[4-9]|20)\d\d$"),
    ("a digit", words.CATEGORY_NUMBERS, r"^\s?\d+$"),
    ("a blank line", words.CATEGORY_LAYOUT, r"\n[ \t]*\r?\n"),
    ("a line break", words.CATEGORY_LAYOUT, r"\n"),
    ("indentation", words.CATEGORY_LAYOUT, r"^\n?([ \t]{2,}|\t)$"),
    ("a lone space", words.CATEGORY_LAYOUT, r"^ $"),
    ("the end of the text", words.CATEGORY_LAYOUT, r"^(<\|.*\|>|</?s>|<eos>)$"),
    ("a piece of a link", words.CATEGORY_MARKUP, r"://|^\s?https?|www|^\.(com|org|net|html)|\.com"),
    ("a tag bracket", words.CATEGORY_MARKUP, r"</?$|^\s?</?|/?>$|&[lg]t;|&amp;"),
    ("a backslash command", words.CATEGORY_MARKUP, r"\\"),
    ("a dollar sign", words.CATEGORY_MARKUP, r"\$"),
    ("a brace", words.CATEGORY_CODE, r"[{}]"),
    ("a square bracket", words.CATEGORY_CODE, r"[\[\]]"),
    ("an underscore", words.CATEGORY_CODE, r"_"),
    ("a comment or heading sign", words.CATEGORY_CODE, r"#|^\s?//|/\*|\*/|\*\*|--+$|==+"),
    ("an operator", words.CATEGORY_CODE, r"^\s?([=+\-*/%<>!&|^~]=|=|->|=>|::|&&|\|\||\+\+|\+)$"),
    ("an empty call", words.CATEGORY_CODE, r"\(\)"),
    ("an apostrophe", words.CATEGORY_PUNCTUATION, r"^\s?['’]\w{0,2}$|^['’]$"),
    ("a full stop", words.CATEGORY_PUNCTUATION, r"^\.[\"'”’)]?\s?$"),
    ("a question or exclamation mark", words.CATEGORY_PUNCTUATION, r"[?!]"),
    ("a comma", words.CATEGORY_PUNCTUATION, r"^,[\"'”]?$"),
    ("a semicolon or colon", words.CATEGORY_PUNCTUATION, r"^[;:]$"),
    ("a quotation mark", words.CATEGORY_PUNCTUATION, r"[\"“”]|``|''"),
    ("an opening bracket", words.CATEGORY_PUNCTUATION, r"^\s?[(]$"),
    ("a closing bracket", words.CATEGORY_PUNCTUATION, r"^\)"),
    ("a dash or hyphen", words.CATEGORY_PUNCTUATION, r"^\s?([-–—]+)\s?$"),
    ("a slash", words.CATEGORY_PUNCTUATION, r"^\s?/$"),
    ("punctuation", words.CATEGORY_PUNCTUATION, r"^\s?[^\w\s]+\s?$"),
)


def _sign_tests() -> list[tuple[Attribute, Test]]:
    return [(Attribute(name, kind), _matches(pattern)) for name, kind, pattern in _SIGNS]


def _is_function_word(text: str) -> bool:
    word = text.strip().lower()
    return any(
        word in members
        for _, category, members in words.WORD_CLASSES
        if category == words.CATEGORY_GRAMMAR
    )


def _shape_tests() -> list[tuple[Attribute, Test]]:
    def capitals(text: str) -> bool:
        word = text.strip()
        return len(word) > 1 and word.isalpha() and word.isupper()

    def capitalised(text: str) -> bool:
        word = text.strip()
        return word.isalpha() and word[:1].isupper() and not word[1:].isupper()

    def content(text: str) -> bool:
        word = text.strip()
        return starts_word(text) and word.isalpha() and len(word) > 3 and word.islower()

    def foreign(text: str) -> bool:
        return any(ord(c) > 127 and c not in "“”‘’–—…©" for c in text)

    return [
        (Attribute("capitals", words.CATEGORY_NAMES), capitals),
        (Attribute("a capitalised word", words.CATEGORY_NAMES), capitalised),
        (Attribute("a character beyond ASCII", words.CATEGORY_MORPHOLOGY), foreign),
        (
            Attribute("a single letter", words.CATEGORY_MORPHOLOGY),
            lambda text: len(text.strip()) == 1 and text.strip().isalpha(),
        ),
        (Attribute("a word piece", words.CATEGORY_MORPHOLOGY), is_piece),
        (
            Attribute("a content word", words.CATEGORY_VOCABULARY),
            lambda text: content(text) and not _is_function_word(text),
        ),
        (
            Attribute("a lower-case word", words.CATEGORY_VOCABULARY),
            lambda text: starts_word(text) and text.strip().islower(),
        ),
    ]


def _suffix_tests() -> list[tuple[Attribute, Test]]:
    def ends(endings: tuple[str, ...]) -> Test:
        def test(text: str) -> bool:
            word = text.strip()
            long_enough = is_piece(text) or len(word) > 3
            return word.isalpha() and long_enough and word.lower().endswith(endings)

        return test

    return [
        (Attribute(f"the ending {name}", words.CATEGORY_MORPHOLOGY), ends(endings))
        for name, endings in words.SUFFIXES
    ]
