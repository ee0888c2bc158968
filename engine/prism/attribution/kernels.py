"""Compiled loops over the tokens of a pool: decode a token once, then its active prototypes.

They hold no lock of Python, so threads share the sequences among them. Compiled code is kept
beside this file or in the user's cache; where neither can be written it is compiled every time.
"""

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple, no_type_check

import numpy as np
from numba import njit, types
from numba.extending import overload


ACTIVATIONS, ERRORS, PATH = 0, 1, 2
"""Codes of the statistics."""

BLOCK = 64
"""Sequences whose tokens are visited prototype by prototype before the next ones are."""

_ORDER_FREE = {"reassoc", "contract", "nsz", "arcp"}
"""Sums may be taken in any order; infinities and NaN keep their meaning."""


class Stored(NamedTuple):
    """A pool as the loops read it: the columns of `TokenArrays` and where each sequence begins.

    step: what one unit of a stored activation stands for, float32.
    """

    prototypes: np.ndarray
    activations: np.ndarray
    slopes: np.ndarray
    errors: np.ndarray
    states: np.ndarray
    scales: np.ndarray
    offsets: np.ndarray
    step: np.float32


class Queries(NamedTuple):
    """Gradients to compare with, packed: the rows of all queries below each other.

    statistic: code.
    row_of: [queries prototypes] row of a prototype in a query, -1 without one, int32.
    rows: [rows width] G', float32.
    along: [rows] <p/|p|, G'>, float32.
    """

    statistic: int
    row_of: np.ndarray
    rows: np.ndarray
    along: np.ndarray


def compiled(function: Callable[..., Any]) -> Any:
    """Compile a function without Python's lock, kept on the disk where a folder allows it."""
    plain = inspect.unwrap(function)
    settings: dict[str, Any] = {"nogil": True, "fastmath": _ORDER_FREE}
    try:
        return njit(plain, cache=True, **settings)
    except RuntimeError:  # no folder can be written
        return njit(plain, **settings)


def inlined(function: Callable[..., Any]) -> Any:
    """Compile a function into those that call it."""
    return njit(inspect.unwrap(function), nogil=True, fastmath=_ORDER_FREE, inline="always")


def unpack(stored: Any, token: Any, scale: Any, out: Any, line: Any) -> None:
    """Read a stored row back into a line of `out`; uint8 numbers are pairs of four bits.

    A name for compiled code alone: the compiler puts the body below in its place, by type.
    """
    del stored, token, scale, out, line
    raise TypeError("unpack is called from compiled code only")


@no_type_check
@overload(unpack, inline="always")
def _unpack(stored: Any, token: Any, scale: Any, out: Any, line: Any) -> Any:
    del token, scale, out, line

    @no_type_check
    def plain(stored: Any, token: Any, scale: Any, out: Any, line: Any) -> None:
        for c in range(out.shape[1]):
            out[line, c] = np.float32(stored[token, c]) * scale

    @no_type_check
    def packed(stored: Any, token: Any, scale: Any, out: Any, line: Any) -> None:
        half = stored.shape[1]
        for c in range(half):
            out[line, c] = np.float32(np.int32(stored[token, c] & 15) - 8) * scale
        for c in range(out.shape[1] - half):
            out[line, half + c] = np.float32(np.int32(stored[token, c] >> 4) - 8) * scale

    return packed if stored.dtype is types.uint8 else plain


@no_type_check
@inlined
def pair_score(queries: Any, r: Any, errors: Any, states: Any, line: Any, pair: Any) -> Any:
    """Sum a <e, G'> of a decoded token and one of its prototypes, and b (<zu, G'> - a <pu, G'>).

    pair: activation a and slope b. No view of an array is made here, for each one would be counted.
    """
    activation, slope = pair
    on_error = np.float32(0)
    if queries.statistic == ERRORS:
        for c in range(errors.shape[1]):
            on_error += queries.rows[r, c] * errors[line, c]
        return activation * on_error
    on_state = np.float32(0)
    for c in range(errors.shape[1]):
        on_error += queries.rows[r, c] * errors[line, c]
        on_state += queries.rows[r, c] * states[line, c]
    return activation * on_error + slope * (on_state - activation * queries.along[r])


@no_type_check
@compiled
def longest_of(offsets: Any, first: Any, last: Any) -> Any:
    """Tokens of the longest of the sequences first..last."""
    longest = 0
    for s in range(first, last):
        longest = max(longest, offsets[s + 1] - offsets[s])
    return longest


@no_type_check
@compiled
def scan(pool: Any, queries: Any, first: Any, last: Any, scores: Any) -> None:
    """Add to scores[query, sequence] for every token of the sequences first..last.

    Each sequence is decoded once, and only tokens that some query meets.
    """
    longest = longest_of(pool.offsets, first, last)
    width = 1 if queries.statistic == ACTIVATIONS else queries.rows.shape[1]
    error = np.empty((longest, width), np.float32)
    state = np.empty((longest, width), np.float32)
    known = np.empty(longest, np.bool_)
    for s in range(first, last):
        begin = pool.offsets[s]
        known[:] = False
        for q in range(queries.row_of.shape[0]):
            total = 0.0
            for token in range(begin, pool.offsets[s + 1]):
                t = token - begin
                for j in range(pool.prototypes.shape[1]):
                    if pool.activations[token, j] == 0:
                        break
                    r = queries.row_of[q, pool.prototypes[token, j]]
                    if r < 0:
                        continue
                    activation = np.float32(pool.activations[token, j] * pool.step)
                    if queries.statistic == ACTIVATIONS:
                        total += activation * queries.rows[r, 0]
                        continue
                    if not known[t]:
                        unpack(pool.errors, token, pool.scales[token, 0], error, t)
                        if queries.statistic == PATH:
                            unpack(pool.states, token, pool.scales[token, 1], state, t)
                        known[t] = True
                    slope = np.float32(pool.slopes[token, j] * pool.scales[token, 2])
                    total += pair_score(queries, r, error, state, t, (activation, slope))
            scores[q, s] += total


@no_type_check
@compiled
def lower_bound(values: Any, begin: Any, end: Any, wanted: Any) -> Any:
    """First place in begin..end of a rising array whose value is at least `wanted`."""
    while begin < end:
        middle = (begin + end) // 2
        if values[middle] < wanted:
            begin = middle + 1
        else:
            end = middle
    return begin


@no_type_check
@inlined
def place_of(prototypes: Any, token: Any, prototype: Any) -> Any:
    """Place of a prototype among those of a token, which it is one of."""
    j = 0
    while j + 1 < prototypes.shape[1] and prototypes[token, j] != prototype:
        j += 1
    return j


@no_type_check
@compiled
def visit(
    pool: Any, queries: Any, inverted: Any, asked: Any, first: Any, last: Any, scores: Any
) -> None:
    """Add to scores[0, sequence] for the tokens at which one query's prototypes are active.

    inverted holds `starts` [prototypes + 1] and `tokens`, rising within a prototype; asked the
    query's prototypes. Sequences are taken a few at a time, so that a token met by several
    prototypes is still at hand.
    """
    width = queries.rows.shape[1]
    error, state = np.empty((1, width), np.float32), np.empty((1, width), np.float32)
    upto = np.empty(asked.shape[0], np.int64)
    for n in range(asked.shape[0]):
        begin, end = inverted.starts[asked[n]], inverted.starts[asked[n] + 1]
        upto[n] = lower_bound(inverted.tokens, begin, end, pool.offsets[first])
    for block in range(first, last, BLOCK):
        bound = pool.offsets[min(block + BLOCK, last)]
        for n in range(asked.shape[0]):
            r = queries.row_of[0, asked[n]]
            s = block
            end = inverted.starts[asked[n] + 1]
            while upto[n] < end and inverted.tokens[upto[n]] < bound:
                token = np.int64(inverted.tokens[upto[n]])
                upto[n] += 1
                while token >= pool.offsets[s + 1]:
                    s += 1
                j = place_of(pool.prototypes, token, asked[n])
                activation = np.float32(pool.activations[token, j] * pool.step)
                if queries.statistic == ACTIVATIONS:
                    scores[0, s] += activation * queries.rows[r, 0]
                    continue
                unpack(pool.errors, token, pool.scales[token, 0], error, 0)
                if queries.statistic == PATH:
                    unpack(pool.states, token, pool.scales[token, 1], state, 0)
                slope = np.float32(pool.slopes[token, j] * pool.scales[token, 2])
                scores[0, s] += pair_score(queries, r, error, state, 0, (activation, slope))


@no_type_check
@inlined
def add_gradient(
    rows: Any, n: Any, direction: Any, error: Any, state: Any, pair: Any, statistic: Any
) -> None:
    """Add the gradient of a decoded token's loss in one of its prototypes to row n.

    direction: p/|p| of all prototypes, and which one it is. pair: activation a and slope b.
    """
    directions, i = direction
    activation, slope = pair
    if statistic == ACTIVATIONS:
        rows[n, 0] += activation
        return
    for c in range(rows.shape[1]):
        rows[n, c] += activation * error[0, c]
    if statistic == PATH:
        for c in range(rows.shape[1]):
            rows[n, c] += slope * (state[0, c] - activation * directions[i, c])


@no_type_check
@compiled
def square_norms(
    pool: Any, directions: Any, statistic: Any, first: Any, last: Any, found: Any
) -> None:
    """found[sequence] = squared norm of the gradient of the sequence's summed loss.

    directions: [prototypes d_model] p/|p|, float32.
    """
    k = pool.prototypes.shape[1]
    width = 1 if statistic == ACTIVATIONS else directions.shape[1]
    error, state = np.zeros((1, width), np.float32), np.zeros((1, width), np.float32)
    row_of = np.full(directions.shape[0], -1, np.int64)
    most = min(longest_of(pool.offsets, first, last) * k, directions.shape[0])
    rows, seen = np.empty((most, width), np.float32), np.empty(most, np.int64)
    for s in range(first, last):
        n = 0
        for token in range(pool.offsets[s], pool.offsets[s + 1]):
            if statistic != ACTIVATIONS:
                unpack(pool.errors, token, pool.scales[token, 0], error, 0)
            if statistic == PATH:
                unpack(pool.states, token, pool.scales[token, 1], state, 0)
            for j in range(k):
                i = pool.prototypes[token, j]
                if row_of[i] < 0:
                    row_of[i], seen[n], rows[n] = n, i, 0
                    n += 1
                activation = np.float32(pool.activations[token, j] * pool.step)
                slope = np.float32(pool.slopes[token, j] * pool.scales[token, 2])
                pair = (activation, slope)
                add_gradient(rows, row_of[i], (directions, i), error, state, pair, statistic)
        found[s] = 0.0
        for m in range(n):
            row_of[seen[m]] = -1
            for c in range(width):
                found[s] += rows[m, c] * rows[m, c]
