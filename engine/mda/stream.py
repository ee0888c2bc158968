"""Training rows of an emergence study: natural text, and rows in which a segment repeats.

A sample is a row of a step. What it holds is a pure function of the seed, the step and the row,
so a sample is found again from its number, and arms that share a seed share every row.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Int
from numpy.typing import NDArray

from engine.corpus.batches import BatchStream
from engine.corpus.shards import TokenShards
from engine.mda.settings import MixtureConfig


PLANTED = "planted"
"""Domain of the rows in which a random segment repeats."""

FREQUENT_MASS = 0.99
"""Share of all tokens that the frequent ones make up; segments are drawn from these."""

_COUNTED_TOKENS = 1_000_000


@dataclass(frozen=True)
class Source:
    """Where a sample comes from.

    document and position are -1 where the row was generated; segment is the length of what
    repeats in it, 0 in natural rows.
    """

    domain: str
    document: int
    position: int
    segment: int


class MixedStream:
    """Rows by step; `batch(step)` depends on the seed and the step alone."""

    def __init__(self, shards: TokenShards, config: MixtureConfig) -> None:
        """Plan the mixture over a tokenised corpus."""
        weights = dict.fromkeys(shards.domains, 0.0) | config.domain_weights
        self.config = config
        self.natural = BatchStream(
            shards,
            split="train",
            context=config.context,
            batch_size=config.batch_size,
            seed=config.seed,
            domain_weights=weights,
        )
        self.frequent = frequent_tokens(self.natural)
        self._natural_rows = lru_cache(maxsize=4)(self.natural.batch)

    def batch(self, step: int) -> Int[np.ndarray, "rows length"]:
        """Rows of a step: token ids [batch_size, context + 1]."""
        rows = self._natural_rows(step).copy()
        for row in np.flatnonzero(self._planted(step)):
            rows[row] = repeated_row(self.config, self.frequent, step, int(row))[0]
        return rows

    def is_planted(self, step: int, row: int) -> bool:
        """Whether a sample was generated."""
        return bool(self._planted(step)[row])

    def source(self, step: int, row: int) -> Source:
        """Where a sample comes from."""
        if self._planted(step)[row]:
            length = repeated_row(self.config, self.frequent, step, row)[1]
            return Source(PLANTED, -1, -1, length)
        domain, document, position = self.natural.source(step * self.config.batch_size + row)
        return Source(domain, document, position, 0)

    def _planted(self, step: int) -> NDArray[np.bool_]:
        """Which rows of a step are generated."""
        generator = np.random.default_rng((self.config.seed, 7, step))
        return generator.random(self.config.batch_size) < self.config.repeat_share


def repeated_row(
    config: MixtureConfig, frequent: Int[np.ndarray, " tokens"], step: int, row: int
) -> tuple[Int[np.ndarray, " length"], int]:
    """A generated row: a random segment of frequent tokens repeated to its end, and its length.

    It depends on the seed, the step, the row and the frequent tokens alone.
    """
    generator = np.random.default_rng((config.seed, 11, step, row))
    length = int(generator.integers(config.shortest, config.longest + 1))
    segment = generator.choice(frequent, length)
    copies = -(-(config.context + 1) // length)
    return np.tile(segment, copies)[: config.context + 1], length


def frequent_tokens(stream: BatchStream) -> Int[np.ndarray, " tokens"]:
    """The most frequent tokens, which together make up `FREQUENT_MASS` of natural rows."""
    steps = max(1, _COUNTED_TOKENS // (stream.batch_size * stream.context))
    counts = np.zeros(1, np.int64)
    for step in range(min(steps, 64)):
        found = np.bincount(stream.batch(step).ravel())
        size = max(len(found), len(counts))
        counts = np.pad(counts, (0, size - len(counts))) + np.pad(found, (0, size - len(found)))
    order = np.argsort(-counts, kind="stable")
    share = np.cumsum(counts[order]) / counts.sum()
    return np.sort(order[: int(np.searchsorted(share, FREQUENT_MASS)) + 1]).astype(np.int64)
