"""Hypothesis strategies shared by tests."""

import numpy as np
from hypothesis import strategies as st


SMALL_PRIMES = (2, 3, 5, 7, 11, 13, 17)


def seeds() -> st.SearchStrategy[int]:
    """Seeds of a random generator."""
    return st.integers(0, 2**32 - 1)


def texts() -> st.SearchStrategy[str]:
    """Any text a person or a file may hold, NUL and right-to-left included; no lone surrogates."""
    return st.text(st.characters(codec="utf-8"), max_size=200)


@st.composite
def unit_rows(draw: st.DrawFn, rows: int, width: int) -> np.ndarray:
    """A float64 matrix whose rows have length one."""
    generator = np.random.default_rng(draw(seeds()))
    matrix = generator.normal(size=(rows, width))
    return matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
