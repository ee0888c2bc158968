"""Small numerical building blocks whose edge cases are decided in one place."""

import torch
from jaxtyping import Float
from torch import Tensor


SMALLEST_NORM = 1e-12
"""Vectors shorter than this count as zero: their cosine with anything is 0."""


def unit_vectors(vectors: Float[Tensor, "... d"]) -> Float[Tensor, "... d"]:
    """Scale the last axis to length 1; a zero vector stays zero."""
    return torch.nn.functional.normalize(vectors, dim=-1, eps=SMALLEST_NORM)


def full_precision(values: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """Values in at least float32: half formats are widened, float32 and float64 pass through."""
    return values if values.dtype in (torch.float32, torch.float64) else values.float()
