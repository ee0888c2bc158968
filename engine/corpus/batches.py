"""Training rows: deterministic, domain-balanced, resumable at any step without replaying.

Rows are dealt in blocks. In each block a domain has a fixed number of rows, so what a row holds is
known from its number alone: its block, its rank among the domain's rows before it, hence the
domain's epoch and the window within it. Within an epoch no token is seen twice.
"""

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from engine.corpus.shards import TokenShards
from engine.errors import CorpusError


_BLOCK = 4096


class DomainRows:
    """Windows of one domain and split, in an order that each epoch draws anew."""

    def __init__(
        self, shards: TokenShards, documents: NDArray[np.int64], context: int, seed: tuple[int, ...]
    ) -> None:
        self._shards = shards
        self._documents = documents
        self._context = context
        self._seed = seed
        lengths = shards.offsets[documents + 1] - shards.offsets[documents]
        self.n_tokens = int(lengths.sum())
        self._lengths = lengths
        self.rows_per_epoch = max(1, (self.n_tokens - 1) // context)
        self._epoch = lru_cache(maxsize=2)(self._draw_epoch)

    def _draw_epoch(
        self, epoch: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Order of documents, offsets of their tokens in that order, and order of windows."""
        rng = np.random.default_rng((*self._seed, epoch))
        order = rng.permutation(len(self._documents))
        offsets = np.concatenate([[0], np.cumsum(self._lengths[order])])
        return self._documents[order], offsets, rng.permutation(self.rows_per_epoch)

    def row(self, number: int) -> NDArray[np.int64]:
        """Row `number` of the endless sequence of epochs: [context + 1]."""
        epoch, rank = divmod(number, self.rows_per_epoch)
        documents, offsets, windows = self._epoch(epoch)
        return self._read(documents, offsets, int(windows[rank]) * self._context)

    def source(self, number: int) -> tuple[int, int]:
        """Document that row `number` begins in, and its first token there."""
        epoch, rank = divmod(number, self.rows_per_epoch)
        documents, offsets, windows = self._epoch(epoch)
        start = int(windows[rank]) * self._context
        at = int(np.searchsorted(offsets, start, side="right")) - 1
        return int(documents[at]), start - int(offsets[at])

    def fixed_rows(self, n_rows: int) -> NDArray[np.int64]:
        """Up to `n_rows` windows spread evenly over the documents in order: [rows, context + 1]."""
        offsets = np.concatenate([[0], np.cumsum(self._lengths)])
        n_rows = min(n_rows, self.rows_per_epoch)
        windows = np.arange(n_rows) * self.rows_per_epoch // n_rows
        rows = [self._read(self._documents, offsets, int(w) * self._context) for w in windows]
        return np.stack(rows)

    def _read(
        self, documents: NDArray[np.int64], offsets: NDArray[np.int64], start: int
    ) -> NDArray[np.int64]:
        """`context + 1` tokens from `start` of the documents laid end to end, round the end."""
        row = np.empty(self._context + 1, dtype=np.int64)
        at = int(np.searchsorted(offsets, start, side="right")) - 1
        skip, filled = start - int(offsets[at]), 0
        while filled < len(row):
            run = self._shards.run(int(documents[at]))[skip : skip + len(row) - filled]
            row[filled : filled + len(run)] = run
            filled += len(run)
            at, skip = (at + 1) % len(documents), 0
        return row


class BatchStream:
    """Rows of a split, mixed by domain; `batch(step)` depends on the seed and the step alone."""

    def __init__(
        self,
        shards: TokenShards,
        *,
        split: str,
        context: int,
        batch_size: int,
        seed: int,
        domain_weights: dict[str, float] | None = None,
    ) -> None:
        """Plan the mixture.

        Args:
            shards: Tokenised corpus.
            split: train or validation.
            context: Tokens a row predicts; rows hold one more.
            batch_size: Rows a batch.
            seed: Seed of every order.
            domain_weights: Share of rows by domain; the domains that are not named divide what is
                left in proportion to their tokens. Shares of 1 or more in all are scaled to 1.
        """
        self.context = context
        self.batch_size = batch_size
        self._seed = seed
        frame = shards.corpus.documents
        chosen = frame[frame["split"] == split]
        if chosen.empty:
            raise CorpusError(f"The corpus {shards.corpus.name} has no {split} documents.")
        self.rows: dict[str, DomainRows] = {
            str(domain): DomainRows(
                shards,
                np.asarray(group["document"], dtype=np.int64),
                context,
                (seed, shards.domains.index(str(domain))),
            )
            for domain, group in chosen.groupby("domain", sort=False)
        }
        self.shares = _shares({d: r.n_tokens for d, r in self.rows.items()}, domain_weights or {})
        self._names = list(self.shares)
        self._quotas = _quotas(np.array(list(self.shares.values())))
        self._block = lru_cache(maxsize=2)(self._deal_block)

    def _deal_block(self, block: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Domain of each row of a block, and its number among all rows of that domain."""
        rng = np.random.default_rng((self._seed, 1 << 20, block))
        domains = rng.permutation(np.repeat(np.arange(len(self._quotas)), self._quotas))
        numbers = np.empty(_BLOCK, dtype=np.int64)
        for domain, quota in enumerate(self._quotas):
            numbers[domains == domain] = block * quota + np.arange(quota)
        return domains, numbers

    def batch(self, step: int) -> NDArray[np.int64]:
        """Rows of a step, counted from 0: token ids [batch_size, context + 1]."""
        rows = []
        for row in range(step * self.batch_size, (step + 1) * self.batch_size):
            domains, numbers = self._block(row // _BLOCK)
            at = row % _BLOCK
            rows.append(self.rows[self._names[domains[at]]].row(int(numbers[at])))
        return np.stack(rows)

    def source(self, row: int) -> tuple[str, int, int]:
        """Domain and document that a row begins in, and its first token there.

        Args:
            row: counted from 0 over all steps.
        """
        domains, numbers = self._block(row // _BLOCK)
        at = row % _BLOCK
        domain = self._names[domains[at]]
        return domain, *self.rows[domain].source(int(numbers[at]))

    def evaluation(self, rows: int) -> dict[str, NDArray[np.int64]]:
        """The same windows every time, by domain: [up to `rows`, context + 1]."""
        return {domain: source.fixed_rows(rows) for domain, source in self.rows.items()}


def _shares(n_tokens: dict[str, int], weights: dict[str, float]) -> dict[str, float]:
    """Share of rows of each domain; the shares add up to 1."""
    unknown = sorted(set(weights) - set(n_tokens))
    if unknown:
        raise CorpusError(
            f"The corpus has no domain {', '.join(unknown)}; it holds {', '.join(n_tokens)}."
        )
    if not all(0 <= weight < math.inf for weight in weights.values()):
        raise CorpusError(f"Domain weights must be 0 or more and finite; got {weights}.")
    named = sum(weights.values())
    others = sum(n for domain, n in n_tokens.items() if domain not in weights)
    left = max(0.0, 1 - named) if others else 0.0
    scale = (1 - left) / named if named else 0.0
    if named == 0 and not others:
        raise CorpusError("Every domain has weight 0; give at least one a positive weight.")
    return {
        domain: weights[domain] * scale if domain in weights else left * n / max(others, 1)
        for domain, n in n_tokens.items()
    }


def _quotas(shares: NDArray[np.float64]) -> NDArray[np.int64]:
    """Rows of a block by domain, by largest remainder; a domain with a share has at least one."""
    exact = shares * _BLOCK
    quotas = np.where(shares > 0, np.maximum(np.floor(exact), 1), 0).astype(np.int64)
    while quotas.sum() != _BLOCK:
        gap = exact - quotas
        if quotas.sum() < _BLOCK:
            quotas[int(np.argmax(gap))] += 1
        else:
            quotas[int(np.argmin(np.where(quotas > 1, gap, np.inf)))] -= 1
    return quotas
