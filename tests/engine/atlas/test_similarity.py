"""Cosines of models with one another, worked by hand and held against slow loops."""

import numpy as np
import pytest

from engine.atlas.similarity import (
    agreement,
    cosines,
    lineage_auc,
    nearest,
    neighbours_kept,
    shared_roots,
    unit_rows,
)


@pytest.fixture
def vectors():
    return np.random.default_rng(3).normal(size=(7, 5))


def test_cosines_are_those_of_a_loop(vectors):
    """And a model without any attribution is like none, not an error."""
    vectors[2] = 0
    found = cosines(vectors)
    for a in range(7):
        for b in range(7):
            lengths = np.linalg.norm(vectors[a]) * np.linalg.norm(vectors[b])
            expected = vectors[a] @ vectors[b] / lengths if lengths else 0.0
            assert found[a, b] == pytest.approx(expected, abs=1e-12)
    assert np.linalg.norm(unit_rows(vectors), axis=1)[[0, 1, 3]] == pytest.approx(1)


def test_agreement_is_the_correlation_over_pairs(vectors):
    """Each pair once, the diagonal left out: it is 1 for everybody and would flatter."""
    first, second = cosines(vectors), cosines(vectors + 0.5)
    upper = np.triu_indices(7, 1)
    assert agreement(first, second) == pytest.approx(np.corrcoef(first[upper], second[upper])[0, 1])
    assert agreement(first, np.ones((7, 7))) == 0


def test_neighbours_are_counted_without_the_model_itself():
    """Three models on a line: 0 and 1 are each other's nearest, 2 is nearest to 1."""
    square = np.array([[1, 0.9, 0.1], [0.9, 1, 0.5], [0.1, 0.5, 1.0]])
    assert nearest(square, 1).ravel().tolist() == [1, 0, 1]
    other = square[::-1, ::-1]
    assert neighbours_kept(square, square, 1) == 1
    assert neighbours_kept(square, other, 1) == pytest.approx(2 / 3)
    assert neighbours_kept(square, other, 9) == 1


def test_relatives_share_a_root_and_models_of_unknown_roots_have_none():
    """A merge has two roots."""
    found = shared_roots([["a"], ["a", "b"], ["b"], [], []])
    assert found.tolist() == [
        [True, True, False, False, False],
        [True, True, True, False, False],
        [False, True, True, False, False],
        [False] * 5,
        [False] * 5,
    ]


def test_lineage_auc_counts_pairs_by_hand():
    """Related: 01 (0.5). Unrelated: 02 (0.1), 12 (0.7). One of two is below: AUC 1/2."""
    square = np.array([[1, 0.5, 0.1], [0.5, 1, 0.7], [0.1, 0.7, 1]])
    assert lineage_auc(square, shared_roots([["a"], ["a"], ["b"]])) == 0.5
    assert lineage_auc(square, shared_roots([["a"], ["a"], ["a"]])) is None
    assert lineage_auc(square, shared_roots([[], [], []])) is None
