"""Streaming reductions keep what a look at everything at once keeps."""

import numpy as np
import pytest

from engine.pipeline.examples import (
    PER_DOCUMENT,
    Pairs,
    SmallestPerGroup,
    TopPairs,
    falling_bits,
    gather_examples,
    random_bits,
    rank_within,
)


def random_pairs(generator, n_tokens, n_prototypes, n_documents, k=3):
    """Pairs of consecutive tokens, sorted by document and position."""
    document = np.sort(generator.integers(n_documents, size=n_tokens))
    position = rank_within(document)
    prototype = np.stack([generator.permutation(n_prototypes)[:k] for _ in range(n_tokens)])
    return Pairs(
        prototype.ravel(),
        np.repeat(document, k),
        np.repeat(position, k),
        np.round(generator.random(n_tokens * k), 2).astype(np.float16),
    )


def offer(reduction, pairs, pieces, *columns):
    """Feed pairs to a reduction in a number of pieces."""
    for rows in np.array_split(np.arange(len(pairs)), pieces):
        reduction.update(*(column[rows] for column in columns), pairs.take(rows))
    return reduction


def test_falling_bits_order_float16_from_high_to_low():
    """Sorting by 16-bit keys is exact only if the keys keep the order of the activations."""
    values = np.array([0.0, 6e-8, 0.1, 0.5, 0.9995, 1.0], np.float16)
    assert (np.diff(falling_bits(values).astype(int)) < 0).all()


@pytest.mark.parametrize("pieces", [1, 2, 7])
def test_smallest_per_group_equals_a_sort_of_everything(pieces):
    """The sample must not depend on where shards were cut."""
    generator = np.random.default_rng(3)
    pairs = random_pairs(generator, 211, 11, 13)
    value = generator.integers(0, 50, len(pairs)).astype(np.uint32)
    kept = offer(SmallestPerGroup(11, 4), pairs, pieces, pairs.prototype, value)
    for group in range(11):
        rows = np.flatnonzero(pairs.prototype == group)
        expected = rows[np.argsort(value[rows], kind="stable")][:4]
        found = kept.pairs.take(kept.group == group)
        assert found.position.tolist() == pairs.position[expected].tolist()
        assert found.document.tolist() == pairs.document[expected].tolist()


def brute_force_top(pairs, late, n):
    """For each prototype, rows picked one by one as the class promises."""
    chosen = {}
    for prototype in np.unique(pairs.prototype):
        rows = np.flatnonzero(pairs.prototype == prototype)
        rows = rows[np.argsort(-pairs.activation[rows].astype(float), kind="stable")]
        first, others, seen = [], [], {}
        for row in rows:
            document = int(pairs.document[row])
            crowded = seen.get(document, 0) >= PER_DOCUMENT
            if late[row] or crowded:
                others.append(int(row))
            else:
                seen[document] = seen.get(document, 0) + 1
                first.append(int(row))
        chosen[int(prototype)] = (first + others)[:n]
    return chosen


@pytest.mark.parametrize("pieces", [1, 3, 10])
@pytest.mark.parametrize("n_documents", [2, 17])
def test_top_pairs_equal_a_brute_force_choice(pieces, n_documents):
    """Few documents force the choice to fall back on crowded ones; shards must not show."""
    generator = np.random.default_rng(n_documents)
    pairs = random_pairs(generator, 307, 7, n_documents)
    late = generator.random(len(pairs)) < 0.2
    top = TopPairs(5)
    for rows in np.array_split(np.arange(len(pairs)), pieces):
        top.update(pairs.take(rows), late[rows])
    for prototype, rows in brute_force_top(pairs, late, 5).items():
        found = top.pairs.take(top.pairs.prototype == prototype)
        assert found.activation.tolist() == pairs.activation[rows].tolist()
        assert found.document.tolist() == pairs.document[rows].tolist()
        assert found.position.tolist() == pairs.position[rows].tolist()


def test_random_bits_depend_on_the_pair_and_the_seed_alone():
    """A sample drawn by them is the same however the pairs are ordered."""
    generator = np.random.default_rng(0)
    pairs = random_pairs(generator, 101, 7, 5)
    order = generator.permutation(len(pairs))
    assert (random_bits(pairs, 1)[order] == random_bits(pairs.take(order), 1)).all()
    assert (random_bits(pairs, 1) != random_bits(pairs, 2)).mean() > 0.99


def test_weighted_random_bits_draw_in_proportion_to_weight():
    """Among pairs of weights 1 and 3, the heavier is drawn first three times in four."""
    n = 20_000
    zeros = np.zeros(2 * n, np.int64)
    pairs = Pairs(zeros, zeros, np.arange(2 * n), zeros.astype(np.float16))
    weight = np.tile([1.0, 3.0], n)
    bits = random_bits(pairs, 5, weight).reshape(n, 2)
    # 3 / (1 + 3) = 0.75; its standard error is below 0.004
    assert (bits[:, 1] < bits[:, 0]).mean() == pytest.approx(0.75, abs=0.015)


def test_gathered_examples_are_ranked_within_their_band():
    """Keys of the table are prototype, band and rank without a gap."""
    generator = np.random.default_rng(1)
    top = random_pairs(generator, 5, 3, 5, k=1)
    top = top.take(np.argsort(top.prototype, kind="stable"))
    banded = random_pairs(generator, 8, 3, 5, k=1)
    group = banded.prototype * 2 + generator.integers(2, size=len(banded))
    order = np.argsort(group, kind="stable")
    band, rank, pairs = gather_examples(top, banded.take(order), group[order], 2)
    assert len(pairs) == 13
    for prototype in range(3):
        for number in range(3):
            rows = (pairs.prototype == prototype) & (band == number)
            assert rank[rows].tolist() == list(range(rows.sum()))
            if number:
                assert (np.diff(pairs.activation[rows].astype(float)) <= 0).all()
