"""From states to active prototypes and back: cosine, ReLU, top-k, un-normalised sum.

The [tokens x prototypes] cosine matrix exists only a chunk of rows at a time. What a loss needs
of it (the k largest of a row, the largest of a column) is picked without gradient; the gradient
then runs through those few cosines alone, so a backward pass costs tokens x k x d_model.
"""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from engine.numerics import full_precision, unit_vectors


DEFAULT_CHUNK = 2048
"""Rows of the cosine matrix that exist at once."""

COLUMN_BLOCK = 32
"""Rows whose maximum is taken first when the largest of a column is sought on a CPU."""


@dataclass(frozen=True)
class Scan:
    """What one pass over the cosine matrix of `tokens` states and `prototypes` leaves behind.

    cosines: the k largest of each row, falling, in [-1, 1] (negative where fewer than k are
        positive).
    indices: their prototypes.
    nearest_cosine: the largest of each column.
    nearest_token: the row it stands in.
    """

    cosines: Float[Tensor, "tokens k"]
    indices: Int[Tensor, "tokens k"]
    nearest_cosine: Float[Tensor, " prototypes"]
    nearest_token: Int[Tensor, " prototypes"]


def column_maximum(
    cosines: Float[Tensor, "rows prototypes"],
) -> tuple[Float[Tensor, " prototypes"], Int[Tensor, " prototypes"]]:
    """Largest value of each column and its row.

    On a CPU in two levels, blocks of rows and then the winning block: an argmax down a column is
    over ten times slower than a maximum.
    """
    rows, columns = cosines.shape
    whole = 0 if cosines.is_cuda else rows - rows % COLUMN_BLOCK
    if not whole:
        value, row = cosines.max(dim=0)
        return value, row
    blocks = cosines[:whole].view(whole // COLUMN_BLOCK, COLUMN_BLOCK, columns)
    block = blocks.amax(dim=1).max(dim=0).indices
    value, row = blocks[block, :, torch.arange(columns)].max(dim=1)
    row = block * COLUMN_BLOCK + row
    if whole < rows:
        last_value, last_row = cosines[whole:].max(dim=0)
        row = torch.where(last_value > value, last_row + whole, row)
        value = torch.maximum(value, last_value)
    return value, row


def cosine_matrix(
    unit_states: Float[Tensor, "rows d_model"], unit_prototypes: Float[Tensor, "prototypes d_model"]
) -> Float[Tensor, "rows prototypes"]:
    """Cosines of one chunk, in the format of its inputs also where autocast is on."""
    with torch.autocast(unit_states.device.type, enabled=False):
        return unit_states @ unit_prototypes.T


@torch.no_grad()
def nearest_prototypes(
    unit_states: Float[Tensor, "tokens d_model"],
    unit_prototypes: Float[Tensor, "prototypes d_model"],
    n_active: int,
    chunk: int = DEFAULT_CHUNK,
) -> tuple[Float[Tensor, "tokens k"], Int[Tensor, "tokens k"]]:
    """Cosines of each state's k nearest prototypes, falling, and their numbers."""
    tops = [
        cosine_matrix(rows, unit_prototypes).topk(n_active, dim=1)
        for rows in unit_states.split(chunk)
    ]
    return torch.cat([top.values for top in tops]), torch.cat([top.indices for top in tops])


@torch.no_grad()
def scan_bank(
    unit_states: Float[Tensor, "tokens d_model"],
    unit_prototypes: Float[Tensor, "prototypes d_model"],
    n_active: int,
    chunk: int = DEFAULT_CHUNK,
) -> Scan:
    """Pass once over the cosine matrix, `chunk` rows at a time, for rows and columns at once.

    Args:
        unit_states: at least one state, each of length 1.
        unit_prototypes: prototypes of length 1.
        n_active: how many of each row to keep.
        chunk: rows that exist at once.
    """
    tops, columns = [], []
    for number, rows in enumerate(unit_states.split(chunk)):
        cosines = cosine_matrix(rows, unit_prototypes)
        tops.append(cosines.topk(n_active, dim=1))
        value, row = column_maximum(cosines)
        columns.append((value, row + number * chunk))
    nearest_cosine, winner = torch.stack([value for value, _ in columns]).max(dim=0)
    rows_of_chunks = torch.stack([row for _, row in columns])
    return Scan(
        cosines=torch.cat([top.values for top in tops]),
        indices=torch.cat([top.indices for top in tops]),
        nearest_cosine=nearest_cosine,
        nearest_token=rows_of_chunks.gather(0, winner[None])[0],
    )


class PickedCosines(torch.autograd.Function):
    """Cosines already found by a scan, given the gradient of the pairs they belong to."""

    @staticmethod
    def forward(
        ctx: Any, unit_states: Tensor, unit_prototypes: Tensor, indices: Tensor, cosines: Tensor
    ) -> Tensor:
        """Return the cosines as they are."""
        ctx.save_for_backward(unit_states, unit_prototypes, indices)
        return cosines.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """d(u.q)/du = q and d(u.q)/dq = u, summed over the picked pairs."""
        unit_states, unit_prototypes, indices = ctx.saved_tensors
        weight = gradients[0]
        to_states = to_prototypes = None
        if ctx.needs_input_grad[0]:
            to_states = functional.embedding_bag(
                indices, unit_prototypes, per_sample_weights=weight.contiguous(), mode="sum"
            )
        if ctx.needs_input_grad[1]:
            to_prototypes = scatter_sum(weight, indices, unit_states, len(unit_prototypes))
        return to_states, to_prototypes, None, None


def scatter_sum(
    weights: Float[Tensor, "tokens k"],
    indices: Int[Tensor, "tokens k"],
    vectors: Float[Tensor, "tokens d_model"],
    n_prototypes: int,
    chunk: int = 1024,
) -> Float[Tensor, "prototypes d_model"]:
    """Row i: sum over tokens t and ranks j with indices[t, j] = i of weights[t, j] vectors[t]."""
    total = vectors.new_zeros(n_prototypes, vectors.shape[1])
    for start in range(0, len(vectors), chunk):
        rows = slice(start, start + chunk)
        spread = weights[rows, :, None] * vectors[rows, None, :]
        total.index_add_(0, indices[rows].reshape(-1), spread.flatten(0, 1))
    return total


def reconstruct(
    activations: Float[Tensor, "*batch k"],
    indices: Int[Tensor, "*batch k"],
    prototypes: Float[Tensor, "prototypes d_model"],
) -> Float[Tensor, "*batch d_model"]:
    """Sum over the active prototypes of activation times the un-normalised prototype."""
    batch, k = activations.shape[:-1], activations.shape[-1]
    total = functional.embedding_bag(
        indices.reshape(-1, k),
        prototypes,
        per_sample_weights=activations.reshape(-1, k).to(prototypes.dtype),
        mode="sum",
    )
    return total.reshape(*batch, prototypes.shape[1])


def prototype_activations(
    states: Float[Tensor, "*batch d_model"],
    prototypes: Float[Tensor, "prototypes d_model"],
    n_active: int,
    chunk: int = DEFAULT_CHUNK,
) -> tuple[Float[Tensor, "*batch k"], Int[Tensor, "*batch k"]]:
    """Activations max(0, cos(z, p_i)) of the k nearest prototypes, falling, and their numbers.

    Where fewer than k cosines are positive the rest of the activations are 0. Half-precision
    states are compared in float32. Differentiable in states and prototypes.
    """
    flat = full_precision(states.reshape(-1, states.shape[-1]))
    unit_states, unit_prototypes = unit_vectors(flat), unit_vectors(prototypes.to(flat.dtype))
    cosines, indices = nearest_prototypes(unit_states, unit_prototypes, n_active, chunk)
    cosines = PickedCosines.apply(unit_states, unit_prototypes, indices, cosines)
    shape = (*states.shape[:-1], n_active)
    return functional.relu(cosines).reshape(shape), indices.reshape(shape)
