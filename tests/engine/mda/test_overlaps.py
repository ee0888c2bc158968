"""Overlaps of top samples and rank correlations, against sets and scipy."""

import numpy as np
import pytest
from scipy.stats import spearmanr

from engine.mda.overlaps import head_overlaps, top_mask


def test_overlaps_are_those_of_sets_and_of_scipy():
    """Pair by pair; a skipped sample counts for no head."""
    generator = np.random.default_rng(0)
    influence = generator.standard_t(2, (211, 5))
    influence[:, 3] += 2 * influence[:, 1]
    kept = influence.copy()
    influence = np.insert(influence, 17, np.nan, axis=0)
    found = head_overlaps(influence)
    assert found.n_samples == 211
    tops = [set(np.argsort(-column)[:22]) for column in kept.T]
    for a in range(5):
        for b in range(5):
            assert found.overlap[a, b] == pytest.approx(len(tops[a] & tops[b]) / 22)
            expected = spearmanr(kept[:, a], kept[:, b]).statistic
            assert found.spearman[a, b] == pytest.approx(expected)
    assert found.overlap[1, 3] > 0.5


def test_a_head_without_influence_is_correlated_with_none():
    """Its top samples are the first ones, of equals."""
    values = np.random.default_rng(1).normal(0, 1, (31, 2))
    values[:, 1] = 0
    found = head_overlaps(values)
    assert found.spearman[0, 1] == found.spearman[1, 1] == 0
    assert top_mask(values)[:, 1].nonzero()[0].tolist() == [0, 1, 2, 3]
    nothing = head_overlaps(np.full((7, 3), np.nan))
    assert nothing.n_samples == 0
    assert not nothing.overlap.any()
