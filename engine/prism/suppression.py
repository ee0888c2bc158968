"""Switching prototypes off: their slices are taken out of the state."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from engine.prism.activation import reconstruct


def suppress_states(
    states: Float[Tensor, "*batch d_model"],
    activations: Float[Tensor, "*batch k"],
    indices: Int[Tensor, "*batch k"],
    prototypes: Float[Tensor, "prototypes d_model"],
    suppressed: Bool[Tensor, " prototypes"],
    strength: float | Float[Tensor, ""],
) -> Float[Tensor, "*batch d_model"]:
    """States without their suppressed part: z - strength * sum over i in S of a_i p_i.

    The top-k is not chosen anew. Pure: the inputs are left alone. A token with no suppressed
    prototype among its active ones keeps its state bit for bit, and so does every token when
    `strength` is 0 or nothing suppressed is active (then `states` itself is returned).

    Args:
        states: z, the input of the LM head.
        activations: of the k active prototypes, >= 0.
        indices: which prototypes they are.
        prototypes: the bank, un-normalised.
        suppressed: which prototypes to take out.
        strength: 0 leaves all, 1 removes the whole slice.
    """
    chosen = suppressed[indices] & (activations > 0)
    if float(strength) == 0.0 or not bool(chosen.any()):
        return states
    removed = reconstruct(torch.where(chosen, activations, 0.0), indices, prototypes)
    touched = chosen.any(-1, keepdim=True)
    return torch.where(touched, (states - strength * removed).to(states.dtype), states)
