"""Rankings of candidates, held against every order there is."""

from itertools import permutations

import numpy as np
import pytest

from engine.atlas import selection
from engine.atlas.selection import (
    ndcg,
    random_figures,
    random_p,
    regret,
    selection_figures,
    trainings_saved,
)


OUTCOMES = np.array([0.9, 0.2, 0.5, 0.4, 0.7])


def test_a_perfect_order_loses_nothing():
    """And the opposite one loses most."""
    found = selection_figures(OUTCOMES, OUTCOMES)
    assert found["ndcg@10"] == pytest.approx(1)
    assert found["regret@1"] == found["regret@5"] == 0
    assert found["trainings_saved"] == pytest.approx(0.8)
    assert found["spearman"] == pytest.approx(1)
    assert selection_figures(OUTCOMES, -OUTCOMES)["regret@1"] == pytest.approx(0.7)


def test_gains_are_discounted_by_hand():
    """Order 0.2, 0.9: (0.2 / 1 + 0.9 / log2 3) over (0.9 + 0.2 / log2 3); losses are no gains."""
    third = 1 / np.log2(3)
    own = ndcg(np.array([0.9, 0.2]), np.array([0.0, 1.0]))
    assert own == pytest.approx((0.2 + 0.9 * third) / (0.9 + 0.2 * third))
    assert ndcg(np.array([0.9, -5.0]), np.array([1.0, 0.0])) == 1
    assert np.isnan(ndcg(np.array([0.0, -1.0]), np.array([1.0, 0.0])))


def test_random_means_are_those_over_all_orders(monkeypatch):
    """In closed form here, by all 120 orders there; with two places counted of five."""
    monkeypatch.setattr(selection, "TOP", 2)
    monkeypatch.setattr(selection, "SHORTLISTS", (1, 3))
    orders = [np.array(order, dtype=float) for order in permutations(range(5))]
    expected = [selection_figures(OUTCOMES, order) for order in orders[::1]]
    found = random_figures(OUTCOMES)
    for name in ("ndcg@2", "regret@1", "regret@3", "trainings_saved"):
        assert found[name] == pytest.approx(np.mean([own[name] for own in expected])), name


def test_random_savings_count_every_best_model():
    """Two of three are best: the first comes at 4/3 on average."""
    assert selection.random_saved(np.array([1.0, 1.0, 0.0])) == pytest.approx(1 - 4 / 9)
    assert trainings_saved(np.array([1.0, 1.0, 0.0]), np.array([0.0, 1.0, 2.0])) == pytest.approx(
        1 - 2 / 3
    )


def test_chance_is_counted():
    """The best of 120 orders is met once in 120; any order is as good as the worst."""
    assert random_p(OUTCOMES, OUTCOMES) == pytest.approx(1 / 120, abs=0.005)
    assert random_p(OUTCOMES, -OUTCOMES) == pytest.approx(1)


def test_regret_of_a_shortlist_is_that_of_its_best():
    """The second pick is the best model."""
    assert regret(OUTCOMES, np.array([1.0, 2.0, 0.0, 0.0, 0.0]), 1) == pytest.approx(0.7)
    assert regret(OUTCOMES, np.array([1.0, 2.0, 0.0, 0.0, 0.0]), 2) == 0
