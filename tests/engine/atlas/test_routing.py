"""Choosing models for questions, by hand."""

import numpy as np
import pytest

from engine.atlas.resampling import grouped_mean
from engine.atlas.routing import (
    Judged,
    auc_of,
    budget_figures,
    budgets,
    chosen,
    figures,
    right_of,
    seed_spread,
    single_best,
    usage_random,
)


CORRECT = np.array([[1, 1, 0, 0, 1], [0, 0, 1, 1, 0], [0, 1, 0, 0, 0]], dtype=bool)
TOLD = np.array([[0.9, 0.6, 0.2, 0.7, 0.6], [0.1, 0.6, 0.8, 0.6, 0.1], [0.2, 0.1, 0.1, 0.1, 0.9]])
EVERYONE = np.ones(3, dtype=bool)
JUDGED = Judged(CORRECT, np.array([0, 1, 1, 2, 3]), np.array([0, 0, 1, 1, 1]))


def test_the_likeliest_model_is_called():
    """Of ties the first; a model that is not allowed is never called."""
    assert chosen(TOLD, EVERYONE).tolist() == [0, 0, 1, 0, 2]
    assert chosen(TOLD, np.array([False, True, True])).tolist() == [2, 1, 1, 1, 2]
    assert right_of(chosen(TOLD, EVERYONE), CORRECT).tolist() == [1, 1, 1, 0, 0]


def test_the_same_calls_are_dealt_at_random():
    """Three of five calls to the first model, one to each of the others."""
    expected = [0.6, 0.6 + 0.2, 0.2, 0.2, 0.6]
    np.testing.assert_allclose(usage_random(np.array([0, 0, 1, 0, 2]), CORRECT), expected)


def test_the_single_best_is_chosen_on_other_folds():
    """Fold 0 is judged by fold 1, where the second model leads; fold 1 by fold 0: the first."""
    assert single_best(CORRECT, JUDGED.fold, EVERYONE).tolist() == [1, 1, 0, 0, 0]


def test_every_figure_follows_from_the_predictions():
    """Accuracy 3 of 5, single best 1 of 5, random 6 of 15, an oracle 5 of 5, pairs 12 of 15."""
    rows = {
        (router, metric): estimate
        for router, _, metric, estimate in figures(
            {"able": TOLD[None], "embedllm": 1 - TOLD[None]},
            JUDGED,
            {"all": np.ones(5, dtype=bool)},
            learned="embedllm",
        )
    }
    assert rows["able", "accuracy"].value == pytest.approx(0.6)
    assert rows["single_best", "accuracy"].value == pytest.approx(0.2)
    assert rows["random", "accuracy"].value == pytest.approx(6 / 15)
    assert rows["oracle", "accuracy"].value == 1
    assert rows["able", "over_single_best"].value == pytest.approx(0.4)
    pairs = ((TOLD > 0.5) == CORRECT).mean()
    assert rows["able", "correctness"].value == pytest.approx(pairs)
    assert rows["able", "correctness"].n == 15
    other = rows["embedllm", "accuracy"].value
    assert rows["able", "over_embedllm"].value == pytest.approx(0.6 - other)
    assert rows["able", "models_used"].value == 3
    assert ("embedllm", "over_embedllm") not in rows


def test_figures_are_means_over_seeds_and_their_spread_is_told():
    """Two seeds with accuracies of 3/5 and 2/5."""
    other = np.array([[0.9, 0.9, 0.9, 0.9, 0.0], [0, 0, 0, 0, 0.9], [0, 0, 0, 0, 0]], dtype=float)
    both = {"able": np.stack([TOLD, other])}
    found = next(iter(figures(both, JUDGED, {"all": np.ones(5, dtype=bool)}, learned="able")))
    assert found[2] == "accuracy"
    assert found[3].value == pytest.approx(0.5)
    (spread,) = seed_spread(both, JUDGED)
    assert spread[3].value == pytest.approx(np.std([0.6, 0.4], ddof=1))
    assert not list(seed_spread({"knn": TOLD[None]}, JUDGED))


def test_a_budget_leaves_models_out():
    """With the smallest model alone every way of choosing is that model, the oracle included."""
    sizes = np.array([30, 10, 20])
    assert budgets(sizes, 3).tolist() == [10, 20, 30]
    rows = {(r, g): e.value for r, g, _, e in budget_figures({"able": TOLD[None]}, JUDGED, sizes)}
    assert rows["able", "budget:10"] == rows["oracle", "budget:10"] == pytest.approx(0.4)
    assert rows["able", "budget:30"] == pytest.approx(0.6)


def test_area_of_one_kind_is_none():
    """Where all pairs are right there is nothing to rank."""
    assert auc_of(TOLD, np.ones_like(CORRECT)) is None
    assert auc_of(CORRECT.astype(float), CORRECT) == 1


def test_facts_are_drawn_whole():
    """Ten wordings that agree are one fact: the interval is that of two facts, not of eleven."""
    values = np.array([1.0] * 10 + [0.0])
    apart = grouped_mean(values, np.arange(11))
    together = grouped_mean(values, np.array([0] * 10 + [1]))
    assert apart.value == together.value == pytest.approx(10 / 11)
    assert together.low == 0
    assert apart.low > 0.6
