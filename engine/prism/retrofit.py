"""Fit a bank to states that stay as they are: k-means, then Adam on the bank alone.

The logits of the decoder do not move, since the residual is added back in full. What is fitted is
only how its states are explained, so clustering weight trades coverage against residual.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from engine.config import LossWeights, RetrofitConfig
from engine.corpus.documents import Progress, no_progress
from engine.numerics import full_precision, unit_vectors
from engine.prism.activation import DEFAULT_CHUNK, column_maximum, cosine_matrix
from engine.prism.kmeans import bank_from_states
from engine.prism.losses import bank_losses, prototype_to_token_loss


REASSIGN = 50
"""Steps after which each prototype's nearest token is sought anew over all states."""

KMEANS_STATES = 48
"""States a prototype that k-means reads at most."""


@dataclass(frozen=True)
class BankFit:
    """A fitted bank and how it came about.

    prototypes: the bank. start: the bank k-means gave. log: one row per step with its learning
    rate and the unweighted losses of its batch.
    """

    prototypes: Float[Tensor, "prototypes d_model"]
    start: Float[Tensor, "prototypes d_model"]
    log: list[dict[str, Any]]


def fit_bank(
    states: Float[Tensor, "tokens d_model"],
    config: RetrofitConfig,
    progress: Progress = no_progress,
) -> BankFit:
    """Fit a bank to states, which may be memory-mapped and in half precision.

    L_R1 looks for the nearest token among all states rather than a batch's, as the states do not
    move: the assignment is renewed every `REASSIGN` steps.

    Args:
        states: z of the decoder, at least as many as there are prototypes.
        config: sizes, loss weights, steps, learning rate and seed.
        progress: wraps the steps.
    """
    generator = torch.Generator().manual_seed(config.seed)
    sample = torch.randperm(len(states), generator=generator)
    sample = sample[: KMEANS_STATES * config.n_prototypes].sort().values
    start = bank_from_states(
        full_precision(states[sample]), config.n_prototypes, config.n_active, seed=config.seed
    )
    bank = nn.Parameter(start.clone())
    optimiser = torch.optim.Adam([bank], lr=config.learning_rate, betas=(0.9, 0.99))
    batches = _batches(len(states), config.batch_tokens, generator)
    log: list[dict[str, Any]] = []
    nearest = torch.empty(0)
    for step in progress(range(config.steps), label="Fitting the bank", total=config.steps):
        if step % REASSIGN == 0:
            nearest = unit_vectors(full_precision(states[nearest_states(states, bank.detach())]))
        rate = config.learning_rate * _cosine(step / config.steps)
        for group in optimiser.param_groups:
            group["lr"] = rate
        batch = full_precision(states[next(batches)])
        terms = _step(bank, batch, nearest, config.n_active, config.weights)
        optimiser.step()
        optimiser.zero_grad()
        log.append({"step": step + 1, "learning_rate": rate, **terms})
    return BankFit(prototypes=bank.detach(), start=start, log=log)


def _step(
    bank: nn.Parameter,
    batch: Float[Tensor, "tokens d_model"],
    nearest: Float[Tensor, "prototypes d_model"],
    n_active: int,
    weights: LossWeights,
) -> dict[str, float]:
    """Accumulate the gradient of one batch; returns the unweighted terms."""
    losses = bank_losses(batch, bank, n_active)
    towards = prototype_to_token_loss(nearest, unit_vectors(bank), torch.arange(len(bank)))
    total = weights.reconstruction * losses.reconstruction
    total = total + weights.token_to_prototype * losses.token_to_prototype
    (total + weights.prototype_to_token * towards).backward()
    return {
        "reconstruction": losses.reconstruction.item(),
        "prototype_to_token": towards.item(),
        "token_to_prototype": losses.token_to_prototype.item(),
    }


@torch.no_grad()
def nearest_states(
    states: Float[Tensor, "tokens d_model"],
    prototypes: Float[Tensor, "prototypes d_model"],
    chunk: int = DEFAULT_CHUNK,
) -> Int[Tensor, " prototypes"]:
    """The state nearest to each prototype by cosine, from one chunked pass over all states."""
    units = unit_vectors(prototypes)
    best = units.new_full((len(units),), -math.inf)
    nearest = torch.zeros(len(units), dtype=torch.int64)
    for start in range(0, len(states), chunk):
        rows = unit_vectors(full_precision(states[start : start + chunk]))
        value, row = column_maximum(cosine_matrix(rows, units))
        nearest = torch.where(value > best, row + start, nearest)
        best = torch.maximum(value, best)
    return nearest


def _batches(n: int, size: int, generator: torch.Generator) -> Iterator[Int[Tensor, " batch"]]:
    """Endless batches of distinct states, each epoch in a new order, sorted for a mapped file."""
    size = min(size, n)
    while True:
        order = torch.randperm(n, generator=generator)
        for start in range(0, n - size + 1, size):
            yield order[start : start + size].sort().values


def _cosine(share: float) -> float:
    """Cosine decay from 1 to 0.05 over the fit."""
    return 0.05 + 0.95 * (1 + math.cos(math.pi * share)) / 2
