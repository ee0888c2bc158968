"""Ridge regressions on models that stay, told of those left out."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge, RidgeCV

from engine.atlas.ridge import (
    PENALTIES,
    _group_penalties,
    _Ridge,
    _Scaled,
    _single_penalties,
    fewer_columns,
    ridge_left_out,
)


@pytest.fixture
def planted():
    """23 models of 7 groups: targets follow two of eleven features."""
    generator = np.random.default_rng(0)
    groups = np.arange(23) % 7
    features = generator.normal(size=(23, 11))
    weights = np.zeros((11, 2))
    weights[0, 0], weights[1, 1] = 3.0, -2.0
    return features, features @ weights + generator.normal(0, 0.1, (23, 2)), groups


def test_a_path_of_penalties_is_the_library_s_ridge(planted):
    """One decomposition in place of a fit for each penalty must change nothing."""
    features, targets, _ = planted
    penalties = np.array([0.01, 10.0])
    told = _Ridge(features[:17], targets[:17]).predict(features[17:], penalties)
    x, y = _Scaled.of(features[:17], each=False), _Scaled.of(targets[:17], each=True)
    fitted = Ridge(penalties).fit(x.apply(features[:17]), y.apply(targets[:17]))
    np.testing.assert_allclose(
        told, fitted.predict(x.apply(features[17:])) * y.scale + y.centre, atol=1e-10
    )


def test_single_models_are_told_as_by_a_loop(planted):
    """Each by a RidgeCV over all others, written out."""
    features, targets, _ = planted
    told = ridge_left_out(features, targets, np.arange(23))
    for left in (0, 13):
        stay = np.arange(23) != left
        x, y = _Scaled.of(features[stay], each=False), _Scaled.of(targets[stay], each=True)
        fitted = RidgeCV(PENALTIES, alpha_per_target=True)
        fitted.fit(x.apply(features[stay]), y.apply(targets[stay]))
        expected = fitted.predict(x.apply(features[[left]])) * y.scale + y.centre
        np.testing.assert_allclose(told[[left]], expected, atol=1e-8)
    assert np.corrcoef(told[:, 0], targets[:, 0])[0, 1] > 0.98


def test_what_is_left_out_is_not_read(planted):
    """Were the own group's targets used, changing them would change what is told of it."""
    features, targets, groups = planted
    told = ridge_left_out(features, targets, groups)
    changed = targets.copy()
    changed[groups == 3] += 100
    again = ridge_left_out(features, changed, groups)
    np.testing.assert_array_equal(told[groups == 3], again[groups == 3])
    assert not np.allclose(told[groups != 3], again[groups != 3])


def test_penalties_are_chosen_with_groups_left_out():
    """Features that only name the group tell siblings and no strangers, so strangers need more."""
    generator = np.random.default_rng(1)
    groups = np.repeat(np.arange(10), 4)
    features = generator.normal(size=(10, 31))[groups]
    targets = generator.normal(size=(10, 1))[groups] + generator.normal(0, 0.01, (40, 1))
    apart = _group_penalties(features, targets, groups)[0]
    assert apart > 100 * _single_penalties(features, targets)[0]
    told = ridge_left_out(features, targets, np.arange(40))
    assert np.corrcoef(told[:, 0], targets[:, 0])[0, 1] > 0.99
    told = ridge_left_out(features, targets, groups)
    assert np.corrcoef(told[:, 0], targets[:, 0])[0, 1] < 0.5


def test_constant_features_and_targets_are_no_failure():
    """Every model of one size, or one score: the mean is told."""
    told = ridge_left_out(np.ones((7, 1)), np.full((7, 1), 0.25), np.arange(7))
    np.testing.assert_allclose(told, 0.25)


def test_many_columns_are_fewer_without_a_difference():
    """Products of models stay, and so does all that a ridge regression tells."""
    generator = np.random.default_rng(0)
    many = generator.normal(size=(13, 101))
    few = fewer_columns(many)
    assert few.shape == (13, 13)
    np.testing.assert_allclose(few @ few.T, many @ many.T, atol=1e-9)
    targets, groups = many[:, :2] + 1, np.arange(13) % 5
    penalties = np.array([0.1, 1.0])
    own, other = (
        _Ridge(rows[:9], targets[:9]).predict(rows[9:], penalties) for rows in (many, few)
    )
    np.testing.assert_allclose(own, other, atol=1e-9)
    np.testing.assert_array_equal(fewer_columns(many[:, :7]), many[:, :7])
    assert ridge_left_out(many, targets, groups).shape == (13, 2)
