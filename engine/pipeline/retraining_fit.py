"""One training of the study: fixed rows, fixed order, nothing beside the steps themselves.

A retraining writes no checkpoint and evaluates nothing on the way. Of two trainings with the same
seed, on different subsets, each starts from the same weights and meets the sequences they share
in the same relative order, so that their losses differ by their subsets as far as possible.
"""

import time
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional

from engine.config import TrainConfig
from engine.errors import EngineError
from engine.influence.frame import Sequences
from engine.pipeline.retraining_settings import RetrainConfig
from engine.prism.evaluation import states_and_logits
from engine.prism.kmeans import bank_from_states
from engine.prism.model import PrismForCausalLM
from engine.prism.optimiser import (
    build_optimiser,
    learning_rate_scale,
    loss_weight_scale,
    set_learning_rate,
)
from engine.prism.training import (
    BANK_FIT_TOKENS_PER_PROTOTYPE,
    build_model,
    scaled_weights,
    training_loss,
)


_QUERY_BATCH = 32


def training_order(
    members: Bool[np.ndarray, " pool"], epochs: int, seed: int
) -> Int[np.ndarray, " rows"]:
    """Rows of the pool in the order of a training: each member once an epoch.

    An epoch is a permutation of the whole pool, drawn by seed and epoch alone, without the rows
    that are not members.
    """
    orders = [np.random.default_rng((seed, e)).permutation(len(members)) for e in range(epochs)]
    return np.concatenate([order[members[order]] for order in orders])


def fit(
    tokens: Int[np.ndarray, "pool length"],
    members: Bool[np.ndarray, " pool"],
    config: RetrainConfig,
    seed: int,
    *,
    separator: int = 0,
    log: list[dict[str, Any]] | None = None,
) -> PrismForCausalLM:
    """Train a model on the members of a pool.

    Args:
        tokens: The pool; every token but the first of a row is predicted.
        members: Which rows are trained on.
        config: Settings.
        seed: Seed of the initialisation and the order.
        separator: Token id that ends a document.
        log: Receives rows of the `training_log` table; None spares the time.

    Returns:
        The model after the last step, ready to read.

    Raises:
        EngineError: The loss is no longer finite.
    """
    order = torch.from_numpy(training_order(members, config.epochs, seed))
    settings = config.training(config.steps_of(int(members.sum())), seed)
    rows = torch.from_numpy(tokens.astype(np.int64))
    batches = order[: settings.steps * settings.batch_size].view(settings.steps, -1)
    model = build_model(settings, separator)
    assert isinstance(model, PrismForCausalLM)
    optimiser = build_optimiser(model, settings)
    model.train()
    loss = torch.zeros(())
    for step in range(settings.steps):
        started = time.perf_counter()
        if step == settings.bank_start:
            _start_bank(model, rows, batches[step:], config, seed)
        set_learning_rate(optimiser, learning_rate_scale(step, settings))
        weights = scaled_weights(settings.weights, loss_weight_scale(step, settings))
        loss, terms = training_loss(model, rows[batches[step]], weights)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), settings.clip)
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        if log is not None:
            log.append(_log_row(step, settings, terms, float(norm), time.perf_counter() - started))
    if not torch.isfinite(loss):
        raise EngineError(
            f"The loss of a retraining with seed {seed} is {float(loss.detach())}; lower the "
            "learning rate of the study."
        )
    return model.eval()


def _log_row(
    step: int, settings: TrainConfig, terms: dict[str, Tensor], norm: float, seconds: float
) -> dict[str, Any]:
    """A row of the `training_log` table."""
    bank = ("reconstruction", "prototype_to_token", "token_to_prototype")
    return {
        "step": step + 1,
        "cross_entropy": float(terms["cross_entropy"]),
        **{name: float(terms[name]) if name in terms else None for name in bank},
        "weight_scale": loss_weight_scale(step, settings),
        "learning_rate": settings.learning_rate * learning_rate_scale(step, settings),
        "gradient_norm": norm,
        "tokens_seen": (step + 1) * settings.batch_size * (settings.context - 1),
        "seconds": seconds,
    }


@torch.no_grad()
def _start_bank(
    model: PrismForCausalLM, rows: Tensor, batches: Tensor, config: RetrainConfig, seed: int
) -> None:
    """Fit the bank by k-means to the states of the sequences that come next."""
    wanted = config.n_prototypes * BANK_FIT_TOKENS_PER_PROTOTYPE
    states: list[Tensor] = []
    model.eval()
    for batch in batches:
        states.append(states_and_logits(model, rows[batch, :-1])[0].flatten(0, 1))
        if sum(map(len, states)) >= wanted:
            break
    model.train()
    bank = bank_from_states(
        torch.cat(states)[:wanted], config.n_prototypes, config.n_active, seed=seed
    )
    model.prototypes.copy_(bank)


@torch.no_grad()
def sequence_losses(
    model: PrismForCausalLM, sequences: Sequences
) -> Float[np.ndarray, " sequences"]:
    """Loss of each sequence: the SUM of -log p over its predicted tokens, in nats."""
    losses = []
    for start in range(0, len(sequences.tokens), _QUERY_BATCH):
        rows = slice(start, start + _QUERY_BATCH)
        ids = torch.from_numpy(sequences.tokens[rows].astype(np.int64))
        logits = states_and_logits(model, ids[:, :-1])[1]
        each = functional.cross_entropy(logits.mT, ids[:, 1:], reduction="none")
        predicted = torch.from_numpy(sequences.predicted[rows])
        losses.append((each * predicted).sum(1, dtype=torch.float64).numpy())
    return np.concatenate(losses)
