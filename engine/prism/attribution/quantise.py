"""Vectors in 8 or 4 bits with a scale of their own: what an attribution pool stores of a token.

A row x becomes integers q = round(x / s) with s = max|x| / m, where m is 127 for 8 bits and 7 for
4 bits; it is read back as s q. Four-bit numbers lie two to a byte, offset by 8: the first half of
a row in the low halves of its bytes, the second half in the high ones.
"""

from typing import Any, Literal

import numpy as np
from jaxtyping import Float, Shaped


Bits = Literal[4, 8, 32]
"""Bits a number takes; 32 is float32 as it is."""

LARGEST = {4: 7, 8: 127}
ACTIVATION_STEPS = 255
"""Activations lie in [0, 1] and are stored as whole numbers of these steps."""


def quantise(
    values: Float[np.ndarray, "rows width"], bits: Bits
) -> tuple[Shaped[np.ndarray, "rows stored"], Float[np.ndarray, " rows"]]:
    """Rows as stored numbers, and their scales (float32, 0 for a row of zeros)."""
    if bits == 32:
        return values.astype(np.float32), np.ones(len(values), np.float32)
    scale = (np.abs(values).max(axis=1, initial=0) / LARGEST[bits]).astype(np.float32)
    safe = np.where(scale > 0, scale, 1)[:, None]
    whole = np.clip(np.rint(values / safe), -LARGEST[bits], LARGEST[bits]).astype(np.int8)
    return (whole if bits == 8 else _pack(whole)), scale


def _pack(whole: Shaped[np.ndarray, "rows width"]) -> Shaped[np.ndarray, "rows half"]:
    shifted = (whole + 8).astype(np.uint8)
    half = -(-shifted.shape[1] // 2)
    low, high = shifted[:, :half], shifted[:, half:]
    if high.shape[1] < half:
        high = np.pad(high, ((0, 0), (0, 1)), constant_values=8)
    return low | (high << 4)


def restore(
    stored: Shaped[np.ndarray, "rows stored"],
    scale: Float[np.ndarray, " rows"],
    width: int,
) -> Float[np.ndarray, "rows width"]:
    """Rows as they are read back, float32; uint8 numbers are taken for packed ones."""
    if stored.dtype == np.uint8:
        halves = [(stored & 15).astype(np.int8), (stored >> 4).astype(np.int8)]
        stored = np.concatenate(halves, axis=1)[:, :width] - 8
    return stored.astype(np.float32) * scale[:, None]


def stored_width(width: int, bits: Bits) -> int:
    """Numbers a stored row has."""
    return -(-width // 2) if bits == 4 else width


def stored_type(bits: Bits) -> np.dtype[Any]:
    """Type of a stored row's numbers."""
    return np.dtype({4: np.uint8, 8: np.int8, 32: np.float32}[bits])


def quantise_activations(
    activations: Float[np.ndarray, "rows k"], bits: Bits
) -> Shaped[np.ndarray, "rows k"]:
    """Activations in steps of 1/255 (one byte), or as float32."""
    if bits == 32:
        return activations.astype(np.float32)
    return np.rint(np.clip(activations, 0, 1) * ACTIVATION_STEPS).astype(np.uint8)


def activation_step(stored: Shaped[np.ndarray, "rows k"]) -> float:
    """What one unit of a stored activation stands for."""
    return 1 / ACTIVATION_STEPS if stored.dtype == np.uint8 else 1.0
