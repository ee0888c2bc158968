"""Logits as a sum: one slice per active prototype plus the residual's.

    (W z_t)[v] + b[v] = sum_i a_ti (W p_i)[v] + (W r_t)[v] + b[v],    r_t = z_t - sum_i a_ti p_i

The two sides are computed apart from each other, so the gap between them measures rounding, and
anything wrong. Positive slices raise the logit of the token, negative ones lower it.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from engine.numerics import SMALLEST_NORM, full_precision
from engine.prism.activation import reconstruct
from engine.prism.losses import residual_share


@dataclass(frozen=True)
class HeadRows:
    """Rows of the LM head, with the decoder's constant factor in them, in float32 at least.

    A difference of two (`minus`) explains why one token and not another.
    """

    weight: Float[Tensor, "targets d_model"]
    bias: Float[Tensor, " targets"]

    @classmethod
    def of(
        cls, head: nn.Linear, token_ids: Int[Tensor, " targets"], factor: float = 1.0
    ) -> "HeadRows":
        """Rows of the given tokens."""
        weight = full_precision(head.weight.detach()[token_ids]) * factor
        bias = weight.new_zeros(len(token_ids))
        if head.bias is not None:
            bias = full_precision(head.bias.detach()[token_ids]) * factor
        return cls(weight=weight, bias=bias)

    def minus(self, other: "HeadRows") -> "HeadRows":
        """Rows of the difference of two logits."""
        return HeadRows(weight=self.weight - other.weight, bias=self.bias - other.bias)


@dataclass(frozen=True)
class LogitParts:
    """The summands of one logit at each token.

    slices: a_i (W p_i)[v] of the k active prototypes, in the order of their activations.
    residual: (W r)[v].
    bias: the head's own bias at v; 0 where it has none.
    gap_logit: logit - (slices + residual + bias), the summands added in float64.
    gap: |gap_logit| over the sum of the absolute summands; 0 is exact.
    residual_share: ||r||^2 / ||z||^2.
    """

    slices: Float[Tensor, "tokens k"]
    residual: Float[Tensor, " tokens"]
    bias: Float[Tensor, " tokens"]
    gap_logit: Float[Tensor, " tokens"]
    gap: Float[Tensor, " tokens"]
    residual_share: Float[Tensor, " tokens"]


def slice_logits(
    activations: Float[Tensor, "tokens k"],
    indices: Int[Tensor, "tokens k"],
    prototypes: Float[Tensor, "prototypes d_model"],
    rows: Float[Tensor, "tokens d_model"],
) -> Float[Tensor, "tokens k"]:
    """a_i (W p_i)[v], where `rows` holds each token's row v of W."""
    signature = torch.einsum("tkd,td->tk", full_precision(prototypes[indices]), rows)
    return full_precision(activations) * signature


def split_logits(
    states: Float[Tensor, "tokens d_model"],
    activations: Float[Tensor, "tokens k"],
    indices: Int[Tensor, "tokens k"],
    prototypes: Float[Tensor, "prototypes d_model"],
    rows: HeadRows,
    logits: Float[Tensor, " tokens"],
) -> LogitParts:
    """Split one logit per token into slices, residual and bias; measure the gap to `logits`.

    Args:
        states: z.
        activations: of the active prototypes, >= 0.
        indices: which they are.
        prototypes: the bank.
        rows: the head's row of each token's target.
        logits: the emitted logit of each token's target, as the model gave it.
    """
    states = full_precision(states)
    slices = slice_logits(activations, indices, prototypes, rows.weight)
    explained = reconstruct(full_precision(activations), indices, full_precision(prototypes))
    residual = ((states - explained) * rows.weight).sum(-1)
    terms = torch.cat([slices, residual[:, None], rows.bias[:, None]], dim=1).double()
    gap_logit = logits.double() - terms.sum(1)
    return LogitParts(
        slices=slices,
        residual=residual,
        bias=rows.bias,
        gap_logit=gap_logit,
        gap=gap_logit.abs() / terms.abs().sum(1).clamp_min(SMALLEST_NORM),
        residual_share=residual_share(states, explained),
    )


@torch.no_grad()
def signature_logits(
    prototypes: Float[Tensor, "prototypes d_model"], head: nn.Linear, factor: float = 1.0
) -> Float[Tensor, "prototypes vocab"]:
    """Token-logit signatures W p_i in float32: what a unit of activation adds to each logit.

    [prototypes x vocab] values: hand in the bank a few hundred rows at a time. The head's bias
    belongs to no prototype and is left out.
    """
    return full_precision(prototypes) @ full_precision(head.weight).T * factor
