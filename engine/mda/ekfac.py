"""EK-FAC of head blocks, all of them in the same two passes.

The block of a head is cut out first and gets its own factors and eigenvalues; nothing is masked
after an inversion, which would give a block of the inverse instead of the inverse of the block.

The two passes hold, beside the model, the factors (columns² + rows² numbers a block) and the
eigenvalues (rows × columns a head); of the gradients one batch of one layer exists at once.

Pass A: A = mean over tokens of x x^T and S = mean over tokens of g g^T, where x is the block's
input and g the gradient at its output. Pass B: in the eigenbases of A and S, the mean over
sequences of the squared gradient of the sequence. Labels are drawn from the model (the true
Fisher), seeded. Damping and floor are those of the released code of MDA: eigenvalue + 0.1 × their
mean over the block, 1e-5 at least.
"""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from engine.config import require
from engine.mda.settings import EkfacConfig
from engine.mda.subspaces import Subspaces
from engine.mda.taps import Taps, tapped
from engine.numerics import full_precision


logger = logging.getLogger(__name__)

JITTER = 1e-6
"""Share of the mean eigenvalue that is added to A and S before their eigenvectors are taken."""


@dataclass(frozen=True)
class BlockCurvature:
    """Curvature of one block of some heads, in the eigenbasis of its Kronecker factors."""

    input_basis: Float[Tensor, "_shared columns columns"]
    output_basis: Float[Tensor, "_shared rows rows"]
    eigenvalues: Float[Tensor, "heads rows columns"]

    def solve(
        self, gradient: Float[Tensor, "heads rows columns"], config: EkfacConfig
    ) -> Float[Tensor, "heads rows columns"]:
        """Damped inverse of the curvature times a gradient, head by head."""
        rotated = rotate(gradient, self.input_basis, self.output_basis)
        mean = self.eigenvalues.mean(dim=(-2, -1), keepdim=True)
        scaled = rotated / (self.eigenvalues + config.damping * mean).clamp_min(config.floor)
        return self.output_basis @ scaled @ self.input_basis.mT


def rotate(
    gradient: Float[Tensor, "*batch heads rows columns"],
    input_basis: Float[Tensor, "_shared columns columns"],
    output_basis: Float[Tensor, "_shared rows rows"],
) -> Float[Tensor, "*batch heads rows columns"]:
    """Gradients in the eigenbasis of the factors."""
    return output_basis.mT @ gradient @ input_basis


def sequence_loss(
    logits: Float[Tensor, "batch pos vocab"], labels: Int[Tensor, "batch pos"]
) -> Float[Tensor, " batch"]:
    """Summed negative log-likelihood of each sequence, in nats; `labels[t]` is due after t."""
    flat = functional.cross_entropy(
        full_precision(logits).flatten(0, 1), labels.flatten(), reduction="none"
    )
    return flat.view(labels.shape).sum(1)


def sample_labels(
    logits: Float[Tensor, "batch pos vocab"], generator: torch.Generator
) -> Int[Tensor, "batch pos"]:
    """Next tokens drawn from the model itself, by inverting the cumulated probabilities.

    The uniform numbers are drawn on the CPU, sequence by sequence, so that the labels of a sequence
    depend on its place in the sample alone and not on the batches it is dealt in.
    """
    uniform = [torch.rand(logits.shape[1], generator=generator) for _ in logits]
    cumulated = full_precision(logits.detach()).softmax(-1).cumsum(-1)
    wanted = torch.stack(uniform).to(logits.device)[..., None] * cumulated[..., -1:]
    labels = torch.searchsorted(cumulated, wanted, right=True)[..., 0]
    return labels.clamp_max(logits.shape[-1] - 1)


def fit_curvature(
    model: Any,
    spaces: Subspaces,
    batches: Callable[[], Iterable[Int[Tensor, "_batch length"]]],
    config: EkfacConfig | None = None,
) -> list[BlockCurvature]:
    """Curvature of every block, in two passes over the sequences.

    Args:
        model: decoder in evaluation mode.
        spaces: blocks.
        batches: called once a pass; token rows, of which all but the last are read.
        config: settings.
    """
    config = config or EkfacConfig()
    with tapped(model, spaces.modules) as taps:
        bases = _bases(model, spaces, taps, batches(), config)
        eigenvalues = _eigenvalues(model, spaces, taps, batches(), config, bases)
    return [
        BlockCurvature(*basis, values) for basis, values in zip(bases, eigenvalues, strict=True)
    ]


def _sampled_passes(
    model: Any, taps: Taps, batches: Iterable[Tensor], config: EkfacConfig
) -> Iterable[int]:
    """Sequences of each batch that count, once their sampled-label gradients are in the taps.

    A sequence whose gradient is no finite number is left out and named in the log.
    """
    generator = torch.Generator().manual_seed(config.seed)
    device = next(model.parameters()).device
    seen = 0
    for rows in batches:
        logits = model(input_ids=rows[:, :-1].to(device), use_cache=False).logits
        labels = sample_labels(logits, generator)
        taps.differentiate(sequence_loss(logits, labels).sum())
        broken = (~taps.finite()).nonzero()[:, 0].tolist()
        for row in broken:
            taps.leave_out(row)
            logger.warning(
                "Sequence %d of the curvature's sample has no finite gradient and is left out.",
                seen + row,
            )
        seen += len(rows)
        yield len(rows) - len(broken)


def _bases(
    model: Any, spaces: Subspaces, taps: Taps, batches: Iterable[Tensor], config: EkfacConfig
) -> list[tuple[Tensor, Tensor]]:
    """Eigenvectors of A and of S, block by block."""
    sums: list[list[Tensor]] = [[] for _ in spaces.blocks]
    n_tokens = 0
    for count in _sampled_passes(model, taps, batches, config):
        for total, block in zip(sums, spaces.blocks, strict=True):
            seen = block.tokens(taps)
            products = [torch.einsum("tsa,tsb->sab", v, v) for v in seen]
            total[:] = [a + b for a, b in zip(total or [0, 0], products, strict=True)]
        n_tokens += count * taps.inputs[taps.names[0]].shape[1]
    require(
        n_tokens > 0,
        "There is no sequence with finite gradients to fit the curvature on; choose other samples.",
    )
    return [tuple(_eigenvectors(factor / n_tokens) for factor in total) for total in sums]  # type: ignore[misc]


def _eigenvectors(factor: Float[Tensor, "shared n n"]) -> Float[Tensor, "shared n n"]:
    """Eigenvectors of a symmetric factor as columns, computed in float64."""
    exact = (factor.double() + factor.double().mT) / 2
    scale = exact.diagonal(dim1=-2, dim2=-1).mean(-1)[:, None, None]
    eye = torch.eye(exact.shape[-1], dtype=exact.dtype, device=exact.device)
    return torch.linalg.eigh(exact + JITTER * scale * eye).eigenvectors.to(factor.dtype)


def _eigenvalues(
    model: Any,
    spaces: Subspaces,
    taps: Taps,
    batches: Iterable[Tensor],
    config: EkfacConfig,
    bases: list[tuple[Tensor, Tensor]],
) -> list[Float[Tensor, "_heads _rows _columns"]]:
    """Mean over sequences of the squared rotated gradient, block by block."""
    sums: list[Tensor | None] = [None] * len(spaces.blocks)
    n_sequences = 0
    for count in _sampled_passes(model, taps, batches, config):
        n_sequences += count
        for number, gradient in enumerate(spaces.gradients(taps)):
            square = rotate(gradient, *bases[number]).square().sum(0)
            known = sums[number]
            sums[number] = square if known is None else known + square
    return [total / n_sequences for total in sums if total is not None]
