"""A head's influence as figures draw it: axis, bins, tail and shares against obvious answers."""

import numpy as np
import pytest

from dashboard import head_tails as tails
from dashboard.head_tails import BINS, SymmetricLog


def sizes() -> np.ndarray:
    """Heavy-tailed values of both signs, a zero and a skipped sample."""
    generator = np.random.default_rng(7)
    values = generator.pareto(1.3, 311) * generator.choice([1, -1], 311)
    return np.concatenate([values, [0.0, np.nan]])


def test_the_axis_keeps_signs_and_is_its_own_inverse():
    """Negative influence lies left of zero, as far out as positive influence of its size."""
    scale = SymmetricLog.over(sizes())
    known = sizes()[:-1]
    places = scale.place(known)
    assert np.array_equal(np.sign(places), np.sign(known))
    assert scale.value(places) == pytest.approx(known)
    assert scale.place(-known) == pytest.approx(-places)


def test_every_known_sample_lies_in_the_bin_whose_edges_hold_it():
    """And a bin holds one sign: the two largest samples are in the outer bins of theirs."""
    values = sizes()
    scale = SymmetricLog.over(values)
    bins, edges = scale.bin_of(values), scale.edges()
    assert bins[-1] == -1
    for value, place in zip(values[:-1], bins[:-1], strict=True):
        low, high = scale.value(edges[place : place + 2])
        assert low - 1e-9 <= value <= high + 1e-9
        assert (value < 0) == (place < BINS // 2)
    largest = np.nanargmax(np.abs(values))
    assert bins[largest] in (0, BINS - 1)
    assert tails.counts(values, scale).sum() == len(values) - 1


def test_the_page_opens_on_the_most_positive_bin_that_has_samples():
    """One outlier alone is passed over when a fuller bin is there."""
    values = np.array([-5.0, 1.0, 1.0, 1.0, 1e6])
    scale = SymmetricLog.over(values)
    assert tails.opening_bin(values, scale) == scale.bin_of(np.array([1.0]))[0]
    alone = np.array([-3.0, 2.0])
    scale = SymmetricLog.over(alone)
    assert tails.opening_bin(alone, scale) == scale.bin_of(alone)[1]
    assert tails.opening_bin(np.array([np.nan]), SymmetricLog.over(np.array([]))) == BINS // 2


def test_ticks_are_zero_and_powers_of_ten_of_both_signs():
    """A minus is a minus sign, a plus is said: colour is never alone."""
    scale = SymmetricLog(1e-3, float(np.log10(1 + 10 / 1e-3)))
    places, words = scale.ticks()
    assert words[len(words) // 2] == "0"
    assert places == pytest.approx([-p for p in reversed(places)])
    assert words[-1] == "+10<sup>1</sup>"
    assert words[0] == "−10<sup>1</sup>"
    assert scale.value(np.array(places[-1:]))[0] == pytest.approx(10)


def test_sides_are_sizes_from_the_largest_on():
    """Zeros and skipped samples belong to none."""
    values = np.array([3.0, -5.0, 0.0, 7.0, np.nan, -2.0])
    assert tails.side(values, "positive").tolist() == [7, 3]
    assert tails.side(values, "negative").tolist() == [5, 2]


def test_the_fitted_line_starts_at_the_share_of_its_tail():
    """P(X ≥ xmin) is the tail's share of the side, and falls by the exponent minus one."""
    ordered = np.array([100.0, 10.0, 5.0, 2.0, 1.0])
    found = tails.fitted_tail(ordered, exponent=3.0, xmin=2.0, n_tail=4)
    assert found is not None
    sizes_drawn, shares = found
    assert shares[0] == pytest.approx(4 / 5)
    assert shares[-1] == pytest.approx(4 / 5 * (100 / 2) ** -2)
    assert tails.fitted_tail(ordered, np.nan, 2.0, 4) is None
    assert tails.fitted_tail(ordered[:0], 3.0, 2.0, 4) is None
    assert sizes_drawn[-1] == pytest.approx(100)


def test_shares_run_from_the_largest_sample():
    """One of four samples carries what it carries, and equal ones carry their share."""
    ordered = np.array([6.0, 2.0, 1.0, 1.0])
    assert tails.carried_by(ordered, 0.25) == pytest.approx(0.6)
    assert tails.carried_by(np.ones(10), 0.3) == pytest.approx(0.3)
    assert tails.carried_by(np.array([]), 0.1) == 0
    assert tails.exceedance(ordered).tolist() == [0.25, 0.5, 0.75, 1.0]


@pytest.mark.parametrize("n", [0, 3, 401, 20_011])
def test_thinning_keeps_both_ends_and_the_order(n: int):
    """A curve over ranks draws few points, the first ranks among them."""
    kept = tails.thinned(n)
    assert len(kept) <= tails.MOST_POINTS
    assert np.all(np.diff(kept) > 0)
    if n:
        assert (kept[0], kept[-1]) == (0, n - 1)
