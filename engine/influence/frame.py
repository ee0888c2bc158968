"""The frame that all methods share: sequences of tokens, and a balanced draw of them.

A sequence is laid out as the index scans its windows: the separator in front, then tokens of one
document. `predicted` says which of the predictions of `tokens[:, 1:]` count in the loss of the
sequence, which is the sum of their -log p.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Literal

import numpy as np
import pandas as pd
from jaxtyping import Bool, Int, Shaped

from engine.corpus.shards import TokenShards
from engine.errors import CorpusError, PromptError
from engine.provenance import fingerprint_bytes


NO_DOCUMENT = -1
"""Document of a sequence that belongs to none, such as a prompt somebody typed."""


@dataclass(frozen=True)
class Sequences:
    """Some sequences of tokens, one a row, padded on the right to a common length.

    Raises:
        PromptError: On construction: lengths differ, a token is negative, a sequence predicts no
            token or one of its padding.
    """

    tokens: Int[np.ndarray, "n length"]
    """Token ids; column 0 holds the separator. What lies beyond `length` is padding."""
    predicted: Bool[np.ndarray, "n length-1"]
    """True in column t where the prediction of `tokens[:, t + 1]` counts in the loss."""
    domain: Shaped[np.ndarray, " n"]
    """Domain of each sequence, by name."""
    document: Int[np.ndarray, " n"]
    """Document each was taken from, in the numbering of its corpus; -1 where there is none."""
    start: Int[np.ndarray, " n"]
    """Position in that document of the token in column 1."""
    length: Int[np.ndarray, " n"]
    """Tokens of each row that are not padding, the separator included."""

    def __post_init__(self) -> None:
        n, width = self.tokens.shape
        if self.predicted.shape != (n, width - 1) or any(
            len(getattr(self, field.name)) != n for field in fields(self)
        ):
            shapes = {field.name: getattr(self, field.name).shape for field in fields(self)}
            raise PromptError(f"The parts of the sequences do not fit each other: {shapes}.")
        if n and int(self.tokens.min()) < 0:
            raise PromptError(f"Token {int(self.tokens.min())} is no token id; ids start at 0.")
        if ((self.length < 2) | (self.length > width)).any():
            wrong = int(np.flatnonzero((self.length < 2) | (self.length > width))[0])
            raise PromptError(
                f"Sequence {wrong} has {int(self.length[wrong])} tokens; a sequence holds the "
                f"separator and 1 to {width - 1} tokens."
            )
        if (self.predicted & (np.arange(1, width) >= self.length[:, None])).any():
            raise PromptError("A sequence predicts a token of its padding; mask it out.")
        if not self.predicted.any(axis=1).all():
            wrong = int(np.flatnonzero(~self.predicted.any(axis=1))[0])
            raise PromptError(f"Sequence {wrong} predicts no token; choose a target in it.")

    def __len__(self) -> int:
        return len(self.tokens)

    def __getitem__(self, rows: slice | Shaped[np.ndarray, " chosen"]) -> "Sequences":
        """Some of the sequences, by slice, mask or row numbers."""
        return Sequences(*(getattr(self, field.name)[rows] for field in fields(self)))

    def batches(self, size: int) -> Iterator[slice]:
        """Consecutive slices of at most `size` sequences."""
        return (slice(begin, begin + size) for begin in range(0, len(self), size))

    @property
    def n_predicted(self) -> int:
        """Predicted tokens of all sequences."""
        return int(self.predicted.sum())

    @property
    def fingerprint(self) -> str:
        """Sixteen hex digits that change with the tokens, with what is predicted or the order."""
        parts = [np.array(self.tokens.shape, np.int64), self.tokens.astype(np.int64)]
        parts += [self.predicted.astype(np.uint8), self.length.astype(np.int64)]
        return fingerprint_bytes(b"".join(part.tobytes() for part in parts))


def sequences_from_rows(
    rows: list[list[int]],
    predicted: list[list[bool]] | None = None,
    domain: str = "",
) -> Sequences:
    """Lay out rows of token ids, the separator in front of each already, as sequences.

    Args:
        rows: Token ids of each sequence, two at least.
        predicted: For each row, whether the prediction of each of its tokens after the first
            counts; all count where None.
        domain: Name of their domain.
    """
    length = np.array([len(row) for row in rows], np.int64)
    width = int(length.max(initial=2))
    tokens = np.zeros((len(rows), width), np.int64)
    kept = np.zeros((len(rows), width - 1), bool)
    for number, row in enumerate(rows):
        tokens[number, : len(row)] = row
        kept[number, : len(row) - 1] = True if predicted is None else predicted[number]
    none = np.full(len(rows), NO_DOCUMENT, np.int64)
    names = np.array([domain] * len(rows), dtype=object)
    return Sequences(tokens, kept, names, none, np.zeros(len(rows), np.int64), length)


def draw_sequences(
    shards: TokenShards,
    n: int,
    *,
    length: int,
    split: Literal["train", "validation"],
    seed: int,
    domains: list[str] | None = None,
) -> Sequences:
    """Draw windows of `length` tokens (separator included), spread over the domains.

    Every domain gives an equal number; what a small one cannot give comes from the others. Within
    a domain each document gives one window, at a place drawn at random, before any gives a second.
    A window lies inside one document, overlaps no other and predicts all its tokens. The result is
    sorted by document and start. Pools are drawn from `train`, queries from `validation`.

    Args:
        shards: Tokens of a corpus.
        n: Sequences to draw.
        length: Tokens of each, the separator in front included; 2 or more.
        split: Documents to draw from.
        seed: Seed of the draw.
        domains: Domains to draw from; all of the corpus if None.

    Raises:
        CorpusError: The split does not hold `n` such windows.
    """
    windows = _full_windows(shards, length - 1, split, domains)
    if len(windows) < n or n < 1:
        raise CorpusError(
            f"{n} sequences of {length} tokens were asked for and the {split} texts of the corpus "
            f"{shards.corpus.name} hold {len(windows)}; ask for 1 to {len(windows)}."
        )
    chosen = windows.iloc[_balanced(windows, n, np.random.default_rng(seed))]
    chosen = chosen.sort_values(["document", "start"], ignore_index=True)
    tokens = np.full((n, length), shards.separator, np.int64)
    document = chosen["document"].to_numpy(np.int64)
    start = chosen["start"].to_numpy(np.int64)
    for row, (number, first) in enumerate(zip(document, start, strict=True)):
        tokens[row, 1:] = shards.document_tokens(int(number))[int(first) : int(first) + length - 1]
    everything = np.ones((n, length - 1), bool)
    lengths = np.full(n, length, np.int64)
    names = chosen["domain"].to_numpy(object)
    return Sequences(tokens, everything, names, document, start, lengths)


def count_windows(shards: TokenShards, length: int, split: Literal["train", "validation"]) -> int:
    """Sequences of `length` tokens that `draw_sequences` can draw from a split at most."""
    return len(_full_windows(shards, length - 1, split, None))


def _full_windows(
    shards: TokenShards, size: int, split: str, domains: list[str] | None
) -> pd.DataFrame:
    """Every window of `size` tokens that fits into a document: document, domain, start."""
    documents = shards.corpus.documents
    wanted = (documents["split"] == split).to_numpy()
    if domains is not None:
        wanted = wanted & documents["domain"].isin(domains).to_numpy()
    rows = np.flatnonzero(wanted)
    lengths = shards.offsets[rows + 1] - shards.offsets[rows] - 1
    counts = lengths // size
    number = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    return pd.DataFrame(
        {
            "document": np.repeat(rows, counts),
            "domain": documents["domain"].to_numpy(object)[np.repeat(rows, counts)],
            "start": number * size,
        }
    )


def _balanced(
    windows: pd.DataFrame, n: int, generator: np.random.Generator
) -> Int[np.ndarray, " n"]:
    """Rows of `n` windows: domains take turns, and within a domain its documents do."""
    shuffled = windows.iloc[generator.permutation(len(windows))]
    turn = shuffled.groupby("document", sort=False).cumcount().to_numpy()
    order = np.argsort(turn, kind="stable")
    place = shuffled.iloc[order].groupby("domain", sort=False).cumcount().to_numpy()
    return shuffled.index.to_numpy()[order][np.argsort(place, kind="stable")[:n]]
