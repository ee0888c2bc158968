"""Influence of training samples on heads: every head of the model in one pass over the samples.

I(z) = - grad L(z)^T H^-1 grad f (MDA, equation of section 3), block by block, where L(z) is the
summed loss of the sample with its real labels and f a probe to maximise. **Positive: training
more on the sample raises the head's score; negative: it lowers it.** The preconditioned probe
gradients H^-1 grad f are computed once; a pass then costs a forward, a backward through
activations and one inner product a head.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from engine.mda.ekfac import BlockCurvature, sequence_loss
from engine.mda.probes import Gradients
from engine.mda.settings import EkfacConfig
from engine.mda.subspaces import Subspaces
from engine.mda.taps import Taps, tapped


@dataclass(frozen=True)
class BatchScores:
    """Scores of a batch of samples.

    scores: by sample, head (in the order of `Subspaces.heads`) and kind of block; their sum over
        kinds is the influence. NaN where the sample's gradient is no finite number.
    losses: summed over the sample's tokens, in nats.
    finite: whether the sample could be scored.
    """

    scores: Float[Tensor, "batch heads kinds"]
    losses: Float[Tensor, " batch"]
    finite: Bool[Tensor, " batch"]


def precondition(
    curvature: list[BlockCurvature], gradients: Gradients, config: EkfacConfig | None = None
) -> Gradients:
    """H^-1 grad f of every block."""
    config = config or EkfacConfig()
    pairs = zip(curvature, gradients, strict=True)
    return [block.solve(gradient, config) for block, gradient in pairs]


def score_samples(
    model: Any,
    spaces: Subspaces,
    directions: Gradients,
    batches: Iterable[Int[Tensor, "_batch length"]],
) -> Iterator[BatchScores]:
    """Influence of each sample on each head, a batch at a time.

    Args:
        model: decoder in evaluation mode.
        spaces: blocks.
        directions: preconditioned probe gradients.
        batches: token rows; every token but the first is predicted.
    """
    with tapped(model, spaces.modules) as taps:
        for rows in batches:
            losses = _differentiate(model, taps, rows)
            yield _scores(spaces, directions, taps, losses)


def only(
    spaces: Subspaces, directions: Gradients, head: tuple[int, int]
) -> tuple[Subspaces, Gradients]:
    """The blocks of one of the heads, and their directions."""
    layer, number = head
    kept = [
        (replace(block, heads=(number,)), direction[[block.heads.index(number)]])
        for block, direction in zip(spaces.blocks, directions, strict=True)
        if block.layer == layer and number in block.heads
    ]
    return Subspaces(tuple(block for block, _ in kept)), [direction for _, direction in kept]


def token_scores(
    model: Any, spaces: Subspaces, directions: Gradients, row: Int[Tensor, " length"]
) -> Float[Tensor, "heads pos"]:
    """One sample's influence split by the position whose gradient carries it.

    They add up to the sample's influence. Position t stands for what the blocks read and wrote
    at the token t, not for the loss of one token alone.
    """
    with tapped(model, spaces.modules) as taps:
        _differentiate(model, taps, row[None])
        found: dict[tuple[int, int], Tensor] = {}
        for block, direction in zip(spaces.blocks, directions, strict=True):
            inputs, outputs = block.tokens(taps)
            wide = outputs.expand(-1, len(block.heads), -1)
            along = torch.einsum("thr,hrc->thc", wide, direction)
            split = -(along * inputs).sum(-1)
            for place, head in enumerate(block.heads):
                key = (block.layer, head)
                found[key] = found.get(key, 0) + split[:, place]
    return torch.stack([found[head] for head in spaces.heads])


def _differentiate(model: Any, taps: Taps, rows: Int[Tensor, "batch length"]) -> Tensor:
    """Put the gradients of the samples' losses in the taps; their losses."""
    rows = rows.to(next(model.parameters()).device)
    logits = model(input_ids=rows[:, :-1], use_cache=False).logits
    losses = sequence_loss(logits, rows[:, 1:])
    taps.differentiate(losses.sum())
    return losses.detach()


def _scores(
    spaces: Subspaces, directions: Gradients, taps: Taps, losses: Float[Tensor, " batch"]
) -> BatchScores:
    columns: dict[tuple[int, int], list[Tensor]] = {head: [] for head in spaces.heads}
    gradients = spaces.gradients(taps)
    for block, gradient, direction in zip(spaces.blocks, gradients, directions, strict=True):
        products = -torch.einsum("bhrc,hrc->bh", gradient, direction)
        for place, head in enumerate(block.heads):
            columns[block.layer, head].append(products[:, place])
    scores = torch.stack([torch.stack(found, 1) for found in columns.values()], 1)
    finite = scores.isfinite().flatten(1).all(1) & losses.isfinite()
    scores = torch.where(finite[:, None, None], scores, torch.nan)
    return BatchScores(scores.cpu(), losses.cpu(), finite.cpu())
