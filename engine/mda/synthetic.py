"""Synthetic samples from motifs, and controls with the same tokens and no structure.

A row depends on the motifs, the seed and its number alone. Repeats are made of tokens, with any
vocabulary; other motifs are written as text, whose words and numbers are invented from letters,
and tokenised by a function of the caller's. The control of a row is the row in an order drawn at
random: the same tokens as often, so what differs is the structure and nothing else.
"""

import re
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from jaxtyping import Int

from engine.config import require
from engine.errors import ConfigError
from engine.mda.motifs import (
    Distribution,
    Listing,
    Motif,
    Nesting,
    Pairs,
    Repeat,
    Table,
    Template,
    Vocabulary,
)


Tokenise = Callable[[str], Sequence[int]]
"""Token ids of a text, nothing added around it."""

_CHARACTERS_A_TOKEN = 4
_MOST_CHARACTERS_A_TOKEN = 64


def generate(
    motifs: Sequence[Motif],
    n: int,
    context: int,
    seed: int,
    tokenise: Tokenise | None = None,
) -> Int[np.ndarray, "n {context}+1"]:
    """Rows that show the motifs, each row one motif, drawn in proportion to their shares.

    Args:
        motifs: as `extract` found them, or a choice of them.
        n: rows.
        context: tokens a row predicts; rows hold one more.
        seed: seed of every draw.
        tokenise: needed by every motif but `repeat`.

    Raises:
        ConfigError: there is no motif, or one needs the tokeniser that was not given.
    """
    require(len(motifs) > 0, "There is no motif to make samples from; extract motifs first.")
    textual = [motif.name for motif in motifs if motif.name != "repeat"]
    require(
        tokenise is not None or not textual,
        f"The motifs {', '.join(textual)} are written as text; give a tokeniser with them.",
    )
    shares = np.array([motif.share for motif in motifs], float)
    rows = np.empty((n, context + 1), np.int64)
    for number in range(n):
        generator = np.random.default_rng((seed, 0, number))
        motif = motifs[int(generator.choice(len(motifs), p=shares / shares.sum()))]
        if isinstance(motif.structure, Repeat):
            tokens = repeated_row(motif.structure, motif.vocabulary, context + 1, generator)
        else:
            assert tokenise is not None
            tokens = text_row(motif, context + 1, generator, tokenise)
        rows[number] = tokens
    return rows


def control(
    motifs: Sequence[Motif],
    n: int,
    context: int,
    seed: int,
    tokenise: Tokenise | None = None,
) -> Int[np.ndarray, "n {context}+1"]:
    """The rows of `generate` for the same arguments, the tokens of each shuffled within it."""
    rows = generate(motifs, n, context, seed, tokenise)
    for number, row in enumerate(rows):
        np.random.default_rng((seed, 1, number)).shuffle(row)
    return rows


def repeated_row(
    repeat: Repeat, vocabulary: Vocabulary, length: int, generator: np.random.Generator
) -> Int[np.ndarray, " length"]:
    """New tokens and copies of earlier ones in turn, as far apart and as long as was seen."""
    row = np.empty(length, np.int64)
    copies = np.array(repeat.copies.values, np.int64)
    counts = np.array(repeat.copies.counts, float)
    done = 0
    while done < length:
        # a copy may only reach back to where the row begins
        weights = counts * (copies[:, 1] <= done + copies[:, 0])
        at = int(generator.choice(len(copies), p=weights / weights.sum()))
        new, distance, copied = (int(value) for value in copies[at])
        stop = min(length, done + new)
        row[done:stop] = vocabulary.tokens.draw(generator, stop - done)
        end = length if copied == 0 else min(length, stop + copied)
        for position in range(stop, end):
            row[position] = row[position - distance]
        done = end
    return row


def text_row(
    motif: Motif, length: int, generator: np.random.Generator, tokenise: Tokenise
) -> Int[np.ndarray, " length"]:
    """The first tokens of an endless text with the motif."""
    pieces = text_pieces(motif, generator)
    text, wanted = "", length
    while True:
        while len(text) < wanted:
            text += next(pieces)
        tokens = tokenise(text)
        if len(tokens) > length or len(text) > _MOST_CHARACTERS_A_TOKEN * length:
            break
        wanted = len(text) + _CHARACTERS_A_TOKEN * length
    require(
        len(tokens) >= length,
        f"{len(text)} characters of the motif {motif.name} give {len(tokens)} tokens, fewer than "
        f"the {length} wanted; the tokeniser leaves text out.",
    )
    return np.asarray(tokens[:length], np.int64)


def text_pieces(motif: Motif, generator: np.random.Generator) -> Iterator[str]:
    """Pieces of an endless text with the motif; together they are the text."""
    write = Writer(motif.vocabulary, generator)
    match motif.structure:
        case Table():
            return _table(motif.structure, write)
        case Pairs():
            return _pairs(motif.structure, write)
        case Nesting(style="latex"):
            return _latex(motif.structure, write)
        case Nesting():
            return _markup(motif.structure, write)
        case Listing():
            return _list(motif.structure, write)
        case Template():
            return _template(motif.structure, write)
        case Repeat():
            raise ConfigError("A repeat is made of tokens and is not written as text.")


class Writer:
    """Invents words and numbers in the letters and lengths of a vocabulary."""

    def __init__(self, vocabulary: Vocabulary, generator: np.random.Generator) -> None:
        self.generator = generator
        self._vocabulary = vocabulary

    def word(self) -> str:
        """A word; an `x` where the samples have no letters."""
        vocabulary = self._vocabulary
        if not vocabulary.characters.values:
            return "x"
        length = vocabulary.word_lengths.one(self.generator)
        return "".join(vocabulary.characters.draw(self.generator, length))

    def number(self) -> str:
        """A number, as many digits as was seen; one digit where the samples have none."""
        lengths = self._vocabulary.number_lengths
        length = lengths.one(self.generator) if lengths.values else 1
        return "".join(str(digit) for digit in self.generator.integers(0, 10, length))

    def slot(self, kind: str) -> str:
        """A word for `a`, a number for `0`."""
        return self.word() if kind == "a" else self.number()

    def fill(self, shape: str) -> str:
        """A text of a shape."""
        return re.sub("[a0]", lambda found: self.slot(found.group()), shape)

    def words(self, count: int) -> str:
        """Words with spaces between."""
        return " ".join(self.word() for _ in range(count))

    def one(self, choices: Distribution) -> str:
        """A value of a distribution."""
        return choices.one(self.generator)

    def chance(self, share: float) -> bool:
        """True in this share of all draws."""
        return bool(self.generator.random() < share)

    def identifier(self) -> str:
        """A word of two ASCII letters or more, which may name a tag or a key."""
        word = "".join(c for c in self.word() if c.isascii())
        return word if len(word) > 1 else f"x{word or 'x'}"

    def name(self, known: list[str], reuse: float, shape: str = "a") -> str:
        """A known name in a share of all draws, else a new one, which is known from then on."""
        if known and self.chance(reuse):
            return known[int(self.generator.integers(len(known)))]
        parts = {"a": self.identifier, "0": self.number}
        known.append(re.sub("[a0]", lambda found: parts[found.group()](), shape))
        return known[-1]


def _table(table: Table, write: Writer) -> Iterator[str]:
    """One delimiter, one number of fields and one shape a column; a field may equal that above."""
    delimiter = write.one(table.delimiters)
    shapes = table.shapes.draw(write.generator, table.n_fields.one(write.generator))
    filled = [shape for shape in table.shapes.values if shape] or ["a"]
    shapes = [shape or filled[0] for shape in shapes]
    above = [write.fill(shape) for shape in shapes]
    widths = [2 * len(cell) + 2 for cell in above]
    while True:
        if delimiter == "  ":
            padded = zip(above, widths, strict=True)
            yield "  ".join(cell.ljust(width) for cell, width in padded).rstrip() + "\n"
        else:
            yield delimiter.join(above) + "\n"
        above = [
            cell if write.chance(table.reuse) else write.fill(shape)
            for cell, shape in zip(above, shapes, strict=True)
        ]


def _pairs(pairs: Pairs, write: Writer) -> Iterator[str]:
    """One way to write keys and one way to end values; keys come again as often as was seen."""
    opening = write.one(pairs.openings)
    end = write.one(pairs.ends) if pairs.ends.values else "\n"
    known: list[str] = []
    while True:
        key = write.name(known, pairs.reuse, opening)
        value = write.fill(write.one(pairs.values) if pairs.values.values else "a")
        yield key + value + write.fill(end)


def _markup(nesting: Nesting, write: Writer) -> Iterator[str]:
    """Elements as deep as was seen, each closed by its name, and some that stand alone."""
    known: list[str] = []
    opened: list[str] = []
    while True:
        depth = nesting.depths.one(write.generator)
        while len(opened) >= depth:
            yield f"</{opened.pop()}>\n"
        name = write.name(known, nesting.reuse)
        more = f' {write.identifier()}="{write.word()}"' if write.chance(nesting.attributes) else ""
        content = write.words(nesting.contents.one(write.generator))
        if write.chance(nesting.alone):
            yield f"<{name}{more}/>{content}"
        else:
            opened.append(name)
            yield f"<{name}{more}>{content}"


def _latex(nesting: Nesting, write: Writer) -> Iterator[str]:
    """Environments as deep as was seen, each ended by its name, and commands between."""
    known: list[str] = []
    opened: list[str] = []
    while True:
        depth = nesting.depths.one(write.generator)
        while len(opened) >= depth:
            yield f"\\end{{{opened.pop()}}}\n"
        name = write.name(known, nesting.reuse)
        content = write.words(nesting.contents.one(write.generator))
        if not write.chance(nesting.alone):
            opened.append(name)
            yield f"\\begin{{{name}}}\n{content} "
        elif write.chance(nesting.attributes):
            yield f"\\{name}{{{content}}} "
        else:
            yield f"\\{name} {content} "


def _list(listing: Listing, write: Writer) -> Iterator[str]:
    """Lines that begin with one prefix; numbers count up, a word stays the same."""
    prefix = re.sub("a", lambda _: write.word(), write.one(listing.prefixes))
    number = 0
    while True:
        number += 1
        words = write.words(listing.words.one(write.generator))
        yield f"{re.sub('0', str(number), prefix)} {words}\n"


def _template(template: Template, write: Writer) -> Iterator[str]:
    """Lines of one shape; a word or number may equal that of the line above."""
    parts = re.split("([a0])", write.one(template.shapes))
    line = [write.slot(part) if part in ("a", "0") else part for part in parts]
    while True:
        yield "".join(line) + "\n"
        for at, part in enumerate(parts):
            if part in ("a", "0") and not write.chance(template.reuse):
                line[at] = write.slot(part)
