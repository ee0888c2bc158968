from itertools import pairwise

import pytest
import torch
from torch.nn import functional

from engine.errors import ConfigError
from engine.prism.activation import nearest_prototypes
from engine.prism.coverage import Coverage
from engine.prism.kmeans import SHORTEST, bank_from_states, fit_lengths, spherical_kmeans


D_MODEL = 7


def planted(per_topic=31, spread=0.05):
    """Five directions, states scattered around each at lengths from 1 to 20."""
    topics = torch.linalg.qr(torch.randn(D_MODEL, D_MODEL)).Q[:5]
    states = topics.repeat_interleave(per_topic, 0) + spread * torch.randn(5 * per_topic, D_MODEL)
    return topics, states * torch.linspace(1, 20, len(states))[:, None]


def test_centroids_find_planted_directions_whatever_the_lengths_of_states():
    """Clustering is of directions: long states count no more than short ones."""
    topics, states = planted()
    centroids = spherical_kmeans(states, 5, iterations=30)
    assert (topics @ centroids.T).max(dim=1).values.min() > 0.98
    torch.testing.assert_close(centroids.norm(dim=1), torch.ones(5))


def test_iterations_never_lower_the_mean_cosine():
    """Lloyd's algorithm climbs."""
    states = torch.randn(101, D_MODEL)
    scores = []
    for iterations in (0, 1, 2, 4, 8, 16):
        centroids = spherical_kmeans(states, 11, iterations=iterations)
        cosines, _ = nearest_prototypes(functional.normalize(states, dim=1), centroids, 1)
        scores.append(cosines.mean().item())
    assert all(later >= earlier - 1e-6 for earlier, later in pairwise(scores))


def test_the_same_seed_gives_the_same_bank_and_another_seed_another():
    """A run is repeatable."""
    states = torch.randn(101, D_MODEL)
    first, again, other = (bank_from_states(states, 11, 3, seed=s) for s in (3, 3, 4))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_empty_clusters_restart_so_that_every_prototype_is_near_some_state():
    """With identical states most clusters would stay empty and drift to nothing."""
    states = torch.ones(13, D_MODEL)
    states[0] = -1
    centroids = spherical_kmeans(states, 11, iterations=3)
    assert bool(torch.isfinite(centroids).all())
    assert (functional.normalize(states, dim=1) @ centroids.T).max(dim=0).values.min() > 0.99


def test_more_prototypes_than_states_are_refused_with_both_numbers():
    """The sentence names what to change."""
    with pytest.raises(ConfigError, match=r"11 prototypes cannot be fitted to 5 states"):
        spherical_kmeans(torch.randn(5, D_MODEL), 11)


def test_one_active_prototype_gets_the_length_of_its_states():
    """States of length 3 with a single active prototype: z is rebuilt best by s a q with s = 3.

    The error |z - s a q|^2 = 9 - 6 s a^2 + s^2 a^2 is least at s = 3, whatever the cosine a.
    """
    topics, states = planted(spread=0.2)
    states = functional.normalize(states, dim=1) * 3
    lengths = fit_lengths(states, topics, 1)
    torch.testing.assert_close(lengths, torch.full((5,), 3.0), rtol=1e-3, atol=0)


def test_fitted_lengths_rebuild_better_than_any_common_length():
    """That is what a length of its own is for; no prototype falls below the floor."""
    states = torch.randn(401, D_MODEL) * torch.linspace(0.5, 4, 401)[:, None]
    units = spherical_kmeans(states, 23)
    lengths = fit_lengths(states, units, 5)

    def share(bank):
        coverage = Coverage(bank, 5)
        coverage.update(states)
        return coverage.report().residual_share

    common = min(share(units * c) for c in torch.linspace(0.1, 3, 30))
    assert share(units * lengths[:, None]) < common
    assert lengths.min() >= SHORTEST * 0.1


def test_a_bank_from_states_covers_them_better_than_a_random_one():
    """The start of every fit."""
    states = torch.randn(401, D_MODEL)

    def report(bank):
        coverage = Coverage(bank, 3)
        coverage.update(states)
        return coverage.report()

    fitted, random = report(bank_from_states(states, 23, 3)), report(torch.randn(23, D_MODEL))
    assert fitted.token_coverage > random.token_coverage
    assert fitted.prototype_coverage > random.prototype_coverage
    assert fitted.residual_share < random.residual_share
