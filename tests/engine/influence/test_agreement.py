"""Overlap, rank correlation and intervals against loops over sorted lists."""

import numpy as np
import pytest
from scipy import stats

from engine.errors import ConfigError
from engine.influence.agreement import (
    mean_over_queries,
    rank_correlation,
    top_overlap,
    top_rows,
)


def scores(seed: int) -> np.ndarray:
    """Scores of 5 queries and 23 sequences with many ties."""
    return np.random.default_rng(seed).integers(0, 9, (5, 23)).astype(np.float32)


@pytest.mark.parametrize("n", [1, 7, 23])
def test_the_overlap_counts_shared_places(n: int):
    """Sorted by falling score, then by row."""
    first, second = scores(1), scores(2)
    expected = []
    for a, b in zip(first, second, strict=True):
        tops = [sorted(range(23), key=lambda i, s=s: (-s[i], i))[:n] for s in (a, b)]
        expected.append(len(set(tops[0]) & set(tops[1])) / n)
    assert top_overlap(first, second, n).tolist() == pytest.approx(expected)
    assert top_rows(first, 2).shape == (5, 2)


def test_the_rank_correlation_is_spearmans():
    """Ties share a rank; constant scores have none."""
    first, second = scores(1), scores(2)
    expected = [stats.spearmanr(a, b).statistic for a, b in zip(first, second, strict=True)]
    assert rank_correlation(first, second).tolist() == pytest.approx(expected)
    second[3] = 1
    found = rank_correlation(first, second)
    assert np.isnan(found).tolist() == [False, False, False, True, False]


def test_the_interval_covers_the_mean_of_other_queries():
    """Of 20 samples of 31 with mean 0.6, at least 16 intervals hold it."""
    generator = np.random.default_rng(7)
    held = [
        found.low <= 0.6 <= found.high
        for found in (mean_over_queries(generator.beta(6, 4, 31)) for _ in range(20))
    ]
    assert sum(held) >= 16
    narrow = mean_over_queries(np.full(11, 0.25))
    assert (narrow.mean, narrow.low, narrow.high, narrow.n) == (0.25, 0.25, 0.25, 11)


def test_unknown_values_count_as_absent_and_one_gives_no_interval():
    """A query without a number leaves the mean to the others."""
    found = mean_over_queries(np.array([0.5, np.nan]))
    assert (found.mean, found.n) == (0.5, 1)
    assert np.isnan([found.low, found.high]).all()


@pytest.mark.parametrize("n", [0, 24])
def test_more_than_the_pool_holds_is_refused(n: int):
    """A pool smaller than n."""
    with pytest.raises(ConfigError, match="23 sequences"):
        top_overlap(scores(1), scores(2), n)
