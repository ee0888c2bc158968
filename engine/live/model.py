"""A loaded causal LM as the live engine uses it: states, active prototypes, logits. Stateless."""

from dataclasses import dataclass
from typing import Any, cast

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from transformers import PreTrainedModel

from engine.numerics import full_precision, unit_vectors
from engine.prism.activation import prototype_activations, reconstruct
from engine.prism.losses import residual_share
from engine.prism.model import PrismForCausalLM, check_head, keep_positions, logit_factor
from engine.prism.suppression import suppress_states


MAX_CONTEXT = 2048
"""Tokens read at once, at most: what keeps an answer within seconds on two cores."""


@dataclass(frozen=True)
class Pass:
    """What one forward pass leaves: states z and, with a bank, the active prototypes of each."""

    states: Float[Tensor, "batch pos d_model"]
    activations: Float[Tensor, "batch pos k"] | None = None
    indices: Int[Tensor, "batch pos k"] | None = None
    cache: Any = None

    def at(self, chosen: slice | Tensor) -> "Pass":
        """The same for some positions."""
        return Pass(
            self.states[:, chosen],
            None if self.activations is None else self.activations[:, chosen],
            None if self.indices is None else self.indices[:, chosen],
        )


class LiveModel:
    """A causal LM, with or without a bank; every method is a pure function of its arguments."""

    def __init__(self, model: PreTrainedModel) -> None:
        """Take a model that is in evaluation mode and on its device.

        Raises:
            UnsupportedModel: its logits are not linear in its last state.
        """
        prism = model if isinstance(model, PrismForCausalLM) else None
        self.prism = prism
        self.backbone: PreTrainedModel = model if prism is None else prism.backbone
        check_head(self.backbone)
        self.head = cast(nn.Linear, self.backbone.get_output_embeddings())
        self.factor = logit_factor(self.backbone)
        self.prototypes = None if prism is None else prism.prototypes.detach()
        self.n_active = 0 if prism is None else prism.config.n_active
        self.chunk = 0 if prism is None else prism.config.cosine_chunk
        config = self.backbone.config.get_text_config()
        limit = int(getattr(config, "max_position_embeddings", None) or MAX_CONTEXT)
        self.context = min(limit, MAX_CONTEXT)
        self.vocab_size = int(self.head.weight.shape[0])
        self.device = self.head.weight.device
        self.end_ids = end_ids(model)

    @property
    def n_prototypes(self) -> int:
        """Size of the bank; 0 without one."""
        return 0 if self.prototypes is None else len(self.prototypes)

    def run(
        self,
        ids: Int[Tensor, "batch pos"],
        *,
        cache: Any = None,
        use_cache: bool = False,
        last_only: bool = False,
    ) -> Pass:
        """States of the given tokens and their active prototypes; `cache` holds those before."""
        out = self.backbone.base_model(input_ids=ids, cache=cache, use_cache=use_cache)
        states = keep_positions(out.last_hidden_state, 1 if last_only else 0)
        if self.prototypes is None:
            return Pass(states, cache=out.get("cache"))
        bank = prototype_activations(states, self.prototypes, self.n_active, self.chunk)
        return Pass(states, *bank, cache=out.get("cache"))

    def logits(self, states: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch vocab"]:
        """The emitted logits W z, in float32."""
        logits = self.head(states)
        return full_precision(logits if self.factor == 1.0 else logits * self.factor)

    def mask(self, prototypes: tuple[int, ...]) -> Bool[Tensor, " prototypes"]:
        """True at the prototypes named."""
        mask = torch.zeros(self.n_prototypes, dtype=torch.bool, device=self.device)
        mask[list(prototypes)] = True
        return mask

    def suppressed(
        self, found: Pass, mask: Bool[Tensor, " prototypes"] | None, strength: float
    ) -> Float[Tensor, "batch pos d_model"]:
        """States with the masked prototypes' slices taken out; the same tensor without a mask."""
        if mask is None:
            return found.states
        prototypes, activations, indices = self.bank(found)
        return suppress_states(found.states, activations, indices, prototypes, mask, strength)

    def touched(
        self, found: Pass, mask: Bool[Tensor, " prototypes"] | None
    ) -> Bool[Tensor, "batch pos"]:
        """Where a masked prototype is active."""
        if mask is None:
            return torch.zeros(found.states.shape[:2], dtype=torch.bool, device=self.device)
        _, activations, indices = self.bank(found)
        return (mask[indices] & (activations > 0)).any(-1)

    def residual(
        self, found: Pass
    ) -> tuple[Float[Tensor, "batch pos d_model"], Float[Tensor, "batch pos"]]:
        """Residuals r = z - zhat in float32, and their squared shares."""
        prototypes, activations, indices = self.bank(found)
        states = full_precision(found.states)
        explained = reconstruct(activations, indices, full_precision(prototypes))
        return states - explained, residual_share(states, explained)

    def similarity(
        self, states: Float[Tensor, "batch pos d_model"], prototype: int
    ) -> Float[Tensor, "batch pos"]:
        """Cosine of states with one prototype, before ReLU and top-k."""
        if self.prototypes is None:
            raise ValueError("the model has no bank")
        return unit_vectors(full_precision(states)) @ unit_vectors(
            full_precision(self.prototypes[prototype])
        )

    def bank(self, found: Pass) -> tuple[Tensor, Tensor, Tensor]:
        """Prototypes, activations and indices; only of a model with a bank."""
        if self.prototypes is None or found.activations is None or found.indices is None:
            raise ValueError("the model has no bank")
        return self.prototypes, found.activations, found.indices


def end_ids(model: PreTrainedModel) -> frozenset[int]:
    """Tokens that end a text, by the model's generation settings or its configuration."""
    generation = getattr(model, "generation_config", None)
    found = getattr(generation, "eos_token_id", None)
    if found is None:
        backbone = model.backbone if isinstance(model, PrismForCausalLM) else model
        found = getattr(backbone.config.get_text_config(), "eos_token_id", None)
    if found is None:
        return frozenset()
    return frozenset(found) if isinstance(found, list | tuple) else frozenset({int(found)})
