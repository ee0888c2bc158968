"""What the Hessian is made of, summed over batches of tokens: co-usage matrices and pulls."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from engine.numerics import SMALLEST_NORM, full_precision, unit_vectors
from engine.prism.activation import DEFAULT_CHUNK, scan_bank
from engine.prism.attribution.cousage import co_usage
from engine.prism.curvature.hessian import head_curvature


class CoUsageSum:
    """Sum over batches of w_t a_t a_t^T, kept dense: at some thousand tokens it is.

    Attributes:
        matrix: [prototypes prototypes], symmetric, float64, never negative.
    """

    def __init__(self, n_prototypes: int) -> None:
        self.matrix: Float[np.ndarray, "prototypes prototypes"] = np.zeros((n_prototypes,) * 2)

    def add(
        self,
        activations: Float[np.ndarray, "tokens k"],
        indices: Int[np.ndarray, "tokens k"],
        weights: Float[np.ndarray, " tokens"] | None = None,
    ) -> None:
        """Add a batch; `weights` w_t, >= 0, are 1 unless given."""
        scaled = activations if weights is None else activations * np.sqrt(weights)[:, None]
        found = co_usage(indices, scaled, len(self.matrix)).matrix.tocoo()
        self.matrix[found.row, found.col] += found.data


@dataclass(frozen=True)
class Head:
    """The language-model head W, [vocab d_model], and the constant its logits are multiplied by."""

    weight: Float[Tensor, "vocab d_model"]
    factor: float = 1.0


class CurvatureSums:
    """Sums over batches, each one a batch in the sense of the losses.

    L_R1 looks for the nearest token of a batch, so its Hessian depends on the batch's size: give
    the batches the size they had in training. All sums are float64.

    Attributes:
        usage: a_ti a_tj summed over tokens: C.
        weighted: the same over |z_t|^2: Cw of L_REC.
        output: the same times trace F_t / d: the cross-entropy's.
        together: tokens at which both are active.
        activation: a_ti summed over tokens, by prototype.
        to_token: unit states of each prototype's nearest tokens, one a batch: pull of L_R1.
        to_prototype: unit states summed over the tokens a prototype is nearest to: pull of L_R2.
        tokens, batches: how many there were.
    """

    def __init__(
        self,
        prototypes: Float[Tensor, "prototypes d_model"],
        n_active: int,
        head: Head,
        chunk: int = DEFAULT_CHUNK,
    ) -> None:
        self.prototypes = full_precision(prototypes.detach())
        self.unit_prototypes = unit_vectors(self.prototypes)
        self.n_active, self.head, self.chunk = n_active, head, chunk
        count = len(prototypes)
        self.usage, self.weighted = CoUsageSum(count), CoUsageSum(count)
        self.output, self.together = CoUsageSum(count), CoUsageSum(count)
        self.activation = np.zeros(count)
        zeros = torch.zeros_like(self.prototypes, dtype=torch.float64)
        self.to_token, self.to_prototype = zeros, zeros.clone()
        self.tokens = self.batches = 0

    @torch.no_grad()
    def update(
        self, states: Float[Tensor, "tokens d_model"], logits: Float[Tensor, "tokens vocab"]
    ) -> None:
        """Count one batch in; at least one token."""
        states = full_precision(states).to(self.prototypes.dtype)
        unit_states = unit_vectors(states)
        scan = scan_bank(unit_states, self.unit_prototypes, self.n_active, self.chunk)
        activations, indices = scan.cosines.clamp_min(0), scan.indices
        self._add_usage(activations, indices, states, logits)
        self.to_token += unit_states[scan.nearest_token].double()
        self.to_prototype.index_add_(0, indices[:, 0], unit_states.double())
        self.tokens += len(states)
        self.batches += 1

    def _add_usage(
        self,
        activations: Float[Tensor, "tokens k"],
        indices: Int[Tensor, "tokens k"],
        states: Float[Tensor, "tokens d_model"],
        logits: Float[Tensor, "tokens vocab"],
    ) -> None:
        found = activations.double().cpu().numpy()
        where = indices.cpu().numpy()
        lengths = states.double().square().sum(-1).clamp_min(SMALLEST_NORM)
        weight = self.head.weight.to(self.prototypes.dtype)
        bend = head_curvature(logits.to(weight.dtype), weight, self.head.factor)
        self.usage.add(found, where)
        self.weighted.add(found, where, (1 / lengths).cpu().numpy())
        self.output.add(found, where, bend.double().cpu().numpy())
        self.together.add((found > 0).astype(np.float64), where)
        self.activation += np.bincount(
            where.ravel(), weights=found.ravel(), minlength=len(self.activation)
        )

    def pulls(
        self, prototype_to_token: float, token_to_prototype: float
    ) -> Float[Tensor, "prototypes d_model"]:
        """The pull m_i of each prototype under weights of L_R1 and L_R2, mean over batches."""
        count = len(self.prototypes)
        nearest = self.to_token / (max(self.batches, 1) * count)
        return prototype_to_token * nearest + token_to_prototype * self.to_prototype / max(
            self.tokens, 1
        )
