"""What is left out together."""

import numpy as np
import pytest

from engine.atlas.folds import codes, connected, fact_of, grouped_folds
from engine.errors import ConfigError


def test_wordings_of_a_fact_are_one_fact():
    """A router that saw one wording would know the other."""
    assert fact_of("animals/food/owl/0") == fact_of("animals/food/owl/1") == "animals/food/owl"
    assert fact_of("0123456789abcdef") == "0123456789abcdef"
    assert fact_of("a/1") == "a/1"


def test_groups_stay_together_and_folds_are_even():
    """31 groups of two and one of five over three folds: 67 items, 22 or 23 each."""
    groups = [g for g in range(31) for _ in range(2)] + ["large"] * 5
    fold = grouped_folds(groups, 3, seed=1)
    assert all(len(set(fold[codes(groups) == g])) == 1 for g in range(32))
    assert sorted(np.bincount(fold)) == [22, 22, 23]
    assert not np.array_equal(fold, grouped_folds(groups, 3, seed=2))


@pytest.mark.parametrize("n_folds", [1, 4])
def test_folds_need_as_many_groups(n_folds):
    """Three groups cannot fill four folds, and one fold tests nothing."""
    with pytest.raises(ConfigError, match="3 groups"):
        grouped_folds(["a", "b", "b", "c"], n_folds)


def test_models_are_connected_through_models_that_are_not_there():
    """Two children of a parent that could not be embedded are still siblings."""
    links = {"x": ["gone"], "y": ["gone"], "z": [], "w": ["z"]}
    found = connected(["x", "y", "z", "w"], links)
    assert found.tolist() == [0, 0, 1, 1]
