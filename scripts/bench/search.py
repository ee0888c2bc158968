"""Search speed of cached attribution over a synthetic pool: numbers drawn, no model run."""

import time
from dataclasses import dataclass

import numpy as np
import torch

from engine.pipeline.measurements import record_measurement
from engine.prism.attribution.gradient import BankGradient
from engine.prism.attribution.pool import TokenArrays, TokenPool
from engine.prism.attribution.search import Inverted, invert, score_pool
from scripts.bench.clock import cpu_seconds


D_MODEL, PROTOTYPES, ACTIVE, LENGTH = 192, 4096, 16, 127
QUERY_TOKENS = (1, 64)
BLOCK = 2**17
SKEW = 0.4
"""Firing rates fall like rank ** -SKEW: the commonest of 4,096 prototypes is active at 7 % of the
tokens, and a query meets 0.7 % of the active pairs for each of its tokens."""


@dataclass(frozen=True)
class Synthetic:
    """A pool whose prototypes fire at very different rates."""

    pool: TokenPool
    inverted: Inverted
    rates: np.ndarray


def synthetic_pool(n_tokens: int, bits: int, seed: int = 0) -> Synthetic:
    """A pool of about `n_tokens` stored tokens in sequences of 127; bits are 8 or 4."""
    generator = np.random.default_rng(seed)
    n = n_tokens // LENGTH * LENGTH
    rates = np.arange(1, PROTOTYPES + 1) ** -SKEW
    rates = generator.permutation(rates / rates.sum())
    edges = np.cumsum(rates)
    stored, kind = (D_MODEL // 2, np.uint8) if bits == 4 else (D_MODEL, np.int8)
    arrays = TokenArrays(
        prototypes=np.empty((n, ACTIVE), np.uint16),
        activations=np.empty((n, ACTIVE), np.uint8),
        slopes=np.empty((n, ACTIVE), np.int8),
        errors=np.empty((n, stored), kind),
        states=np.empty((n, stored), kind),
        scales=np.full((n, 3), 0.01, np.float32),
    )
    for start in range(0, n, BLOCK):
        rows = slice(start, min(start + BLOCK, n))
        size = rows.stop - rows.start
        drawn = np.searchsorted(edges, generator.random((size, ACTIVE)))
        arrays.prototypes[rows] = _distinct(drawn)
        arrays.activations[rows] = np.sort(generator.integers(1, 255, (size, ACTIVE)), 1)[:, ::-1]
        for column in (arrays.slopes, arrays.errors, arrays.states):
            column[rows] = np.frombuffer(
                generator.bytes(size * column.shape[1]), column.dtype
            ).reshape(size, -1)
    bank = torch.from_numpy(generator.normal(size=(PROTOTYPES, D_MODEL)).astype(np.float32))
    pool = TokenPool(arrays, np.arange(0, n + 1, LENGTH), bank)
    return Synthetic(pool, invert(pool.arrays, PROTOTYPES), rates)


def _distinct(drawn: np.ndarray) -> np.ndarray:
    """Make the prototypes of a token differ: what repeats moves on by its rank."""
    drawn = np.sort(drawn, axis=1)
    for rank in range(1, ACTIVE):
        drawn[:, rank] = np.maximum(drawn[:, rank], drawn[:, rank - 1] + 1)
    return drawn % PROTOTYPES


def synthetic_query(synthetic: Synthetic, n_tokens: int, seed: int) -> BankGradient:
    """A gradient over the prototypes that so many tokens have, drawn at the pool's own rates."""
    generator = np.random.default_rng(seed)
    first = generator.integers(0, synthetic.pool.n_tokens - n_tokens)
    prototypes = np.unique(synthetic.pool.arrays.prototypes[first : first + n_tokens])
    rows = generator.normal(size=(len(prototypes), D_MODEL)).astype(np.float32)
    numbers = torch.from_numpy(prototypes.astype(np.int64))
    return BankGradient("path", numbers, torch.from_numpy(rows))


def measure_search(n_tokens: int, rounds: int) -> None:
    """Time one-token and 64-token queries, and keep the record `attribution_search`."""
    records: list[dict[str, float]] = []
    for bits in (8, 4):
        synthetic = synthetic_pool(n_tokens, bits)
        warm = synthetic_query(synthetic, 1, 10_007)
        for inverted in (synthetic.inverted, None):  # compile both loops
            score_pool(synthetic.pool, [warm], inverted=inverted)
        for round_number in range(rounds):
            for tokens in QUERY_TOKENS:
                query = synthetic_query(synthetic, tokens, round_number)
                start, cpu = time.perf_counter(), cpu_seconds()
                score_pool(synthetic.pool, [query], inverted=synthetic.inverted)
                record: dict[str, float] = {
                    "bits": bits,
                    "query_tokens": tokens,
                    "rows": len(query.prototypes),
                }
                record["seconds"] = round(time.perf_counter() - start, 4)
                record["cpu_seconds"] = round(cpu_seconds() - cpu, 4)
                records.append(record)
        del synthetic
    setting = {
        "device": "cpu",
        "threads": torch.get_num_threads(),
        "pool_tokens": n_tokens,
        "d_model": D_MODEL,
        "prototypes": PROTOTYPES,
        "active": ACTIVE,
        "skew": SKEW,
    }
    record_measurement("attribution_search", setting, records)
    for bits in (8, 4):
        for tokens in QUERY_TOKENS:
            own = [r for r in records if (r["bits"], r["query_tokens"]) == (bits, tokens)]
            wall, cpu = (np.median([r[n] for r in own]) for n in ("seconds", "cpu_seconds"))
            print(
                f"search of {n_tokens:,} tokens in {bits} bits for {tokens}: "
                f"{wall:.3f} s, {cpu:.3f} s of CPU"
            )
