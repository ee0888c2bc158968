"""Bootstrap over questions: known cases, and one question is one unit."""

import numpy as np
import pytest

from engine.control.intervals import MEAN, by_question, paired_intervals


def test_values_of_a_question_are_one_unit():
    """A question that was tested in three splits is not three questions."""
    own = by_question(np.array([5, 3, 5, 3, 9]), np.array([1.0, 0.0, 0.0, 1.0, -1.0]))
    assert own.total.tolist() == [1.0, 1.0, -1.0]
    assert own.times.tolist() == [2, 2, 1]
    assert own.mean() == pytest.approx(0.2)


def test_the_mean_counts_sets_alike_whatever_their_size():
    """A large set must not hide a small one."""
    sets = {
        "small": by_question(np.arange(7), np.full(7, 3.0)),
        "large": by_question(np.arange(101), np.full(101, 1.0)),
    }
    found = paired_intervals(sets)
    assert found[MEAN].value == pytest.approx(2.0)
    assert (found[MEAN].low, found[MEAN].high) == (pytest.approx(2.0), pytest.approx(2.0))
    assert (found["small"].n, found[MEAN].n) == (7, 108)


def test_the_interval_is_near_that_of_the_normal_distribution():
    """Mean plus and minus 1.96 standard errors, for many independent questions."""
    values = np.random.default_rng(1).normal(0.3, 2.0, 1_009)
    found = paired_intervals({"s": by_question(np.arange(1_009), values)})["s"]
    error = values.std() / np.sqrt(1_009)
    assert found.low == pytest.approx(values.mean() - 1.96 * error, abs=0.15 * error)
    assert found.high == pytest.approx(values.mean() + 1.96 * error, abs=0.15 * error)


def test_repeating_every_question_does_not_narrow_the_interval():
    """Seeds that test the same questions bring no new questions."""
    values = np.random.default_rng(2).normal(size=307)
    once = paired_intervals({"s": by_question(np.arange(307), values)})["s"]
    thrice = paired_intervals({"s": by_question(np.tile(np.arange(307), 3), np.tile(values, 3))})[
        "s"
    ]
    assert thrice.high - thrice.low == pytest.approx(once.high - once.low)
