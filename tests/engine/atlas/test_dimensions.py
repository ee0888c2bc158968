"""What projections do to distances, held against the projection itself and against theory."""

import numpy as np
import pytest

from engine.able.projection import project
from engine.atlas.dimensions import dimension_measures, projected, relative_error, seed_agreements
from engine.atlas.similarity import shared_roots, unit_rows


@pytest.fixture(scope="module")
def made():
    generator = np.random.default_rng(2)
    vectors = unit_rows(generator.normal(size=(13, 997)))
    return vectors, generator.integers(2**63, size=997).astype(np.uint64)


def test_projections_to_fewer_dimensions_are_cut_from_that_to_the_most(made):
    """So one projection serves all of them, and each is what `project` gives."""
    vectors, keys = made
    for k, short in projected(vectors, keys, (7, 64, 128), seed=5).items():
        assert short == pytest.approx(project(vectors, keys, k, 5), abs=1e-6)


def test_squared_distances_are_off_by_what_theory_expects(made):
    """sqrt(2 / k), and no error without a projection."""
    vectors, keys = made
    for k, short in projected(vectors, keys, (64, 256, 1024), seed=1).items():
        assert relative_error(vectors, short) == pytest.approx(np.sqrt(2 / k), rel=0.35)
    assert relative_error(vectors, vectors) == 0


def test_measures_name_every_dimension_and_none(made):
    """More dimensions agree more with no projection."""
    vectors, keys = made
    related = shared_roots([[str(n % 3)] for n in range(13)])
    rows = list(dimension_measures(vectors, keys, related, (0, 1), (32, 512)))
    assert {k for k, _, _ in rows} == {None, 32, 512}
    mean = {k: np.mean([v for d, m, v in rows if (d, m) == (k, "agreement")]) for k in (32, 512)}
    assert mean[32] < mean[512] < 1
    assert len([1 for k, m, _ in rows if (k, m) == (32, "lineage_auc")]) == 2


def test_seeds_are_compared_with_the_first(made):
    """Two measures for every other seed; a seed with itself would be 1."""
    vectors, keys = made
    rows = list(seed_agreements(vectors, keys, 64, (0, 1, 2)))
    assert len(rows) == 4
    assert all(-1 <= value < 1 for name, value in rows if name == "agreement")
    same = dict(seed_agreements(vectors, keys, 64, (4, 4)))
    assert same["agreement"] == pytest.approx(1)
