"""Trees of models: clades of one root, and the edges that are wrong, by hand."""

import numpy as np
import pandas as pd
import pytest

from dashboard.model_trees import MIXED, clustered, tree_of


def rows_of(parent: list[int | None], models: list[str], length: float = 1.0) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "node": range(len(parent)),
            "parent": pd.array(parent, dtype="Int32"),
            "length": [length] * len(parent),
            "model": models,
        }
    )


def test_a_clade_has_a_lineage_only_where_all_its_models_agree():
    """((a1 a2) b1): the inner node of the a's is theirs, the top is nobody's."""
    tree = tree_of(
        rows_of([3, 3, 4, 4, None], ["a1", "a2", "b1", "", ""]), {"a1": "a", "a2": "a", "b1": "b"}
    )
    assert tree.lineage == ("a", "a", "b", "a", MIXED)
    assert not tree.wrong.any()


def test_the_smaller_part_of_a_lineage_is_wrong_and_the_larger_is_not():
    """(((a1 a2) b1) (a3 b2)): a3 is apart from the a's; of the b's, alike in size, one is."""
    models = ["a1", "a2", "b1", "a3", "b2", "", "", "", ""]
    parent: list[int | None] = [5, 5, 6, 7, 7, 6, 8, 8, None]
    roots = {"a1": "a", "a2": "a", "a3": "a", "b1": "b", "b2": "b"}
    tree = tree_of(rows_of(parent, models), roots)
    assert np.flatnonzero(tree.wrong).tolist() == [3, 4]


def test_models_that_one_node_joins_are_together():
    """(a1 a2 b1): a node of three children puts neither of the a's apart."""
    tree = tree_of(rows_of([3, 3, 3, None], ["a1", "a2", "b1", ""]), {"a1": "a", "a2": "a"})
    assert not tree.wrong.any()


def test_models_of_unknown_root_are_neither_right_nor_wrong():
    """What is not documented is not judged."""
    tree = tree_of(rows_of([2, 2, None], ["x", "y", ""]), {"x": "", "y": ""})
    assert not tree.wrong.any()
    assert tree.lineage == (MIXED, MIXED, MIXED)


def test_heights_add_up_and_every_leaf_has_a_line_of_its_own():
    """Hand-computed: two edges of 0.5 lie above the leaves of the inner node."""
    tree = tree_of(rows_of([3, 3, 4, 4, None], ["a1", "a2", "b1", "", ""], length=0.5), {})
    assert tree.height.tolist() == [1.0, 1.0, 0.5, 0.5, 0.0]
    assert sorted(tree.line[:3].tolist()) == [0, 1, 2]
    assert tree.line[3] == pytest.approx((tree.line[0] + tree.line[1]) / 2)
    assert tree.order == ["a1", "a2", "b1"]


def test_negative_lengths_are_drawn_as_none():
    """Neighbour joining can give them; a branch cannot run backwards."""
    tree = tree_of(rows_of([2, 2, None], ["x", "y", ""], length=-0.2), {})
    assert tree.height.tolist() == [0.0, 0.0, 0.0]


def test_alike_models_stand_together_without_a_tree():
    """Two pairs, interleaved in the table."""
    cosines = np.array([[1, 0, 0.9, 0], [0, 1, 0, 0.8], [0.9, 0, 1, 0], [0, 0.8, 0, 1.0]])
    order = clustered(cosines)
    assert abs(order.index(0) - order.index(2)) == 1
    assert abs(order.index(1) - order.index(3)) == 1
    assert clustered(np.ones((2, 2))) == [0, 1]
