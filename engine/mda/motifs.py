"""Motifs: what the structure of top samples is made of, without their content, as plain values.

A motif holds what its generator needs: of repeats the distances and lengths, of text the grammar
(delimiters, key-value pairs, nesting, prefixes, shapes of lines), and of both the letters, word
lengths and tokens that content is drawn from.
"""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass
from functools import cached_property
from typing import Any, cast, get_type_hints

import numpy as np
from jaxtyping import Float

from engine.errors import CacheStale
from engine.mda.structure import NUMBER, WORD


MOST_VALUES = 1024
"""Values that a distribution keeps; of equally frequent ones a fixed random draw."""


@dataclass(frozen=True)
class Distribution:
    """How often each value was seen."""

    values: tuple[Any, ...]
    """Numbers, texts, or tuples of numbers, in rising order."""
    counts: tuple[int, ...]
    """Times each was seen, 1 or more."""

    @classmethod
    def of(cls, found: Iterable[Any]) -> "Distribution":
        """The distribution of what was found; the most frequent values where there are many."""
        counted = sorted(Counter(found).items())
        ties = np.random.default_rng(0).permutation(len(counted))
        kept = sorted(range(len(counted)), key=lambda i: (-counted[i][1], ties[i]))[:MOST_VALUES]
        chosen = [counted[i] for i in sorted(kept)]
        return cls(tuple(value for value, _ in chosen), tuple(count for _, count in chosen))

    def draw(self, generator: np.random.Generator, n: int) -> list[Any]:
        """Values drawn independently, in proportion to their counts.

        Raises:
            CacheStale: there is no value to draw.
        """
        if not self.values:
            raise CacheStale("A motif has an empty distribution; extract the motifs again.")
        drawn = np.searchsorted(self._cumulative, generator.random(n), side="right")
        return [self.values[i] for i in drawn]

    def one(self, generator: np.random.Generator) -> Any:
        """One value, drawn as by `draw`."""
        return self.draw(generator, 1)[0]

    @cached_property
    def _cumulative(self) -> Float[np.ndarray, " values"]:
        """Share of the values up to each; the last is 1 exactly."""
        sums = np.cumsum(self.counts)
        return sums / sums[-1]

    def most_frequent(self, n: int) -> list[Any]:
        """The `n` values seen most often, of equally frequent ones the smaller."""
        order = sorted(range(len(self.values)), key=lambda i: (-self.counts[i], i))
        return [self.values[i] for i in order[:n]]

    @property
    def mean(self) -> float:
        """Mean of numbers; NaN of none."""
        total = sum(self.counts)
        pairs = zip(self.values, self.counts, strict=True)
        return sum(value * count for value, count in pairs) / total if total else float("nan")


@dataclass(frozen=True)
class Vocabulary:
    """What the samples of a motif are written in; shares are of characters, the rest is other."""

    letters: float
    """Share of letters."""
    digits: float
    """Share of digits."""
    punctuation: float
    """Share of ASCII punctuation."""
    whitespace: float
    """Share of spaces, tabs and line ends."""
    characters: Distribution
    """Letters of words."""
    word_lengths: Distribution
    """Letters a word."""
    number_lengths: Distribution
    """Digits a number."""
    tokens: Distribution
    """Token ids; of repeats only those that are no copy of earlier ones."""


@dataclass(frozen=True)
class Repeat:
    """Spans of tokens that stand again."""

    copies: Distribution
    """(tokens since the last copy, distance back, length), the length 0 of those to the end."""
    distances: Distribution
    """Tokens back from a copy to what it repeats."""
    segments: Distribution
    """Tokens of what repeats: the length of a copy, or the distance where that is shorter."""


@dataclass(frozen=True)
class Table:
    """Lines of equally many delimited fields."""

    delimiters: Distribution
    """Delimiters; two spaces stand for aligned columns."""
    n_fields: Distribution
    """Fields a line."""
    shapes: Distribution
    """Shapes of fields, words as `a` and numbers as `0`."""
    reuse: float
    """Share of fields that equal the one above."""


@dataclass(frozen=True)
class Pairs:
    """Keys with values."""

    openings: Distribution
    """Shapes of keys with their separator."""
    values: Distribution
    """Shapes of values."""
    ends: Distribution
    """What stands between a value and the next key."""
    reuse: float
    """Share of keys that stand earlier in the sample."""


@dataclass(frozen=True)
class Nesting:
    """Elements that open and close."""

    style: str
    """markup or latex."""
    depths: Distribution
    """Open elements at each opening one, itself included."""
    contents: Distribution
    """Words directly after an opening tag."""
    reuse: float
    """Share of opened names that stand earlier in the sample."""
    alone: float
    """Share of them that open nothing: empty elements, commands."""
    attributes: float
    """Share of elements with attributes; of commands, of those that open nothing, with a braced
    argument."""


@dataclass(frozen=True)
class Listing:
    """Lines that begin alike."""

    prefixes: Distribution
    """Bullets and first words; a number is `0`, a word stands for any."""
    words: Distribution
    """Words a line, after its prefix."""


@dataclass(frozen=True)
class Template:
    """Lines of one shape."""

    shapes: Distribution
    """Shapes, words as `a` and numbers as `0`."""
    reuse: float
    """Share of words and numbers that equal those of the line above."""


Structure = Repeat | Table | Pairs | Nesting | Listing | Template

KINDS: dict[str, type[Structure]] = {
    "repeat": Repeat,
    "table": Table,
    "key_value": Pairs,
    "markup": Nesting,
    "latex": Nesting,
    "list": Listing,
    "template": Template,
}
"""What a motif of each name holds. Code has none of its own: its names and lines repeat."""


@dataclass(frozen=True)
class Motif:
    """One kind of structure among samples."""

    name: str
    """A name of `KINDS`."""
    n_samples: int
    """Samples that show it."""
    share: float
    """Share of all samples that show it; a sample may show several motifs."""
    structure: Structure
    """What the structure is made of."""
    vocabulary: Vocabulary
    """What its samples are written in."""
    origin: str = "local"
    """local, or the name of the model that gave its structure."""

    def parameters(self) -> str:
        """Structure, vocabulary and origin as JSON."""
        values = {name: getattr(self, name) for name in ("structure", "vocabulary")}
        plain = {name: asdict(value) for name, value in values.items()}
        return json.dumps({**plain, "origin": self.origin}, ensure_ascii=False)


def read_motif(name: str, n_samples: int, share: float, parameters: str) -> Motif:
    """A motif from what `Motif.parameters` gave.

    Raises:
        CacheStale: it is no motif of this engine.
    """
    try:
        found = json.loads(parameters)
        structure = _read(KINDS[name], found["structure"])
        vocabulary = _read(Vocabulary, found["vocabulary"])
        return Motif(name, n_samples, share, structure, vocabulary, found["origin"])
    except (KeyError, TypeError, ValueError) as error:
        raise CacheStale(
            f"The motif {name!r} cannot be read ({error!r}); extract the motifs again."
        ) from error


def _read(kind: Any, value: Any) -> Any:
    """A dataclass, tuples for lists, from JSON."""
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        read = {f.name: _read(hints[f.name], value[f.name]) for f in fields(kind)}
        return cast(Any, kind)(**read)
    return tuple(_read(None, inner) for inner in value) if isinstance(value, list) else value


def vocabulary(texts: Sequence[str], tokens: Iterable[int]) -> Vocabulary:
    """The vocabulary of texts, and of tokens that belong to them."""
    kinds = Counter(_class(c) for text in texts for c in text)
    total = max(1, sum(kinds.values()))
    words = [word for text in texts for word in WORD.findall(text)]
    numbers = [run for text in texts for run in NUMBER.findall(text)]
    return Vocabulary(
        kinds["letters"] / total,
        kinds["digits"] / total,
        kinds["punctuation"] / total,
        kinds["whitespace"] / total,
        Distribution.of(c for word in words for c in word),
        Distribution.of(len(word) for word in words),
        Distribution.of(len(run) for run in numbers),
        Distribution.of(tokens),
    )


def _class(character: str) -> str:
    if character.isalpha():
        return "letters"
    if character.isdecimal():
        return "digits"
    if character.isspace():
        return "whitespace"
    return "punctuation" if character.isascii() and character.isprintable() else "other"
