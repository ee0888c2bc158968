"""Heavy tails: planted exponents, known shares, and the fast fit against the package's."""

import math
import warnings

import numpy as np
import pytest

from engine.errors import ConfigError
from engine.mda.tails import (
    SHORTEST_TAIL,
    ccdf_points,
    fit_tail,
    gini_of,
    lognormal_ratio,
    lorenz_points,
    side_of,
    tail_of,
    top_share,
)


def _pareto(n: int, exponent: float, seed: int = 0) -> np.ndarray:
    return (1 - np.random.default_rng(seed).random(n)) ** (-1 / (exponent - 1))


def test_a_planted_exponent_lies_in_its_interval():
    """1,013 values of a power law from 2 on among 2,003 that are no power law."""
    body = np.random.default_rng(3).uniform(0, 2, 2003)
    for exponent in (2.3, 3.7):
        tail = tail_of(np.concatenate([body, 2 * _pareto(1013, exponent)]))
        assert tail.low < exponent < tail.high
        assert abs(tail.exponent - exponent) < 0.1 * exponent
        assert 1.8 < tail.xmin < 3.5
        assert tail.lognormal_p > 0.05 or tail.lognormal_ratio > 0


def test_a_lognormal_is_preferred_where_it_is_the_truth():
    """Narrow, so that its tail bends well within the sample."""
    values = np.exp(np.random.default_rng(5).normal(0, 0.4, 3001))
    tail = np.sort(values)[-1500:]
    ratio, p = lognormal_ratio(tail)
    assert ratio < 0
    assert p < 0.01


def test_steep_tails_are_compared_at_their_own_exponent():
    """The package alone stops at an exponent of 3, which makes every steep power law lose."""
    ratio, p = lognormal_ratio(np.sort(_pareto(1009, 8.0)))
    assert abs(ratio) < 5
    assert p > 0.01


def test_the_fast_fit_is_the_packages():
    """Exponent and Kolmogorov-Smirnov distance at the chosen xmin, and xmin by trying all."""
    import powerlaw

    values = np.sort(np.exp(np.random.default_rng(7).normal(0, 1, 211)))
    first, exponent, distance = fit_tail(np.log(values), candidates=211)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        slow = [
            powerlaw.Power_Law(
                xmin=x, data=values, verbose=0, parameter_ranges={"alpha": [1.0, None]}
            )
            for x in values[: 211 - SHORTEST_TAIL + 1]
        ]
        own = slow[first]
    assert exponent == pytest.approx(own.alpha, rel=1e-6)
    # the package looks at one side of each step alone
    assert distance + 1e-9 >= own.D
    assert distance - own.D <= 1 / (211 - first) + 1e-9
    spans = [s.D + 1 / len(values[i:]) for i, s in enumerate(slow)]
    assert distance <= min(spans) + 1e-9


def test_a_tail_holds_every_sample_of_its_first_value():
    """Rounded values are equal by the dozen; xmin is one of them."""
    values = np.sort(np.ceil(4 * _pareto(503, 2.5)) / 4)
    for candidates in (7, 101):
        first, _, _ = fit_tail(np.log(values), candidates)
        assert first == np.searchsorted(values, values[first])
        tail = tail_of(values)
        assert tail.n_tail == (values >= tail.xmin).sum()


def test_shares_by_hand():
    """Ten values: the top tenth is one; Gini of (1, 3) is 1/4."""
    assert top_share(np.array([1.0] * 9 + [11.0])) == pytest.approx(0.55)
    assert top_share(np.arange(1.0, 12.0)) == pytest.approx(21 / 66)
    assert gini_of(np.array([3.0, 1.0])) == pytest.approx(0.25)
    assert gini_of(np.full(7, 2.0)) == pytest.approx(0)
    samples, shares = lorenz_points(np.array([1.0, 3.0]))
    assert samples.tolist() == [0, 0.5, 1]
    assert shares.tolist() == [0, 0.75, 1]


def test_zeros_nan_and_the_other_side_belong_to_no_tail():
    """A side is the same with and without them."""
    scores = np.array([np.nan, 0.0, -5.0, 2.0, np.inf, 1.0])
    assert side_of(scores, "positive").tolist() == [2.0, 1.0]
    assert side_of(scores, "negative").tolist() == [5.0]
    with pytest.raises(ConfigError, match="'both'"):
        side_of(scores, "both")


def test_few_samples_have_shares_but_no_exponent():
    """And none at all have nothing."""
    few = tail_of(_pareto(2 * SHORTEST_TAIL - 1, 2.5))
    assert few.n == 2 * SHORTEST_TAIL - 1
    assert 0 < few.gini < 1
    assert math.isnan(few.exponent)
    assert few.n_tail == 0
    none = tail_of(np.full(13, np.nan))
    assert none.n == 0
    assert math.isnan(none.top10_share)
    flat = tail_of(np.full(211, 0.3))
    assert flat.gini == pytest.approx(0)
    assert math.isnan(flat.exponent)


def test_a_change_of_unit_changes_nothing_but_xmin():
    """Influence has no natural unit."""
    values = _pareto(307, 2.5)
    one, other = tail_of(values), tail_of(1e-9 * values)
    assert other.exponent == pytest.approx(one.exponent)
    assert other.low == pytest.approx(one.low)
    assert other.xmin == pytest.approx(1e-9 * one.xmin)
    assert other.lognormal_ratio == pytest.approx(one.lognormal_ratio, abs=1e-6)


def test_the_complementary_distribution_counts_values_at_least_as_large():
    """Against counting, ties included."""
    values = np.array([1.0, 2.0, 2.0, 5.0, 3.0])
    at, share = ccdf_points(values)
    for value, part in zip(at, share, strict=True):
        assert part == (values >= value).mean()
    assert at[0] == 5.0
    assert len(ccdf_points(np.arange(1.0, 5003.0), most=101)[0]) <= 101
