"""Neighbour joining finds a tree whose distances add up, whatever order the leaves come in."""

import numpy as np
import pytest

from engine.atlas.trees import Tree, documented_tree, neighbour_joining, tree_metrics
from tests.assertions import assert_close


# ((0:2, 1:3):4, (2:1, (3:5, 4:1):2):0) around one inner edge, lengths by hand
PARENT = np.array([5, 5, 7, 6, 6, 8, 7, 8, -1])
LENGTH = np.array([2.0, 3.0, 1.0, 5.0, 1.0, 4.0, 2.0, 0.5, 0.0])
KNOWN = Tree(PARENT, LENGTH, 5)


def test_path_lengths_by_hand():
    """From leaf to leaf over the node they share."""
    got = KNOWN.distances
    assert got[0, 1] == 5
    assert got[0, 2] == 2 + 4 + 0.5 + 1
    assert got[3, 4] == 6
    assert got[2, 3] == 1 + 2 + 5
    assert_close(got, got.T, rtol=0)


def test_a_tree_whose_distances_add_up_is_found_again():
    """Neighbour joining is exact there (Saitou and Nei), in every order of the leaves."""
    generator = np.random.default_rng(0)
    for _ in range(5):
        order = generator.permutation(5)
        moved = KNOWN.distances[np.ix_(order, order)]
        found = neighbour_joining(moved)
        assert_close(found.distances, moved, rtol=1e-9, atol=1e-9)
        place = {int(old): new for new, old in enumerate(order)}
        cherries = {frozenset({place[0], place[1]}), frozenset({place[3], place[4]})}
        sides = found.clades | {frozenset(range(5)) - clade for clade in found.clades}
        assert cherries <= sides


def test_random_additive_trees_are_found_again():
    """Larger ones, against the distances they were drawn with."""
    generator = np.random.default_rng(1)
    for n in (3, 7, 19):
        parent = np.full(2 * n - 1, -1)
        alive = list(range(n))
        for node in range(n, 2 * n - 1):
            for _ in range(2):
                parent[alive.pop(int(generator.integers(len(alive))))] = node
            alive.append(node)
        length = np.where(parent >= 0, generator.uniform(0.5, 2, 2 * n - 1), 0)
        distances = Tree(parent, length, n).distances
        assert_close(neighbour_joining(distances).distances, distances, rtol=1e-9, atol=1e-9)


def test_the_top_lies_in_the_middle_of_the_longest_path():
    """The two farthest leaves are equally far below it."""
    found = neighbour_joining(KNOWN.distances)
    depth = [found.length[path].sum() for path in found.paths]
    between = KNOWN.distances
    a, b = np.unravel_index(between.argmax(), between.shape)
    assert depth[a] == pytest.approx(between.max() / 2)
    assert depth[b] == pytest.approx(between.max() / 2)
    assert max(depth) == pytest.approx(between.max() / 2)


def test_equal_models_make_a_tree_of_no_length():
    """Exact copies: nothing to divide by, and no edge is lost."""
    found = neighbour_joining(np.zeros((4, 4)))
    assert (found.length == 0).all()
    assert (found.parent == -1).sum() == 1
    assert all(path[-1] == found.paths[0][-1] for path in found.paths)


def test_edges_are_never_negative():
    """Distances that fit no tree give negative lengths, which count as 0."""
    generator = np.random.default_rng(2)
    noise = generator.uniform(0.1, 1, (11, 11))
    distances = np.triu(noise, 1) + np.triu(noise, 1).T
    assert neighbour_joining(distances).length.min() >= 0


def test_a_tree_is_like_itself():
    """Two families of three and a single one: every measure at its best."""
    known = documented_tree([None, 0, 0, None, 3, 4, None])
    found = tree_metrics(known, known, known.distances, n_triplets=2000)
    assert found["triplets"][0] == 1
    assert found["splits_found"] == (1.0, 3)  # {0 1 2}, {3 4 5}, {4 5}
    assert found["robinson_foulds"][0] == 0
    assert found["cophenetic"][0] == pytest.approx(1)
    assert found["kept_distances"][0] == pytest.approx(1)


def test_a_tree_of_noise_is_like_none():
    """A third of the triplets by chance, hardly a split."""
    generator = np.random.default_rng(3)
    parents = [None if k % 4 == 0 else k - k % 4 for k in range(40)]
    noise = generator.uniform(0.5, 1, (40, 40))
    distances = np.triu(noise, 1) + np.triu(noise, 1).T
    found = tree_metrics(neighbour_joining(distances), documented_tree(parents), distances)
    assert 0.2 < found["triplets"][0] < 0.47
    assert found["splits_found"][0] < 0.3
    assert found["robinson_foulds"][0] > 0.9
    assert abs(found["cophenetic"][0]) < 0.2
