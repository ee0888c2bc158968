"""The bank's three losses: reconstruction and the two clustering terms.

With u = z/|z| and q = p/|p|, over the tokens t of a batch and the prototypes i:

    L_REC = mean_t |z_t - sum_i a_ti p_i|^2 / |z_t|^2
    L_R1  = mean_i min_t (1 - u_t.q_i)      each prototype to its nearest token
    L_R2  = mean_t min_i (1 - u_t.q_i)      each token to its nearest prototype
"""

from dataclasses import dataclass

from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from engine.config import LossWeights
from engine.numerics import SMALLEST_NORM, full_precision, unit_vectors
from engine.prism.activation import DEFAULT_CHUNK, PickedCosines, reconstruct, scan_bank


@dataclass(frozen=True)
class BankLosses:
    """The unweighted terms of one batch, with the activations they were computed from.

    reconstruction: squared residual share, >= 0. prototype_to_token and token_to_prototype:
    cosine distances in [0, 2]. activations: [tokens k], >= 0, falling; indices: prototypes.
    """

    reconstruction: Float[Tensor, ""]
    prototype_to_token: Float[Tensor, ""]
    token_to_prototype: Float[Tensor, ""]
    activations: Float[Tensor, "tokens k"]
    indices: Int[Tensor, "tokens k"]

    def total(self, weights: LossWeights) -> Float[Tensor, ""]:
        """Weighted sum of the three terms."""
        return (
            weights.reconstruction * self.reconstruction
            + weights.prototype_to_token * self.prototype_to_token
            + weights.token_to_prototype * self.token_to_prototype
        )


def residual_share(
    states: Float[Tensor, "*batch d_model"], reconstruction: Float[Tensor, "*batch d_model"]
) -> Float[Tensor, "*batch"]:
    """|z - zhat|^2 / |z|^2 per token; 0 is a perfect reconstruction, 1 that of an empty bank."""
    squared = (states - reconstruction).square().sum(-1)
    return squared / states.square().sum(-1).clamp_min(SMALLEST_NORM)


def reconstruction_loss(
    states: Float[Tensor, "*batch d_model"], reconstruction: Float[Tensor, "*batch d_model"]
) -> Float[Tensor, ""]:
    """L_REC, the mean squared residual share."""
    return residual_share(states, reconstruction).mean()


def prototype_to_token_loss(
    unit_states: Float[Tensor, "tokens d_model"],
    unit_prototypes: Float[Tensor, "prototypes d_model"],
    nearest_token: Int[Tensor, " prototypes"],
) -> Float[Tensor, ""]:
    """L_R1, the mean cosine distance of each prototype to its nearest token of the batch."""
    return 1 - (unit_states[nearest_token] * unit_prototypes).sum(-1).mean()


def token_to_prototype_loss(cosines: Float[Tensor, "tokens k"]) -> Float[Tensor, ""]:
    """L_R2, the mean cosine distance of each token to its nearest prototype (first column)."""
    return 1 - cosines[:, 0].mean()


def bank_losses(
    states: Float[Tensor, "tokens d_model"],
    prototypes: Float[Tensor, "prototypes d_model"],
    n_active: int,
    chunk: int = DEFAULT_CHUNK,
) -> BankLosses:
    """All three losses from one pass over the chunked cosine matrix.

    Gradients flow into the states and the prototypes; which prototypes are active and which
    token is nearest is held fixed, as in any max or top-k.
    """
    states = full_precision(states)
    prototypes = prototypes.to(states.dtype)
    unit_states, unit_prototypes = unit_vectors(states), unit_vectors(prototypes)
    scan = scan_bank(unit_states, unit_prototypes, n_active, chunk)
    cosines = PickedCosines.apply(unit_states, unit_prototypes, scan.indices, scan.cosines)
    activations = functional.relu(cosines)
    return BankLosses(
        reconstruction=reconstruction_loss(
            states, reconstruct(activations, scan.indices, prototypes)
        ),
        prototype_to_token=prototype_to_token_loss(
            unit_states, unit_prototypes, scan.nearest_token
        ),
        token_to_prototype=token_to_prototype_loss(cosines),
        activations=activations.detach(),
        indices=scan.indices,
    )
