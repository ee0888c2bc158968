"""Bases that are named, refused and missed, by hand."""

import numpy as np
import pytest

from engine.atlas.parents import Retrieval, holm, is_right, parent_metrics, retrieve
from tests.assertions import assert_close
from tests.engine.atlas.made_families import FAMILY


def test_holm_by_hand():
    """0.01 * 4, 0.02 * 3, the rest carried up, one at most."""
    got = holm(np.array([0.04, 0.01, 0.02, 0.9]))
    assert_close(got, [0.08, 0.04, 0.06, 0.9], rtol=1e-12)
    assert_close(holm(np.array([0.6, 0.5])), [1.0, 1.0], rtol=1e-12)


def families(n=60, alike=0.9):
    """`n` bases with a child each; a child is like its base, and everything else is noise."""
    generator = np.random.default_rng(0)
    noise = generator.uniform(0, 0.3, (2 * n, 2 * n))
    similarity = np.triu(noise, 1) + np.triu(noise, 1).T
    for base in range(n):
        similarity[base, n + base] = similarity[n + base, base] = alike
    parents = [[] for _ in range(n)] + [[base] for base in range(n)]
    is_base = np.arange(2 * n) < n
    unit = np.tile(np.arange(n), 2)
    return similarity, parents, is_base, unit, unit % 2


def test_a_child_gets_its_base_and_a_base_none():
    """The child is the base's nearest, and still no candidate: candidates are bases."""
    similarity, parents, is_base, unit, half = families()
    found = retrieve(similarity, parents, is_base, unit, half)
    assert sum(r.predicted is not None for r in found[:60]) <= 6  # one in twenty by design
    assert [r.predicted for r in found[60:]] == list(range(60))
    assert {r.rank_of_parent for r in found[:60]} == {None}
    assert {r.rank_of_parent for r in found[60:]} == {1}
    # 60 candidates, and one more than the 30 bases times 58 unrelated models of the other half
    assert found[60].p_value == pytest.approx(60 / (1 + 30 * 58))


def test_a_base_that_is_no_more_alike_than_chance_is_not_named():
    """Retrieval that always named someone would be wrong about every base that is missing."""
    similarity, parents, is_base, unit, half = families(alike=0.2)
    found = retrieve(similarity, parents, is_base, unit, half)
    assert sum(r.predicted is not None for r in found) <= 12
    assert np.median([r.p_value for r in found]) > 0.3
    assert np.mean([r.rank_of_parent for r in found[60:]]) > 5


def test_a_prediction_is_right_by_the_documents():
    """Of a base whose weights are its own, of one that is not in the map, of nothing known."""
    names = ("one", "one-sft", "far", "nobody", "two-sft")

    def says(model, predicted):
        place = None if predicted is None else names.index(predicted)
        return is_right(Retrieval(names.index(model), place, 0.5, 0.01, None), names, FAMILY)

    assert says("one-sft", "one") is True
    assert says("one-sft", "far") is False
    assert says("one-sft", None) is False
    assert says("one", None) is True
    assert says("one", "far") is False
    assert says("two-sft", None) is True  # its base is not in the map
    assert says("nobody", "one") is None


def test_measures_of_retrieval_by_hand():
    """Three models of known lineage: one right, one wrongly named, one base left alone."""
    names = ("one", "far", "one-sft", "one-lora", "nobody")
    found = [
        Retrieval(0, None, 0.1, 0.9, None),
        Retrieval(1, 0, 0.9, 0.01, None),
        Retrieval(2, 0, 0.9, 0.01, 1),
        Retrieval(3, None, 0.2, 0.9, 4),
        Retrieval(4, 0, 0.9, 0.01, None),
    ]
    got = parent_metrics(found, names, FAMILY)
    assert got == {
        "recall_at_1": (0.5, 2),
        "mean_reciprocal_rank": ((1 + 0.25) / 2, 2),
        "precision": (0.5, 2),
        "recall": (0.5, 2),
        "no_parent_recall": (0.5, 2),
    }
