"""Rows of an emergence study: pure in seed, step and row; planted in the share asked for."""

import numpy as np
import pytest

from engine.errors import ConfigError
from engine.mda.settings import MixtureConfig
from engine.mda.stream import PLANTED, MixedStream, repeated_row


def mixture(**changes) -> MixtureConfig:
    settings = {"domain_weights": {"code": 1.0}, "context": 41, "batch_size": 5, "seed": 3}
    return MixtureConfig(**settings | {"shortest": 4, "longest": 19} | changes)


def test_a_step_is_the_same_whatever_was_read_before(byte_shards) -> None:
    """Arms share every row only if it depends on its number alone."""
    one = MixedStream(byte_shards, mixture())
    in_order = [one.batch(step) for step in range(7)]
    other = MixedStream(byte_shards, mixture())
    for step in (6, 0, 3):
        assert np.array_equal(other.batch(step), in_order[step])
    assert not np.array_equal(MixedStream(byte_shards, mixture(seed=4)).batch(0), in_order[0])


def test_planted_rows_repeat_and_the_others_come_from_documents(byte_shards) -> None:
    """The source says which row is which, and where it stands."""
    stream = MixedStream(byte_shards, mixture(repeat_share=0.5))
    planted = 0
    for step in range(23):
        for row, tokens in enumerate(stream.batch(step)):
            source = stream.source(step, row)
            assert (source.domain == PLANTED) == stream.is_planted(step, row)
            if source.domain == PLANTED:
                planted += 1
                assert np.array_equal(tokens[source.segment :], tokens[: -source.segment])
                assert 4 <= source.segment <= 19
                assert np.isin(tokens, stream.frequent).all()
            else:
                run = byte_shards.run(source.document)[source.position :][: len(tokens)]
                assert np.array_equal(run, tokens[: len(run)])
                assert source.segment == 0
    assert 0.3 < planted / (23 * 5) < 0.7


def test_no_row_is_planted_without_a_share_and_natural_rows_stay(byte_shards) -> None:
    """Mixtures that differ in their share alone have the same natural rows."""
    none = MixedStream(byte_shards, mixture(repeat_share=0.0))
    half = MixedStream(byte_shards, mixture(repeat_share=0.5))
    for step in range(5):
        natural = [row for row in range(5) if not half.is_planted(step, row)]
        assert np.array_equal(none.batch(step)[natural], half.batch(step)[natural])
        assert not any(none.is_planted(step, row) for row in range(5))


def test_a_generated_row_is_made_again_from_its_number() -> None:
    """The pages show generated rows without a corpus."""
    frequent = np.array([7, 11, 13, 200])
    tokens, length = repeated_row(mixture(), frequent, 17, 2)
    again, _ = repeated_row(mixture(), frequent, 17, 2)
    assert np.array_equal(tokens, again)
    assert tokens.shape == (42,)
    assert np.array_equal(tokens[:length], tokens[length : 2 * length])
    assert not np.array_equal(tokens, repeated_row(mixture(), frequent, 18, 2)[0])


@pytest.mark.parametrize("changes", [{"repeat_share": 1.2}, {"longest": 30}, {"shortest": 0}])
def test_impossible_mixtures_are_refused(changes) -> None:
    with pytest.raises(ConfigError):
        mixture(**changes)
