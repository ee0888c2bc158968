"""Scores of a pool's sequences against gradients: compiled loops on a CPU, torch on CUDA.

The score of a pool token t against a query's gradient G' is, over its active prototypes i,

    sum_i  a <e, G'_i> + b (<zu, G'_i> - a <pu_i, G'_i>)

and that of a sequence the sum over its predicted tokens. Positive: up-weighting the sequence
LOWERS the loss of the query. The summand of prototype i is its share.
"""

import itertools
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped

from engine.prism.attribution.gradient import BankGradient, Statistic
from engine.prism.attribution.pool import TokenArrays, TokenPool, frozen
from engine.prism.attribution.quantise import activation_step


CODES: dict[Statistic, int] = {"activations": 0, "errors": 1, "path": 2}
"""How the compiled loops name the statistics."""
SCAN_SHARE = 0.1
"""Share of the pool's active pairs from which reading all of them is faster than looking up."""
CUDA_TOKENS = 8192
"""Tokens scored at once on CUDA."""


class Inverted(NamedTuple):
    """Inverted index: the tokens at which each prototype is active.

    starts: [prototypes + 1] first place of each prototype, int64.
    tokens: numbers of tokens, rising within a prototype, uint32.
    """

    starts: Int[np.ndarray, " ends"]
    tokens: Shaped[np.ndarray, " pairs"]

    def frozen(self) -> "Inverted":
        """The same, read-only and plain."""
        return Inverted(*(frozen(column) for column in self))


def invert(arrays: TokenArrays, n_prototypes: int) -> Inverted:
    """Inverted index of stored tokens; needs 12 bytes for each active pair while it is made."""
    active = arrays.activations > 0
    prototypes = arrays.prototypes[active]
    starts = np.concatenate([[0], np.cumsum(np.bincount(prototypes, minlength=n_prototypes))])
    tokens = np.repeat(np.arange(len(active), dtype=np.uint32), active.sum(1))
    order = np.argsort(prototypes, kind="stable")
    return Inverted(starts.astype(np.int64), tokens[order]).frozen()


@dataclass(frozen=True)
class Packed:
    """Gradients of queries as the loops read them."""

    statistic: Statistic
    row_of: Int[np.ndarray, "queries prototypes"]
    rows: Float[np.ndarray, "rows width"]
    along: Float[np.ndarray, " rows"]

    @classmethod
    def of(cls, gradients: list[BankGradient], pool: TokenPool) -> "Packed":
        """Pack gradients of one statistic."""
        row_of = np.full((len(gradients), pool.n_prototypes), -1, np.int32)
        numbers = [gradient.prototypes.cpu().numpy() for gradient in gradients]
        starts = np.cumsum([0, *(len(n) for n in numbers)])
        for query, (own, start) in enumerate(zip(numbers, starts, strict=False)):
            row_of[query, own] = np.arange(start, start + len(own))
        rows = torch.cat([gradient.rows for gradient in gradients]).float().cpu().numpy()
        statistic = gradients[0].statistic
        along = np.zeros(len(rows), np.float32)
        if statistic == "path":
            along = np.einsum("rd,rd->r", rows, pool.unit_bank[np.concatenate(numbers)])
        return cls(statistic, row_of, np.ascontiguousarray(rows), along.astype(np.float32))

    @property
    def asked(self) -> Int[np.ndarray, " asked"]:
        """Prototypes of the first query."""
        return np.flatnonzero(self.row_of[0] >= 0)

    @property
    def n_queries(self) -> int:
        """Queries packed."""
        return len(self.row_of)


def score_pool(
    pool: TokenPool,
    gradients: list[BankGradient],
    *,
    inverted: Inverted | None = None,
    device: torch.device | None = None,
) -> Float[np.ndarray, "queries sequences"]:
    """Score of every sequence against every gradient, float64.

    Args:
        pool: the sequences.
        gradients: of the queries, conditioned where wanted; all of one statistic.
        inverted: the pool's inverted index, used for a single query with few candidates.
        device: where to compute; a CPU if None.
    """
    queries = Packed.of(gradients, pool)
    if device is not None and device.type == "cuda":
        return _score_on(pool, queries, device)
    few = inverted is not None and queries.n_queries == 1 and _few(inverted, queries.asked)
    return run_loop(pool, queries, inverted if few else None)


def _few(inverted: Inverted, asked: Int[np.ndarray, " n"]) -> bool:
    candidates = (inverted.starts[asked + 1] - inverted.starts[asked]).sum()
    return bool(candidates < SCAN_SHARE * len(inverted.tokens))


def run_loop(
    pool: TokenPool, queries: Packed, inverted: Inverted | None
) -> Float[np.ndarray, "queries sequences"]:
    """Share the sequences among threads and run a compiled loop over each part.

    With an inverted index only the tokens are visited at which a prototype of the one query is
    active, otherwise all are scanned.
    """
    from engine.prism.attribution import kernels

    code = CODES[queries.statistic]
    packed = kernels.Queries(code, queries.row_of, queries.rows, queries.along)
    scores = np.zeros((queries.n_queries, pool.n_sequences))
    stored = _stored(pool)

    def part(first: int, last: int) -> None:
        if inverted is None:
            kernels.scan(stored, packed, first, last, scores)
        else:
            kernels.visit(stored, packed, inverted, queries.asked, first, last, scores)

    share_sequences(pool, part)
    return scores


def _stored(pool: TokenPool) -> Any:
    """The pool as the compiled loops read it."""
    from engine.prism.attribution import kernels

    step = np.float32(activation_step(pool.arrays.activations))
    return kernels.Stored(*pool.arrays, pool.offsets, step)


def share_sequences(pool: TokenPool, part: Any) -> None:
    """Call part(first, last) over runs of sequences that cover the pool, as many as torch threads.

    The runs hold about equally many tokens; the calls let go of Python's lock.
    """
    threads = max(1, torch.get_num_threads())
    edges = np.searchsorted(pool.offsets, np.linspace(0, pool.n_tokens, threads + 1))
    edges[0], edges[-1] = 0, pool.n_sequences
    with ThreadPoolExecutor(threads) as threads_of_pool:
        runs = [
            threads_of_pool.submit(part, int(first), int(last))
            for first, last in itertools.pairwise(edges)
            if last > first
        ]
        for run in runs:
            run.result()


def gradient_norms(pool: TokenPool, statistic: Statistic) -> Float[np.ndarray, " sequences"]:
    """Norm of the gradient of each sequence's summed loss, float32."""
    from engine.prism.attribution import kernels

    squared = np.zeros(pool.n_sequences)
    stored, code = _stored(pool), CODES[statistic]

    def part(first: int, last: int) -> None:
        kernels.square_norms(stored, pool.unit_bank, code, first, last, squared)

    share_sequences(pool, part)
    return np.sqrt(squared).astype(np.float32)


def pair_scores(
    pool: TokenPool, tokens: slice, gradient: BankGradient
) -> Float[np.ndarray, "tokens k"]:
    """Summand of each token and active prototype, in NumPy: for the details of one sequence."""
    queries = Packed.of([gradient], pool)
    found = pool.read(tokens)
    row = queries.row_of[0][found.prototypes]
    rows, along = queries.rows[row], queries.along[row]
    if gradient.statistic == "activations":
        summand = found.activations * rows[..., 0]
    else:
        summand = found.activations * np.einsum("tkd,td->tk", rows, found.errors)
    if gradient.statistic == "path":
        on_state = np.einsum("tkd,td->tk", rows, found.states)
        summand = summand + found.slopes * (on_state - found.activations * along)
    return np.where(row >= 0, summand, 0.0)


@torch.no_grad()
def _score_on(
    pool: TokenPool, queries: Packed, device: torch.device
) -> Float[np.ndarray, "queries sequences"]:
    """The same sums in torch, a chunk of tokens at a time."""
    row_of = torch.from_numpy(queries.row_of).to(device)
    rows, along = (torch.from_numpy(x).to(device) for x in (queries.rows, queries.along))
    scores = torch.zeros(queries.n_queries, pool.n_sequences, dtype=torch.float64, device=device)
    offsets = torch.from_numpy(pool.offsets.copy()).to(device)
    for tokens in pool.chunks(CUDA_TOKENS):
        read = [torch.from_numpy(values).to(device) for values in pool.read(tokens)]
        prototypes, activations, along_error, errors, states = read
        numbers = torch.arange(tokens.start, tokens.stop, device=device)
        sequence = torch.searchsorted(offsets, numbers, right=True) - 1
        for query in range(queries.n_queries):
            row = row_of[query][prototypes].long()
            chosen = rows[row]
            if queries.statistic == "activations":
                summand = activations * chosen[..., 0]
            else:
                summand = activations * torch.einsum("tkd,td->tk", chosen, errors)
            if queries.statistic == "path":
                on_state = torch.einsum("tkd,td->tk", chosen, states)
                summand = summand + along_error * (on_state - activations * along[row])
            total = torch.where(row >= 0, summand, 0.0).double().sum(1)
            scores[query].index_add_(0, sequence, total)
    return scores.cpu().numpy()
