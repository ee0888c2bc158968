"""A Johnson-Lindenstrauss projection with signs hashed from the names of columns.

    y_k = K^(-1/2) Σ_c s_ck x_c,   s_ck = ±1 from a hash of (seed, name of column c, k)

A column's signs depend on its own name alone, so the projection of a vector is the same whichever
other columns exist and in whatever order they come, and a new model moves no other. The sum is
exact: entries are rounded to multiples of 2^-40, whose sums a float64 holds without rounding, so
the order of summation, the machine and its linear algebra do not matter. With K = 256 squared
distances are off by a relative sqrt(2 / K) = 9 % (one standard deviation).

Rademacher signs in place of Gaussian numbers: Achlioptas 2003. The paper (arXiv 2606.07524) draws
one Gaussian matrix whose entries depend on the number of columns.
"""

import math

import numpy as np
from jaxtyping import Float, Float32, UInt64

from engine.able.columns import GOLDEN, mixed
from engine.errors import ConfigError


UNIT = 2.0**40
"""Entries are rounded to multiples of its inverse."""
MAX_COLUMNS = 2**25
"""More columns of unit vectors could sum to more than a float64 counts exactly: the sum of absolute
values is at most sqrt(columns) * UNIT, which stays below 2^53."""
_BLOCK = 1 << 14
_BITS = 64


def column_signs(
    keys: UInt64[np.ndarray, " columns"], n_dimensions: int, seed: int = 0
) -> Float[np.ndarray, "columns dimensions"]:
    """Signs of columns, -1 or 1; those of fewer dimensions are the first of more.

    Args:
        keys: Names of the columns.
        n_dimensions: Dimensions projected to (paper: K).
        seed: Another seed gives other signs.
    """
    counters = np.arange(1, -(-n_dimensions // _BITS) + 1, dtype=np.uint64)
    with np.errstate(over="ignore"):
        start = keys ^ mixed(np.array([seed], dtype=np.uint64) + GOLDEN)
        hashed = mixed(mixed(start)[:, None] + GOLDEN * counters)
    bits = np.unpackbits(hashed.astype("<u8").view(np.uint8), axis=1, bitorder="little")
    return bits[:, :n_dimensions].astype(np.float64) * 2 - 1


def project(
    vectors: Float[np.ndarray, "models columns"],
    keys: UInt64[np.ndarray, " columns"],
    n_dimensions: int,
    seed: int = 0,
) -> Float32[np.ndarray, "models dimensions"]:
    """Project vectors of length 1 at most.

    Raises:
        ConfigError: There are no dimensions, a negative seed, or more columns than sums stay exact
            for.
    """
    if n_dimensions < 1 or seed < 0:
        raise ConfigError(
            f"A projection to {n_dimensions} dimensions with seed {seed} is none; dimensions must "
            "be 1 or more and the seed 0 or more."
        )
    if len(keys) > MAX_COLUMNS:
        raise ConfigError(
            f"The probes give {len(keys):,} columns, and {MAX_COLUMNS:,} can be projected exactly; "
            "use fewer probes."
        )
    whole = np.rint(np.asarray(vectors, dtype=np.float64) * UNIT)
    total = np.zeros((len(whole), n_dimensions))
    for start in range(0, len(keys), _BLOCK):
        block = slice(start, start + _BLOCK)
        total += whole[:, block] @ column_signs(keys[block], n_dimensions, seed)
    return (total / (UNIT * math.sqrt(n_dimensions))).astype(np.float32)
