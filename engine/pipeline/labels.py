"""Gather contexts for the labels from the shards, and label the bank."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from engine.pipeline.examples import Pairs, SmallestPerGroup, random_bits
from engine.pipeline.index_scan import ShardWindows
from engine.pipeline.index_shards import Shard, token_key
from engine.prism.labels.contexts import Contexts, TokenMarks, window_contexts
from engine.prism.labels.label import LabelExamples
from engine.prism.labels.vocabulary import Vocabulary


ACTIVE_CONTEXTS = 128
"""Active contexts drawn a prototype, in proportion to activation; about half are held out."""

INACTIVE_CONTEXTS = 24_000
"""Contexts drawn from all scanned tokens."""

MASK_LIFT = 10.0
"""Letters this many times as frequent in unwanted texts as elsewhere are not shown in a role."""


class ContextSample:
    """The tokens labels are made from: a sample for each prototype, and one of all tokens."""

    def __init__(self, n_prototypes: int, seed: int) -> None:
        self.seed = seed
        self.n_prototypes = n_prototypes
        self.active = SmallestPerGroup(n_prototypes, ACTIVE_CONTEXTS)
        self.all = SmallestPerGroup(1, INACTIVE_CONTEXTS)

    def update(self, pairs: Pairs, shard: Shard) -> None:
        """Offer a shard's active pairs and its tokens."""
        chance = random_bits(pairs, self.seed + 101, pairs.activation)
        self.active.update(pairs.prototype.astype(np.int64), chance, pairs)
        zeros = np.zeros(len(shard.document), np.int64)
        tokens = Pairs(zeros, shard.document, shard.position, zeros.astype(np.float16))
        self.all.update(zeros, random_bits(tokens, self.seed + 202), tokens)


@dataclass(frozen=True)
class _Part:
    """What one shard gives: rows of a sample and their contexts."""

    rows: Int[np.ndarray, " n"]
    contexts: Contexts


class ContextReader:
    """Reads the contexts of a finished sample, shard by shard."""

    def __init__(self, sample: ContextSample, vocabulary: Vocabulary) -> None:
        self.sample = sample
        self.vocabulary = vocabulary
        self.marks = TokenMarks.of(vocabulary)
        self._active: list[_Part] = []
        self._all: list[_Part] = []
        self._all_prototypes: list[np.ndarray] = []

    def read(
        self, shard: Shard, windows: ShardWindows, token_domain: Int[np.ndarray, " tokens"]
    ) -> None:
        """Pick the sampled tokens of a shard."""
        contexts = window_contexts(
            self.vocabulary,
            self.marks,
            windows.tokens,
            shard.predicted,
            shard.document,
            shard.position,
            token_domain,
            windows.window_of,
        )
        keys = token_key(shard.document, shard.position)
        for pairs, parts in (
            (self.sample.active.pairs, self._active),
            (self.sample.all.pairs, self._all),
        ):
            wanted = token_key(pairs.document, pairs.position)
            place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
            rows = np.flatnonzero(keys[place] == wanted)
            parts.append(_Part(rows, contexts.take(place[rows])))
            if pairs is self.sample.all.pairs:
                self._all_prototypes.append(shard.prototypes[place[rows]])

    def examples(self) -> LabelExamples:
        """Everything read, in the order of the samples."""
        active = _in_order(self._active)
        everything = _in_order(self._all)
        order = np.argsort(np.concatenate([part.rows for part in self._all]), kind="stable")
        counts = np.bincount(self.sample.active.group, minlength=self.sample.n_prototypes)
        first = np.concatenate([[0], np.cumsum(counts)])
        prototypes = np.concatenate(self._all_prototypes)[order]
        return LabelExamples(active, first, everything, prototypes)


def _in_order(parts: list[_Part]) -> Contexts:
    rows = np.concatenate([part.rows for part in parts])
    joined = Contexts.concatenate([part.contexts for part in parts])
    return joined.take(np.argsort(rows, kind="stable"))


class TokenTally:
    """How often each token stands in unwanted texts and elsewhere."""

    def __init__(self, vocab_size: int, unwanted: int | None) -> None:
        self.unwanted = unwanted
        self.counts = np.zeros((2, vocab_size), np.int64)

    def update(self, tokens: Int[np.ndarray, " n"], token_domain: Int[np.ndarray, " n"]) -> None:
        """Count a shard's tokens."""
        inside = token_domain == (-1 if self.unwanted is None else self.unwanted)
        for row, rows in enumerate((inside, ~inside)):
            self.counts[row] += np.bincount(tokens[rows], minlength=self.counts.shape[1])

    def masked(self, vocabulary: Vocabulary) -> frozenset[int]:
        """Tokens with letters that are typical of unwanted texts."""
        inside, outside = self.counts
        if inside.sum() == 0:
            return frozenset()
        rate_inside = inside / inside.sum()
        rate_outside = (outside + 1) / (outside.sum() + 1)
        typical = (inside >= 3) & (rate_inside > MASK_LIFT * rate_outside)
        return frozenset(
            token
            for token in np.flatnonzero(typical).tolist()
            if any(character.isalpha() for character in vocabulary.texts[token])
        )
