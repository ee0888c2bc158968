"""Pictures: how true they are, and where a further model goes."""

import numpy as np
import pytest

from engine.atlas.layouts import beside_neighbours, principal_plane, quality, tsne_plane
from engine.atlas.similarity import unit_rows


def groups(n_groups=5, members=7, d=11, spread=0.05):
    """Directions in tight groups."""
    generator = np.random.default_rng(0)
    centres = np.repeat(generator.normal(size=(n_groups, d)), members, axis=0)
    return centres + spread * generator.normal(size=centres.shape)


def test_a_picture_that_is_the_data_is_wholly_true():
    """Directions on half a circle, drawn as they are: every neighbour is kept."""
    angles = np.linspace(0, np.pi / 2, 23)
    plane = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    found = quality(plane, plane)
    assert found is not None
    assert (found.trustworthiness, found.continuity, found.neighbours_kept) == (1, 1, 1)
    assert found.n_neighbours == 10


def test_a_picture_of_nothing_is_not_true():
    """Random places keep neighbours by chance alone: about 6 of the 34 others in each six."""
    vectors = groups()
    plane = np.random.default_rng(1).normal(size=(len(vectors), 2))
    found = quality(vectors, plane)
    assert found is not None
    assert found.trustworthiness < 0.75
    assert found.neighbours_kept < 0.5


def test_false_neighbours_cost_trust_and_torn_ones_continuity():
    """A group laid on another has false neighbours; a group torn apart has lost ones."""
    vectors = groups(n_groups=3, members=13)
    own = np.concatenate([part - part.mean(0) for part in np.split(unit_rows(vectors)[:, :2], 3)])
    apart = np.repeat([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]], 13, axis=0) + own
    laid_on, torn = apart.copy(), apart.copy()
    laid_on[:13] += [10, 0]
    torn[:7] += [30, 30]
    good, mixed, split = (quality(vectors, plane) for plane in (apart, laid_on, torn))
    assert good is not None
    assert mixed is not None
    assert split is not None
    assert mixed.trustworthiness < good.trustworthiness
    assert split.continuity < good.continuity


def test_tsne_keeps_groups_and_repeats_itself():
    """One seed, one picture; members of a group stay together."""
    vectors = groups()
    plane = tsne_plane(vectors, seed=3)
    assert np.array_equal(plane, tsne_plane(vectors, seed=3))
    found = quality(vectors, plane)
    assert found is not None
    assert found.trustworthiness > 0.9


def test_the_principal_plane_holds_the_most_variance_and_fits_few_models():
    """Of two models one component is left; the other is 0."""
    rows = unit_rows(groups())
    plane = principal_plane(rows)
    centred = rows - rows.mean(0)
    values = np.linalg.svd(centred, compute_uv=False)
    assert (plane**2).sum() == pytest.approx((values[:2] ** 2).sum())
    assert principal_plane(np.eye(2)).shape == (2, 2)
    assert quality(np.eye(3), principal_plane(np.eye(3))) is None


def test_a_further_model_lies_by_its_nearest_neighbour():
    """Neighbours clearly less alike have no say, and a copy does not hide the original."""
    plane = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]])
    place = beside_neighbours(np.array([1.0, 0.4, 0.3]), plane, "copy")
    assert 0 < np.linalg.norm(place - plane[0]) <= 0.1 + 1e-3
    between = beside_neighbours(np.array([0.8, 0.8, 0.1]), plane, "between")
    assert np.linalg.norm(between - [5, 0]) <= 0.1 + 1e-3
    assert np.array_equal(place, beside_neighbours(np.array([1.0, 0.4, 0.3]), plane, "copy"))
    assert not np.array_equal(place, beside_neighbours(np.array([1.0, 0.4, 0.3]), plane, "other"))
