"""Arms: what is changed, and that nothing else is."""

import numpy as np
import pytest

from engine.errors import ConfigError
from engine.mda.arms import (
    BASELINE,
    augment,
    delete,
    insert,
    random_samples,
    replace,
    sample_rows,
    top_samples,
)
from engine.mda.settings import MixtureConfig
from engine.mda.stream import MixedStream


@pytest.fixture
def stream(byte_shards) -> MixedStream:
    config = MixtureConfig(domain_weights={"code": 1.0}, context=37, batch_size=5, longest=17)
    return MixedStream(byte_shards, config)


def test_the_baseline_weighs_all_rows_alike(stream) -> None:
    rows, weights = BASELINE.rows(stream, 3)
    assert np.array_equal(rows, stream.batch(3))
    assert weights == pytest.approx(np.full(5, 0.2))


def test_a_deleted_sample_keeps_its_place_and_the_others_their_weight(stream) -> None:
    """The loss of a step is not made larger for the rows that are left."""
    arm = delete("delete", [(3, 1), (3, 4), (8, 0)])
    rows, weights = arm.rows(stream, 3)
    assert np.array_equal(rows, stream.batch(3))
    assert weights == pytest.approx([0.2, 0, 0.2, 0.2, 0])
    assert arm.rows(stream, 4)[1] == pytest.approx(np.full(5, 0.2))


def test_copies_are_dealt_over_the_steps_and_all_of_them_come(stream) -> None:
    samples = [(2, 0), (2, 3), (9, 1), (4, 4), (6, 2), (1, 1), (0, 0)]
    arm = augment("augment", stream, samples, range(10, 13))
    added = []
    for step in range(10, 13):
        rows, weights = arm.rows(stream, step)
        assert np.array_equal(rows[:5], stream.batch(step))
        assert weights == pytest.approx(np.full(len(rows), 0.2))
        added.append(rows[5:])
    assert [len(rows) for rows in added] == [3, 2, 2]
    assert np.array_equal(np.concatenate(added), sample_rows(stream, sorted(samples)))
    assert np.array_equal(arm.rows(stream, 13)[0], stream.batch(13))
    assert arm.changed == tuple(sorted(samples))


def test_replaced_samples_are_masked_and_the_new_rows_train_in_their_steps(stream) -> None:
    arm = delete("delete", [(3, 1), (7, 2), (3, 0)])
    new = np.arange(3 * 38).reshape(3, 38)
    rows, weights = replace(arm, "replace", new).rows(stream, 3)
    assert np.array_equal(rows[5:], new[:2])
    assert weights == pytest.approx([0, 0, 0.2, 0.2, 0.2, 0.2, 0.2])
    assert np.array_equal(replace(arm, "replace", new).rows(stream, 7)[0][5:], new[2:])
    with pytest.raises(ConfigError, match="2 rows cannot replace 3"):
        replace(arm, "replace", new[:2])


def test_rows_need_a_step_to_be_inserted_at() -> None:
    with pytest.raises(ConfigError, match="one step or more"):
        insert("insert", np.zeros((2, 4), np.int64), [])


def test_random_samples_differ_by_seed_and_never_repeat() -> None:
    drawn = random_samples(range(40, 51), 3, 17, seed=1)
    assert len(set(drawn)) == 17
    assert drawn == sorted(drawn)
    assert all(40 <= step < 51 and 0 <= row < 3 for step, row in drawn)
    assert drawn == random_samples(range(40, 51), 3, 17, seed=1)
    assert drawn != random_samples(range(40, 51), 3, 17, seed=2)
    with pytest.raises(ConfigError, match="33 samples"):
        random_samples(range(40, 51), 3, 34, seed=1)


def test_the_top_samples_are_the_largest_finite_ones() -> None:
    scores = np.array([[1.0, np.nan, 5.0], [5.0, -2.0, 0.0]], np.float32)
    assert top_samples(scores, range(8, 10), 3) == [(8, 0), (8, 2), (9, 0)]
    assert top_samples(-scores, range(8, 10), 1) == [(9, 1)]
    assert len(top_samples(scores, range(8, 10), 6)) == 5
