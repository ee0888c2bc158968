"""The projection: columns by name, in any order, to the last bit; distances kept."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from engine.able.columns import Columns, mixed
from engine.able.facts import fact_probes
from engine.able.probes import probe_set
from engine.able.projection import MAX_COLUMNS, UNIT, column_signs, project
from engine.errors import ConfigError


def unit_vectors(n, columns, seed=0):
    drawn = np.random.default_rng(seed).normal(size=(n, columns)) ** 3
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


def keys_of(n, seed=1):
    return np.random.default_rng(seed).integers(0, 2**64, n, dtype=np.uint64)


def test_columns_are_named_by_question_option_and_word():
    """By probe, then option, then word; every name different."""
    probes = probe_set("facts", fact_probes(5))
    columns = Columns(probes)
    assert columns.n_columns == sum(p.n_words * len(p.options) for p in probes.probes)
    place = columns.block(2).start + probes.probes[2].n_words + 3
    assert (columns.probe[place], columns.option[place], columns.word[place]) == (2, 1, 3)
    assert len(set(columns.keys.tolist())) == columns.n_columns
    assert columns.correct.sum() == columns.n_words.sum()


def test_a_column_keeps_its_name_in_another_set():
    """A question that two sets share has the same columns, wherever it stands."""
    facts = fact_probes(7)
    first, second = (Columns(probe_set("s", order)) for order in (facts[:5], facts[:1:-1]))
    shared = facts[3]
    blocks = [c.block([p.id for p in c.probes.probes].index(shared.id)) for c in (first, second)]
    assert first.keys[blocks[0]].tolist() == second.keys[blocks[1]].tolist()


def test_names_and_signs_are_those_stored_embeddings_were_made_with():
    """Another hash would part new models from old ones without a word."""
    assert [hex(int(v)) for v in mixed(np.arange(1, 3, dtype=np.uint64))] == [
        "0x5692161d100b05e5",
        "0xdbd238973a2b148a",
    ]
    columns = Columns(probe_set("facts", fact_probes(1)))
    signs = column_signs(columns.keys[:2], 12, seed=0).astype(int)
    assert ["".join("+" if s > 0 else "-" for s in row) for row in signs] == GOLDEN_SIGNS


GOLDEN_SIGNS = ["+++-++-+-++-", "+-+-+--+-+--"]


@given(st.permutations(range(13)), st.integers(1, 13))
def test_order_and_other_columns_make_no_difference(order, kept):
    """Bit for bit: columns in another order, and columns of zeros beside them."""
    keys, vectors = keys_of(13), unit_vectors(3, 13)
    vectors[:, kept:] = 0
    there = [place for place in order if place < kept]
    whole = project(vectors, keys, 71)
    assert project(vectors[:, order], keys[list(order)], 71).tobytes() == whole.tobytes()
    assert project(vectors[:, there], keys[there], 71).tobytes() == whole.tobytes()


def test_a_model_is_projected_alone_as_among_others():
    """Adding a model moves no other."""
    keys, vectors = keys_of(20_011), unit_vectors(5, 20_011)
    together = project(vectors, keys, 256)
    for number in range(5):
        alone = project(vectors[number : number + 1], keys, 256)
        assert alone.tobytes() == together[number : number + 1].tobytes()


def test_fewer_dimensions_are_the_first_of_more():
    """Apart from the factor that keeps lengths."""
    keys, vectors = keys_of(101), unit_vectors(2, 101)
    long, short = project(vectors, keys, 131), project(vectors, keys, 17)
    np.testing.assert_allclose(short * np.sqrt(17), long[:, :17] * np.sqrt(131), rtol=1e-6)
    assert not np.array_equal(project(vectors, keys, 17, seed=1), short)


def test_the_sum_is_that_of_whole_numbers():
    """Python's integers, which never round, give the same bits."""
    keys, vectors = keys_of(997), unit_vectors(1, 997)
    signs = column_signs(keys, 5).astype(int)
    whole = [round(value * UNIT) for value in vectors[0].tolist()]
    sums = [sum(w * int(s) for w, s in zip(whole, signs[:, k], strict=True)) for k in range(5)]
    expected = (np.array(sums, dtype=np.float64) / (UNIT * np.sqrt(5))).astype(np.float32)
    assert project(vectors, keys, 5)[0].tobytes() == expected.tobytes()
    assert np.sqrt(MAX_COLUMNS) * UNIT + MAX_COLUMNS / 2 < 2**53


def test_signs_are_even_and_unrelated():
    """Means of signs and of products of two dimensions lie within noise."""
    signs = column_signs(keys_of(4_001), 131)
    assert abs(signs.mean()) < 0.006
    products = signs.T @ signs / len(signs)
    off = products[~np.eye(131, dtype=bool)]
    assert abs(off).max() < 5.5 / np.sqrt(len(signs))
    assert off.std() == pytest.approx(1 / np.sqrt(len(signs)), rel=0.1)


def test_distances_are_kept_as_the_lemma_says():
    """Squared distances are off by about sqrt(2 / K)."""
    keys, vectors = keys_of(5_003), unit_vectors(23, 5_003)
    short = project(vectors, keys, 256).astype(float)
    ratios = [
        ((short[a] - short[b]) ** 2).sum() / ((vectors[a] - vectors[b]) ** 2).sum()
        for a in range(23)
        for b in range(a)
    ]
    assert np.std(ratios) == pytest.approx(np.sqrt(2 / 256), rel=0.25)
    assert np.mean(ratios) == pytest.approx(1, abs=0.03)


def test_impossible_projections_are_refused():
    """No dimensions, a negative seed, too many columns."""
    keys, vectors = keys_of(3), unit_vectors(1, 3)
    for n_dimensions, seed in ((0, 0), (5, -1)):
        with pytest.raises(ConfigError, match="is none"):
            project(vectors, keys, n_dimensions, seed)
    many = np.broadcast_to(np.uint64(1), MAX_COLUMNS + 1)
    with pytest.raises(ConfigError, match="fewer probes"):
        project(np.broadcast_to(0.0, (1, MAX_COLUMNS + 1)), many, 5)
