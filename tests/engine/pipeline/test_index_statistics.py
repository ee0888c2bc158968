"""Sums over shards against counts by hand."""

import numpy as np
import pytest

from engine.pipeline.examples import Pairs
from engine.pipeline.index_concepts import concept_rows, typical_prototypes
from engine.pipeline.index_statistics import FINE_BINS, PrototypeStatistics, bin_of


def small_stream():
    """Two prototypes over 5 tokens of 2 documents in 2 domains."""
    pairs = Pairs(
        np.array([0, 1, 0, 0, 1]),
        np.array([0, 0, 0, 1, 1]),
        np.array([0, 0, 1, 0, 2]),
        np.array([0.5, 0.25, 1.0, 0.75, 0.125], np.float16),
    )
    return pairs, np.array([0, 0, 0, 1, 1]), np.array([0, 0, 1, 1, 1])


def filled(pieces):
    """Statistics of the small stream, cut after its first document or not."""
    pairs, pair_domain, token_domain = small_stream()
    statistics = PrototypeStatistics(3, 2, 4)
    cuts = (
        [(slice(0, 5), slice(0, 5))]
        if pieces == 1
        else [
            (slice(0, 2), slice(0, 1)),
            (slice(2, 5), slice(1, 5)),
        ]
    )
    for rows, tokens in cuts:
        statistics.update(pairs.take(rows), pair_domain[rows], token_domain[tokens])
    return statistics


@pytest.mark.parametrize("pieces", [1, 2])
def test_statistics_equal_counts_by_hand(pieces):
    """A document that two shards share is counted once."""
    found = filled(pieces)
    assert found.n_tokens == 5
    assert found.counts.tolist() == [3, 2, 0]
    # (0.5 + 1 + 0.75) / 3 and (0.25 + 0.125) / 2
    assert found.mean.tolist() == [0.75, 0.1875, 0.0]
    assert found.largest.tolist() == [1.0, 0.25, 0.0]
    # 4 bins over [0, 1]: 0.5 -> 2, 1.0 -> 3, 0.75 -> 3; 0.25 -> 1, 0.125 -> 0
    assert found.histogram.tolist() == [[0, 0, 1, 2], [1, 1, 0, 0], [0, 0, 0, 0]]
    assert found.domain_counts.tolist() == [[2, 1], [1, 1], [0, 0]]
    assert found.n_documents.tolist() == [2, 2, 0]
    # prototype 0: rate 3/5 overall, 2/2 in domain 0, 1/3 in domain 1
    assert found.lift()[0] == pytest.approx([5 / 3, 5 / 9])
    assert found.lift()[2].tolist() == [0.0, 0.0]


def test_bands_hold_equal_counts_from_high_to_low():
    """With one activation per bin, five bands of 100 values hold 20 each."""
    statistics = PrototypeStatistics(1, 1, 10)
    values = ((np.arange(100) + 0.5) / 100).astype(np.float16)
    zeros = np.zeros(100, np.int64)
    pairs = Pairs(zeros, zeros, np.arange(100), values)
    statistics.update(pairs, zeros, zeros)
    band = statistics.bands(5).groups(pairs)
    assert np.bincount(band).tolist() == [20] * 5
    assert (np.diff(band) <= 0).all()


def test_an_activation_of_one_falls_into_the_last_bin():
    """Cosines of 1 exist, and rounding may put them above."""
    assert bin_of(np.array([1.0, 1.001], np.float16), FINE_BINS).tolist() == [FINE_BINS - 1] * 2


def test_a_concept_holds_the_prototypes_of_its_domain():
    """Prototype 3 fires on unwanted texts alone, 5 everywhere, 7 elsewhere only."""
    generator = np.random.default_rng(0)
    domain = np.repeat([0, 1], [1900, 100])
    rates = {3: (0.0, 0.5), 5: (0.5, 0.5), 7: (0.5, 0.0)}
    prototype, token = [], []
    for number, rate in rates.items():
        rows = np.flatnonzero(generator.random(2000) < np.array(rate)[domain])
        prototype.append(np.full(len(rows), number))
        token.append(rows)
    token = np.concatenate(token)
    order = np.argsort(token, kind="stable")
    token, prototype = token[order], np.concatenate(prototype)[order]
    statistics = PrototypeStatistics(50, 2, 4)
    pairs = Pairs(prototype, domain[token], token, np.full(len(token), 0.5, np.float16))
    statistics.update(pairs, domain[token], domain)
    rows = concept_rows(statistics, ("law", "unwanted"), "unwanted")
    assert rows["prototype"].tolist() == [3]
    assert rows["score"][0] > 3
    assert typical_prototypes(statistics, ("law", "unwanted"), "unwanted") == {3}
    assert concept_rows(statistics, ("law", "mail"), "unwanted")["prototype"].tolist() == []
