import numpy as np
import pytest

from engine.prism.attribution.quantise import (
    LARGEST,
    activation_step,
    quantise,
    quantise_activations,
    restore,
    stored_type,
    stored_width,
)


@pytest.mark.parametrize("width", [12, 13, 1])
@pytest.mark.parametrize("bits", [4, 8])
def test_numbers_come_back_to_half_a_step(width, bits):
    """The step is the row's largest number over 7 or 127; the largest comes back itself."""
    values = np.random.default_rng(3).normal(size=(11, width)).astype(np.float32)
    values[5] = 0
    stored, scale = quantise(values, bits)
    assert stored.shape == (11, stored_width(width, bits))
    assert stored.dtype == stored_type(bits)
    read = restore(stored, scale, width)
    assert (np.abs(read - values) <= scale[:, None] * 0.5001).all()
    np.testing.assert_allclose(scale, np.abs(values).max(1) / LARGEST[bits], rtol=1e-6)
    np.testing.assert_allclose(np.abs(read).max(1), np.abs(values).max(1), rtol=1e-5)
    assert (read[5] == 0).all()


def test_four_bits_lie_two_to_a_byte():
    """First half low, second half high, offset by 8; an odd row ends in a zero."""
    stored, scale = quantise(np.array([[7.0, -7.0, 1.0]], np.float32), 4)
    assert stored.tolist() == [[(7 + 8) | ((1 + 8) << 4), (-7 + 8) | (8 << 4)]]
    assert restore(stored, scale, 3).tolist() == [[7.0, -7.0, 1.0]]


def test_32_bits_are_left_as_they_are():
    """The reference that quantised scores are held against."""
    values = np.random.default_rng(3).normal(size=(5, 7)).astype(np.float32)
    stored, scale = quantise(values, 32)
    assert np.array_equal(stored, values)
    assert np.array_equal(restore(stored, scale, 7), values)
    activations = np.abs(values)
    assert np.array_equal(quantise_activations(activations, 32), activations)
    assert activation_step(activations) == 1.0


def test_activations_take_a_byte():
    """In steps of 1/255, rounding past 1 cut off."""
    stored = quantise_activations(np.array([[1.0000002, 0.5, 0.0]], np.float32), 8)
    assert stored.dtype == np.uint8
    assert stored.tolist() == [[255, 128, 0]]
    assert activation_step(stored) * 255 == 1
