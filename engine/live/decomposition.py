"""One logit as prototype slices, a residual and a rounding gap."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from engine.live.model import LiveModel, Pass
from engine.numerics import full_precision
from engine.prism.logits import HeadRows, split_logits


@dataclass(frozen=True)
class Slices:
    """Terms of a logit, or of the difference of two; all in logits."""

    prototypes: list[int]
    """Active prototypes, by falling activation."""
    activations: list[float]
    logits: list[float]
    """a_i (W p_i)[target], beside `prototypes`."""
    logit: float
    """(W z)[target], as emitted."""
    residual: float
    residual_share: float
    bias: float
    gap_logit: float
    gap: float


def slice_position(
    model: LiveModel, found: Pass, position: int, target: int, distractor: int | None = None
) -> Slices:
    """Split the logit of `target` (minus that of `distractor`) after `position`.

    The logit comes from the emitted W z; slices and residual from a_i, p_i, r and the rows of W,
    each product in float32. Nothing is obtained by subtraction from the logit.
    """
    here = found.at(slice(position, position + 1))
    prototypes, activations, indices = model.bank(here)
    active = activations[0, 0] > 0
    bank = (activations[0, :1, active], indices[0, :1, active])
    emitted = model.logits(here.states)[0]
    logits = emitted[:, target].double()
    if distractor is not None:
        logits = logits - emitted[:, distractor].double()
    rows = head_rows(model, target, distractor)
    parts = split_logits(here.states[0], *bank, prototypes, rows, logits)
    return Slices(
        prototypes=bank[1][0].tolist(),
        activations=full_precision(bank[0][0]).tolist(),
        logits=parts.slices[0].tolist(),
        logit=float(logits),
        residual=float(parts.residual),
        residual_share=float(parts.residual_share),
        bias=float(parts.bias),
        gap_logit=float(parts.gap_logit),
        gap=float(parts.gap),
    )


def head_rows(model: LiveModel, target: int, distractor: int | None) -> HeadRows:
    """Row of W that turns a state into the logit, or into the difference of two logits."""
    ids = [target] if distractor is None else [target, distractor]
    rows = [
        HeadRows.of(model.head, torch.tensor([i], device=model.device), model.factor) for i in ids
    ]
    return rows[0] if distractor is None else rows[0].minus(rows[1])


def divergence(
    log_before: Float[Tensor, "*batch vocab"], log_after: Float[Tensor, "*batch vocab"]
) -> Float[Tensor, "*batch"]:
    """KL(before || after) of two distributions given by log-probabilities, nats; never below 0."""
    return (log_before.exp() * (log_before - log_after)).sum(-1).clamp_min(0.0)
