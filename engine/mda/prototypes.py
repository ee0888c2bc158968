"""A prototype of a PRISM model as a unit: the vector, and where it should be active.

The emitted logits do not depend on the bank, because what it leaves over is added back in full.
As everywhere in attribution to prototypes, that residual and the choice of active prototypes are
therefore held constant: the state is z = sum_i a_i p_i + const, and the loss's gradient in p_i is
sum_t a_ti e_t + (e_t·p_i) (z_t/|z_t| - a_ti p_i/|p_i|) / |p_i| over the positions t at which i is
active, where e_t is the gradient in the state.
"""

from dataclasses import dataclass, field

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from engine.config import require
from engine.mda.probes import Gradients
from engine.mda.subspaces import Block, Subspaces
from engine.mda.taps import Taps
from engine.numerics import full_precision, unit_vectors
from engine.prism.model import PrismForCausalLM


@dataclass(frozen=True)
class PrototypeBlock(Block):
    """Vectors of prototypes, as columns: [d_model × 1] each, whose input is always 1."""

    model: PrismForCausalLM = field(repr=False, compare=False)
    """The model they belong to."""

    @property
    def modules(self) -> tuple[str, ...]:
        """The head, whose input is the state."""
        return (_head_name(self.model),)

    def tokens(
        self, taps: Taps
    ) -> tuple[Float[Tensor, "tokens _shared _inp"], Float[Tensor, "tokens _shared _out"]]:
        """Ones, and each token's gradient in each vector."""
        slopes = self._slopes(taps).flatten(0, 1)
        return slopes.new_ones(len(slopes), 1, 1), slopes

    def gradient(self, taps: Taps) -> Float[Tensor, "batch heads rows columns"]:
        """Each sequence's gradient in each vector."""
        return self._slopes(taps).sum(1)[..., None]

    def _slopes(self, taps: Taps) -> Float[Tensor, "batch pos heads d_model"]:
        """Gradient of the loss in each vector, token by token."""
        name = _head_name(self.model)
        states = full_precision(taps.inputs[name])
        weight = full_precision(self.model.get_output_embeddings().weight)  # type: ignore[arg-type]
        errors = taps.gradients[name] @ weight
        vectors = full_precision(self.model.prototypes.detach())[list(self.heads)]
        directions, lengths = unit_vectors(vectors), vectors.norm(dim=1)
        cosines = unit_vectors(states) @ directions.T
        activations = torch.where(active(self.model, states, self.heads), cosines, 0.0)
        along = (errors @ vectors.T) / lengths * (activations > 0)
        turn = unit_vectors(states)[:, :, None] - activations[..., None] * directions
        return activations[..., None] * errors[:, :, None] + along[..., None] * turn


@dataclass(frozen=True)
class TracedPrototypes:
    """Prototypes of a model with a bank: a `TracedUnit`.

    Metric and probe are the mean activation over all positions of given sequences; activations
    are 0 where others are nearer.
    """

    prototypes: tuple[int, ...]
    """Prototypes, counted from 0."""
    tokens: Int[Tensor, "batch pos"]
    """Sequences on which they should be active."""
    name: str = "prototype"
    """Name of the kind."""

    def spaces(self, model: PrismForCausalLM) -> Subspaces:
        """The vector of each; it lies behind the last layer."""
        count = len(model.prototypes)
        missing = [i for i in self.prototypes if not 0 <= i < count]
        require(
            not missing and len(self.prototypes) > 0,
            f"There is no prototype {missing[:1]}; this model has prototypes 0 to {count - 1}.",
        )
        layers = int(model.config.decoder.num_hidden_layers)
        return Subspaces((PrototypeBlock(layers, "vector", self.prototypes, model),))

    def probe(self, model: PrismForCausalLM) -> "TracedPrototypes":  # noqa: ARG002
        """The mean activation."""
        return self

    @torch.no_grad()
    def measure(self, model: PrismForCausalLM) -> Float[Tensor, " units"]:
        """Mean activation of each prototype, in [0, 1]."""
        vectors = full_precision(model.prototypes.detach())[list(self.prototypes)]
        return self._activations(model, vectors).cpu()

    def gradients(self, model: PrismForCausalLM, spaces: Subspaces) -> Gradients:  # noqa: ARG002
        """Gradient of each prototype's mean activation in its own vector."""
        vectors = full_precision(model.prototypes.detach())[list(self.prototypes)]
        vectors.requires_grad_(True)
        value = self._activations(model, vectors).sum()
        (found,) = torch.autograd.grad(value, [vectors])
        return [found[..., None]]

    def _activations(
        self, model: PrismForCausalLM, vectors: Float[Tensor, "units d_model"]
    ) -> Float[Tensor, " units"]:
        with torch.no_grad():
            tokens = self.tokens.to(model.prototypes.device)
            decoder = model.backbone.base_model
            states = full_precision(decoder(input_ids=tokens, use_cache=False).last_hidden_state)
            chosen = active(model, states, self.prototypes)
        cosines = unit_vectors(states) @ unit_vectors(vectors).T
        return torch.where(chosen, cosines, 0.0).mean(dim=(0, 1))


@torch.no_grad()
def active(
    model: PrismForCausalLM, states: Float[Tensor, "batch pos d_model"], prototypes: tuple[int, ...]
) -> Bool[Tensor, "batch pos units"]:
    """Where each prototype is active: among the nearest, with a positive cosine."""
    activations, indices = model.explain(states)
    wanted = torch.tensor(prototypes, device=indices.device)
    hit = (indices[..., None] == wanted) & (activations[..., None] > 0)
    return hit.any(2)


def _head_name(model: PrismForCausalLM) -> str:
    head = model.get_output_embeddings()
    return next(name for name, module in model.named_modules() if module is head)
