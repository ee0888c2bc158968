"""The full prototype-space gradient: exact, dense, by autograd, and slow.

This is what the cached scores approximate, computed on a way of its own: the logits are written as
W (sum_i a_ti p_i + r_t) with the residual r_t and the choice of the k active prototypes held
constant, and autograd takes the gradient of the summed loss with respect to the whole bank, through
the prototypes and through the activations a_ti = ReLU(cos(p_i, z_t)). For PRISM (arXiv 2607.00510)
see its section on attribution; the path through the activations is ours.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from engine.corpus.documents import Progress, no_progress
from engine.errors import UnsupportedModel
from engine.influence.decoder import label_losses, last_states, tensors
from engine.influence.frame import Sequences
from engine.numerics import SMALLEST_NORM, unit_vectors
from engine.prism.model import PrismForCausalLM


Precision = Literal["float32", "float64"]
Inverse = Float[Tensor, " prototypes"] | Float[Tensor, "prototypes prototypes"]
"""M^-1: its diagonal, or all of it."""
_POOL_ROWS = 16


def score_full(
    model: PrismForCausalLM,
    pool: Sequences,
    queries: Sequences,
    progress: Progress = no_progress,
    *,
    precision: Precision = "float32",
    inverse: Inverse | None = None,
    through_activations: bool = True,
    unit: bool = False,
) -> Float[np.ndarray, "queries pool"]:
    """<grad_P L(text), M^-1 grad_P L(query)> of the whole bank P, every gradient made anew.

    Positive: weighting the text up lowers the query's loss, in nats to first order.

    Args:
        model: A prototype model.
        pool: Texts to score.
        queries: What they are scored for.
        progress: Wraps the batches of the pool.
        precision: Of the gradients and their products; states come from the model as it is.
        inverse: M^-1, its diagonal or the K x K matrix; the identity where None.
        through_activations: Let the gradient pass through a_ti; otherwise hold it constant.
        unit: Divide by the length of the text's own gradient.
    """
    settings = _Settings(torch.float64 if precision == "float64" else torch.float32)
    settings = replace(settings, through_activations=through_activations, unit=unit)
    return full_scores(model, pool, queries, [inverse], progress, settings)[0]


@dataclass(frozen=True)
class _Settings:
    """How gradients are taken and compared."""

    dtype: torch.dtype = torch.float32
    through_activations: bool = True
    unit: bool = False


def full_scores(
    model: PrismForCausalLM,
    pool: Sequences,
    queries: Sequences,
    inverses: Iterable[Inverse | None],
    progress: Progress = no_progress,
    settings: _Settings | None = None,
) -> list[Float[np.ndarray, "queries pool"]]:
    """Scores under several inverses in one pass over the pool; see `score_full`.

    The conditioned gradients of all queries are held at once: 4 K d bytes each and inverse.
    """
    settings = settings or _Settings()
    found = [_gradient(model, queries, row, settings) for row in range(len(queries))]
    asked = [_conditioned(torch.stack(found), inverse).flatten(1) for inverse in inverses]
    scores = [np.zeros((len(queries), len(pool)), np.float32) for _ in asked]
    batches = list(pool.batches(_POOL_ROWS))
    for rows in progress(batches, label="Prototype gradients", total=len(batches)):
        part = pool[rows]
        held = torch.stack(
            [_gradient(model, part, i, settings).flatten() for i in range(len(part))]
        )
        lengths = held.norm(dim=1).clamp_min(SMALLEST_NORM) if settings.unit else 1.0
        for matrix, values in zip(asked, scores, strict=True):
            values[:, rows] = (matrix @ held.T / lengths).float().cpu().numpy()
    return scores


def _conditioned(
    gradients: Float[Tensor, "queries prototypes d_model"], inverse: Inverse | None
) -> Float[Tensor, "queries prototypes d_model"]:
    """M^-1 G of each query."""
    if inverse is None:
        return gradients
    matrix = inverse.to(gradients)
    return matrix[:, None] * gradients if matrix.ndim == 1 else matrix @ gradients


def _gradient(
    model: PrismForCausalLM,
    sequences: Sequences,
    row: int,
    settings: _Settings,
) -> Float[Tensor, "prototypes d_model"]:
    """Gradient of one sequence."""
    tokens, predicted = tensors(sequences[row : row + 1], model.device)
    states = last_states(model, tokens)[0, :-1].to(settings.dtype)
    through = settings.through_activations
    return prototype_gradient(
        model, states, tokens[0, 1:], predicted[0], through_activations=through
    )


def prototype_gradient(
    model: PrismForCausalLM,
    states: Float[Tensor, "pos d_model"],
    labels: Int[Tensor, " pos"],
    predicted: Bool[Tensor, " pos"],
    *,
    through_activations: bool = True,
) -> Float[Tensor, "prototypes d_model"]:
    """d/dP of the sum over the predicted positions of -log p(label), r_t and the top k constant."""
    states, labels = states[predicted], labels[predicted]
    bank = model.prototypes.detach().to(states.dtype).requires_grad_()
    with torch.no_grad():
        active = model.explain(states.to(model.prototypes.dtype))[1]
    chosen = bank[active]
    cosines = (unit_vectors(chosen) * unit_vectors(states)[:, None]).sum(-1)
    activations = cosines.clamp_min(0.0)
    if not through_activations:
        activations = activations.detach()
    explained = (activations[..., None] * chosen).sum(1)
    residual = (states - explained).detach()
    logits = nn.functional.linear(explained + residual, *_head(model, states.dtype))
    logits = logits * model.logit_factor
    loss = label_losses(logits[None], labels[None], torch.ones_like(labels, dtype=torch.bool)[None])
    return torch.autograd.grad(loss.sum(), bank)[0]


def _head(
    model: PrismForCausalLM, dtype: torch.dtype
) -> tuple[Float[Tensor, "vocab d_model"], Float[Tensor, " vocab"] | None]:
    """Weight and bias of the LM head."""
    head = model.get_output_embeddings()
    if not isinstance(head, nn.Linear):
        raise UnsupportedModel("The model has no linear LM head, so its logits do not add up.")
    bias = None if head.bias is None else head.bias.detach().to(dtype)
    return head.weight.detach().to(dtype), bias
