"""Nearest prototypes and token-logit signatures: what a bank says of itself, without any text."""

from dataclasses import dataclass
from typing import cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from engine.numerics import full_precision, unit_vectors
from engine.prism.logits import signature_logits
from engine.prism.model import PrismForCausalLM


CHUNK = 1024
"""Prototypes compared with all others at once."""


@dataclass(frozen=True)
class Nearest:
    """The nearest other prototypes of each prototype."""

    neighbour: Int[Tensor, "prototypes n"]
    cosine: Float[Tensor, "prototypes n"]
    """Falling, in [-1, 1]."""


@dataclass(frozen=True)
class Signature:
    """The tokens a prototype raises most (top) and lowers most (bottom), with W p_i there."""

    top_tokens: Int[Tensor, "prototypes n"]
    top_logits: Float[Tensor, "prototypes n"]
    bottom_tokens: Int[Tensor, "prototypes n"]
    bottom_logits: Float[Tensor, "prototypes n"]


@torch.no_grad()
def nearest_prototypes(bank: Float[Tensor, "prototypes d_model"], n: int) -> Nearest:
    """Nearest prototypes by cosine of directions, the prototype itself left out."""
    units = unit_vectors(full_precision(bank))
    n = min(n, len(units) - 1)
    cosines, neighbours = [], []
    for start in range(0, len(units), CHUNK):
        similarity = units[start : start + CHUNK] @ units.T
        rows = torch.arange(len(similarity), device=bank.device)
        similarity[rows, start + rows] = -torch.inf
        best = similarity.topk(n, dim=1)
        cosines.append(best.values.clamp(-1.0, 1.0))
        neighbours.append(best.indices)
    return Nearest(torch.cat(neighbours), torch.cat(cosines))


@torch.no_grad()
def signatures(model: PrismForCausalLM, n: int) -> Signature:
    """Both ends of W p_i, the decoder's constant factor included and any head bias left out."""
    head = cast(nn.Linear, model.get_output_embeddings())
    n = min(n, len(head.weight) // 2)
    found: list[tuple[Tensor, ...]] = []
    for start in range(0, len(model.prototypes), CHUNK // 4):
        block = model.prototypes[start : start + CHUNK // 4]
        logits = signature_logits(block, head, model.logit_factor)
        top, bottom = logits.topk(n, dim=1), logits.topk(n, dim=1, largest=False)
        found.append((top.indices, top.values, bottom.indices, bottom.values))
    return Signature(*(torch.cat(parts) for parts in zip(*found, strict=True)))
