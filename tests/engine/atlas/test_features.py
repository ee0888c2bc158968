"""What models are compared by, and how strong that is called."""

import numpy as np

from engine.able.columns import Columns
from engine.able.embedding import option_contrast
from engine.able.probes import probe_set
from engine.atlas.features import (
    label_scores,
    option_probabilities,
    pair_features,
    probe_cosines,
    random_scores,
    signed_root,
)
from engine.atlas.similarity import cosines
from engine.atlas.verdicts import percentiles, verdict
from tests.assertions import assert_close
from tests.engine.able.tiny_causal import SHORT
from tests.engine.atlas.made_families import base


COLUMNS = Columns(probe_set("short", SHORT))
PLACES = np.array([0, 0, 1]), np.array([1, 2, 2])


def vectors(seed=0):
    return np.random.default_rng(seed).normal(size=(3, COLUMNS.n_columns))


def test_contrast_leaves_out_what_all_options_share():
    """Adding anything to every option of a word alike changes nothing."""
    rows = vectors()
    shift = np.random.default_rng(1).normal(size=COLUMNS.n_columns)
    for probe in range(len(SHORT)):
        own = COLUMNS.block(probe)
        words = int(COLUMNS.n_words[probe])
        shift[own] = np.tile(shift[own][:words], int(COLUMNS.n_options[probe]))
    assert_close(
        option_contrast(rows + shift, COLUMNS), option_contrast(rows, COLUMNS), rtol=0, atol=1e-12
    )
    assert not np.allclose(option_contrast(rows, COLUMNS), rows)


def test_cosines_by_probe_are_those_of_the_blocks():
    """Against one probe cut out by hand; their mean is the cosine of rows of equal blocks."""
    rows, (a, b) = vectors(), PLACES
    got = probe_cosines(rows, COLUMNS, a, b)
    cut = rows[:, COLUMNS.block(2)]
    expected = cut[0] @ cut[2] / np.linalg.norm(cut[0]) / np.linalg.norm(cut[2])
    assert_close(got[1, 2], expected, rtol=1e-6)
    for probe in range(len(SHORT)):
        own = COLUMNS.block(probe)
        rows[:, own] /= np.linalg.norm(rows[:, own], axis=1, keepdims=True)
    assert_close(got.mean(1), cosines(rows)[a, b], rtol=1e-5)


def test_features_of_a_pair_do_not_depend_on_who_is_first():
    """Otherwise a classifier could learn the order of the catalogue."""
    rows, (a, b) = vectors(), PLACES
    assert (pair_features(rows, a, b) == pair_features(rows, b, a)).all()
    assert pair_features(rows, a, b).shape == (3, 2 * COLUMNS.n_columns)


def test_probabilities_sum_to_one_a_probe_and_are_empty_where_none_was_read():
    """A model that skipped a probe says nothing of it."""
    n = int(COLUMNS.option_starts[-1])
    scores = np.random.default_rng(2).normal(size=(2, n))
    scores[1, COLUMNS.options_of(3)] = np.nan
    got = option_probabilities(scores, COLUMNS)
    for probe in range(len(SHORT)):
        total = got[:, COLUMNS.options_of(probe)].sum(1)
        assert_close(total, [1, 0 if probe == 3 else 1], rtol=1e-12, atol=1e-12)


def test_labels_are_alike_where_all_are_known_and_equal():
    """An unknown label is not like another unknown one."""
    cards = [
        base("a", architecture="opt", size="S"),
        base("b", architecture="opt", size="S"),
        base("c", architecture="opt", size="M"),
        base("d", architecture="", size="S"),
        base("e", architecture="", size="S"),
    ]
    got = label_scores(cards, "architecture", "size")
    assert got[0, 1] == 1
    assert got[0, 2] == got[0, 3] == got[3, 4] == 0


def test_chance_does_not_depend_on_who_is_first():
    """A pair has one score."""
    got = random_scores(7)
    assert (got == got.T).all()
    assert len(np.unique(got[np.triu_indices(7, 1)])) == 21


def test_the_signed_root_keeps_signs():
    """By hand."""
    assert signed_root(np.array([[-4.0, 0.0, 9.0]])).tolist() == [[-2.0, 0.0, 3.0]]


def test_words_follow_the_share_of_unrelated_pairs_below():
    """Percentiles by hand, equal scores not counted as lower; nothing known, nothing said."""
    unrelated = np.arange(1000) / 1000
    got = percentiles(np.array([0.9995, 0.995, 0.96, 0.5, 0.0]), unrelated)
    assert got is not None
    assert_close(got, [100, 99.5, 96, 50, 0], rtol=1e-9)
    words = [verdict(float(value)) for value in got]
    assert words == ["strong", "moderate", "weak", "none", "none"]
    assert percentiles(np.array([0.5]), np.zeros(0)) is None
    assert verdict(None) == "unknown"
