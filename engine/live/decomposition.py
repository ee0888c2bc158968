"""One logit as prototype slices, a residual and a rounding gap."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from engine.live.model import LiveModel, Pass
from engine.live.results import relative_gap
from engine.numerics import full_precision


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
    chosen, weights = indices[0, 0][active], full_precision(activations[0, 0][active])
    row = head_row(model, target, distractor)
    slices = weights * (full_precision(prototypes[chosen]) @ row)
    residuals, shares = model.residual(here)
    residual = float(residuals[0, 0] @ row)
    emitted = model.logits(here.states)[0, 0]
    logit = float(emitted[target]) - (0.0 if distractor is None else float(emitted[distractor]))
    bias = head_bias(model, target, distractor)
    values = slices.tolist()
    gap_logit, gap = relative_gap(logit, [*values, residual, bias])
    return Slices(
        prototypes=chosen.tolist(),
        activations=weights.tolist(),
        logits=values,
        logit=logit,
        residual=residual,
        residual_share=float(shares[0, 0]),
        bias=bias,
        gap_logit=gap_logit,
        gap=gap,
    )


def head_row(model: LiveModel, target: int, distractor: int | None) -> Float[Tensor, " d_model"]:
    """Row of W that turns a state into the logit, or into the difference of two logits."""
    weight = full_precision(model.head.weight)
    row = weight[target] if distractor is None else weight[target] - weight[distractor]
    return row * model.factor


def head_bias(model: LiveModel, target: int, distractor: int | None) -> float:
    """The head's own bias in the logit; 0 where it has none."""
    bias = getattr(model.head, "bias", None)
    if bias is None:
        return 0.0
    value = float(bias[target]) - (0.0 if distractor is None else float(bias[distractor]))
    return value * model.factor


def divergence(
    log_before: Float[Tensor, "*batch vocab"], log_after: Float[Tensor, "*batch vocab"]
) -> Float[Tensor, "*batch"]:
    """KL(before || after) of two distributions given by log-probabilities, nats; never below 0."""
    return (log_before.exp() * (log_before - log_after)).sum(-1).clamp_min(0.0)
