"""Scores told of models, by hand."""

import numpy as np
import pytest
from scipy.stats import pearsonr, spearmanr

from engine.atlas.forecasts import (
    Told,
    best_ranks,
    forecast_figures,
    neighbours_mean,
    pearsons,
    relatives_mean,
    spearmans,
    tell_all,
    told_of,
    training_means,
)
from engine.atlas.ridge import ridge_left_out


SCORES = np.array([[0.1], [0.3], [0.5], [0.9]])
APART = np.arange(4)


def test_relatives_are_the_nearest_that_stay():
    """A chain 0 - 1 - 2, and 3 alone: it gets the mean of all others."""
    far = np.inf
    edges = np.array([[0, 1, 2, far], [1, 0, 1, far], [2, 1, 0, far], [far, far, far, 0]])
    told = relatives_mean(edges, SCORES, APART)
    np.testing.assert_allclose(told[:, 0], [0.3, 0.3, 0.3, 0.3])
    alone = relatives_mean(edges, SCORES, np.array([0, 0, 0, 1]))
    np.testing.assert_allclose(alone[:, 0], [0.9, 0.9, 0.9, 0.3])


def test_neighbours_are_the_nearest_of_other_groups():
    """The nearest of one's own group are not asked."""
    similarity = np.array(
        [[1.0, 0.9, 0.2, 0.1], [0.9, 1.0, 0.3, 0.2], [0.2, 0.3, 1.0, 0.5], [0.1, 0.2, 0.5, 1.0]]
    )
    told = neighbours_mean(similarity, SCORES, APART, n=1)
    np.testing.assert_allclose(told[:, 0], [0.3, 0.1, 0.9, 0.5])
    grouped = neighbours_mean(similarity, SCORES, np.array([0, 0, 1, 2]), n=2)
    np.testing.assert_allclose(grouped[0], (0.5 + 0.9) / 2)


def test_correlations_are_the_library_s():
    """By column, ties included; of a constant column there is none."""
    generator = np.random.default_rng(0)
    a = generator.integers(0, 5, (19, 3)).astype(float)
    b = a + generator.normal(0, 1, (19, 3))
    for place in range(3):
        assert pearsons(a, b)[place] == pytest.approx(pearsonr(a[:, place], b[:, place])[0])
        assert spearmans(a, b)[place] == pytest.approx(spearmanr(a[:, place], b[:, place])[0])
    assert np.isnan(spearmans(np.ones((5, 1)), b[:5, :1])[0])


def test_the_rank_of_the_best_is_its_place_among_predictions():
    """The best is predicted second; of two best models the one that comes first counts."""
    assert best_ranks(np.array([[0.2], [0.9], [0.1], [0.5]]), SCORES).tolist() == [2]
    assert best_ranks(np.array([[3.0], [2.0], [1.0]]), np.array([[0.0], [1.0], [1.0]])) == [2]


def test_figures_are_given_by_target_and_as_their_mean():
    """Two targets, one told exactly and one in the opposite order."""
    targets = np.hstack([SCORES, SCORES])
    told = Told(targets, np.hstack([SCORES, -SCORES]))
    found = forecast_figures(told, targets, APART)
    assert [estimate.value for estimate in found["spearman"]] == pytest.approx([1, -1, 0])
    assert [estimate.n for estimate in found["spearman"]] == [4, 4, 2]
    assert [estimate.value for estimate in found["best_rank"]] == [1, 4, 2.5]
    assert found["mae"][0].value == 0


def test_the_mean_of_the_others_ranks_nobody():
    """It falls as the own score rises: that is arithmetic, and no forecast, good or bad."""
    told = told_of(training_means(SCORES, APART), SCORES, APART)
    assert spearmans(told.predicted, SCORES)[0] == pytest.approx(-1)
    found = forecast_figures(told, SCORES, APART)
    assert np.isnan(found["spearman"][0].value)
    assert np.isnan(found["best_rank"][0].value)
    assert found["mae"][0].value == pytest.approx(np.abs(told.predicted - SCORES).mean())


def test_features_without_a_signal_rank_nobody_backwards():
    """Ridge then tells the mean of the others, which alone would be a correlation near -1."""
    generator = np.random.default_rng(0)
    features, scores = generator.normal(size=(61, 3)), generator.random((61, 1))
    groups = np.arange(61)
    told = told_of(ridge_left_out(features, scores, groups), scores, groups)
    assert spearmans(told.predicted, scores)[0] < -0.5
    assert abs(spearmans(told.beyond, scores)[0]) < 0.4


def test_every_method_tells_every_model():
    """And relatives are asked only where lineage is documented."""
    generator = np.random.default_rng(0)
    features = {"able": generator.normal(size=(4, 3))}
    found = tell_all(features, SCORES, APART, features["able"])
    assert set(found) == {"able", "neighbours", "mean"}
    assert all(told.predicted.shape == (4, 1) for told in found.values())
