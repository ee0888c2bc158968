"""Comparisons whose failure says where, how many and by how much."""

from typing import Any

import numpy as np


def assert_close(actual: Any, expected: Any, *, rtol: float, atol: float = 0.0) -> None:
    """Values agree; a failure names the worst element, its place, and how many differ."""
    got, want = np.asarray(actual), np.asarray(expected)
    assert got.shape == want.shape, f"shape {got.shape} instead of {want.shape}"
    off = np.abs(got - want)
    allowed = atol + rtol * np.abs(want)
    bad = ~(off <= allowed)
    if not bad.any():
        return
    excess = np.where(np.isnan(off), np.inf, off - allowed)
    place = np.unravel_index(int(excess.argmax()), got.shape)
    raise AssertionError(
        f"{bad.sum()} of {bad.size} values ({bad.mean():.1%}) differ; "
        f"worst at {tuple(map(int, place))}: {got[place]} instead of {want[place]} "
        f"(off by {off[place]:.3g}, allowed {allowed[place]:.3g})"
    )


def assert_plain_sentence(message: str) -> None:
    """A message for people: one paragraph, no traceback, the end of a sentence at its end."""
    assert message.strip() == message
    assert "\n" not in message
    assert "Traceback" not in message
    assert message.rstrip("`'\"").endswith((".", "?")), message
