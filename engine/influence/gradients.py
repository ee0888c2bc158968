"""Whole-network gradients: their dot product and their cosine, without any curvature.

The gradient of a sequence is that of its summed loss with respect to every parameter of the
decoder, embedding and LM head included. The bank moves no logit, so it has none.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from engine.corpus.documents import Progress, no_progress
from engine.influence.decoder import decoder_of, summed_losses, tensors
from engine.influence.frame import Sequences
from engine.numerics import SMALLEST_NORM
from engine.prism.model import PrismForCausalLM


GRADIENT_BYTES = 1 << 30
"""Memory for the gradients held at once, half of it for the queries."""


@dataclass(frozen=True)
class GradientProducts:
    """Products of the gradients of queries and pool."""

    dots: Float[np.ndarray, "queries pool"]
    """Inner products, nats squared per squared unit of parameter."""
    query_norms: Float[np.ndarray, " queries"]
    pool_norms: Float[np.ndarray, " pool"]

    @property
    def cosines(self) -> Float[np.ndarray, "queries pool"]:
        """Inner products over both lengths, in [-1, 1]; 0 where a gradient is 0."""
        lengths = self.query_norms[:, None] * self.pool_norms
        return (self.dots / np.maximum(lengths, SMALLEST_NORM)).astype(np.float32)


def score_gradient_dot(
    model: PrismForCausalLM,
    pool: Sequences,
    queries: Sequences,
    progress: Progress = no_progress,
    *,
    memory_bytes: int = GRADIENT_BYTES,
) -> Float[np.ndarray, "queries pool"]:
    """<grad L(text), grad L(query)>: what a step on the text takes off the query's loss."""
    return gradient_products(model, pool, queries, progress, memory_bytes=memory_bytes).dots


def score_gradient_cosine(
    model: PrismForCausalLM,
    pool: Sequences,
    queries: Sequences,
    progress: Progress = no_progress,
    *,
    memory_bytes: int = GRADIENT_BYTES,
) -> Float[np.ndarray, "queries pool"]:
    """The dot product over the lengths of both gradients, in [-1, 1]."""
    return gradient_products(model, pool, queries, progress, memory_bytes=memory_bytes).cosines


def gradient_products(
    model: PrismForCausalLM,
    pool: Sequences,
    queries: Sequences,
    progress: Progress = no_progress,
    *,
    memory_bytes: int = GRADIENT_BYTES,
) -> GradientProducts:
    """Products of every pair, with each gradient of the pool computed once a block of queries.

    Queries are held in blocks that fit half of the memory; the pool streams past them.
    """
    parameters = list(decoder_of(model).parameters())
    size = sum(p.numel() * p.element_size() for p in parameters)
    n_queries = max(1, memory_bytes // 2 // size)
    n_pool = int(np.clip(memory_bytes // 2 // size, 1, 16))
    dots = np.zeros((len(queries), len(pool)), np.float32)
    query_norms = np.zeros(len(queries), np.float32)
    pool_norms = np.zeros(len(pool), np.float32)
    for block in queries.batches(n_queries):
        asked = flat_gradients(model, queries[block])
        query_norms[block] = asked.norm(dim=1).cpu().numpy()
        parts = list(pool.batches(n_pool))
        for rows in progress(parts, label="Gradients", total=len(parts)):
            held = flat_gradients(model, pool[rows])
            dots[block, rows] = (asked @ held.T).float().cpu().numpy()
            pool_norms[rows] = held.norm(dim=1).cpu().numpy()
    return GradientProducts(dots, query_norms, pool_norms)


def flat_gradients(model: PrismForCausalLM, sequences: Sequences) -> Float[Tensor, "n parameters"]:
    """Gradient of each sequence's summed loss, all parameters of the decoder end to end."""
    tokens, predicted = tensors(sequences, model.device)
    rows = []
    with differentiable(decoder_of(model)) as parameters:
        for line, kept in zip(tokens, predicted, strict=True):
            loss = summed_losses(model, line[None], kept[None]).sum()
            found = torch.autograd.grad(loss, parameters, materialize_grads=True)
            rows.append(torch.cat([gradient.flatten() for gradient in found]))
    return torch.stack(rows)


@contextmanager
def differentiable(module: nn.Module) -> Iterator[list[nn.Parameter]]:
    """All parameters of a module, each asking for its gradient inside, as before outside."""
    parameters = list(module.parameters())
    asked = [parameter.requires_grad for parameter in parameters]
    try:
        with torch.enable_grad():
            for parameter in parameters:
                parameter.requires_grad_(True)
            yield parameters
    finally:
        for parameter, before in zip(parameters, asked, strict=True):
            parameter.requires_grad_(before)
