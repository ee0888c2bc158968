"""Pass 1: run the model over the plan's windows and keep k activations a token."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from engine.corpus.shards import TokenShards
from engine.numerics import full_precision
from engine.pipeline.index_windows import WindowPlan
from engine.prism.activation import prototype_activations, reconstruct
from engine.prism.losses import residual_share
from engine.prism.model import PrismForCausalLM


HEAD_ROWS = 1024
"""Tokens whose logits exist at once."""


@dataclass(frozen=True)
class ShardWindows:
    """The windows of one shard, with their tokens end to end."""

    document: Int[np.ndarray, " windows"]
    start: Int[np.ndarray, " windows"]
    length: Int[np.ndarray, " windows"]
    tokens: Int[np.ndarray, " n"]
    """Tokens of the windows."""
    following: Int[np.ndarray, " windows"]
    """Token that follows each window in its document; -1 at the document's end."""

    @property
    def first(self) -> Int[np.ndarray, " windows"]:
        """Row of each window's first token."""
        return np.cumsum(self.length) - self.length

    @property
    def window_of(self) -> Int[np.ndarray, " n"]:
        """Window of each token."""
        return np.repeat(np.arange(len(self.length)), self.length)

    @property
    def positions(self) -> Int[np.ndarray, " n"]:
        """Position of each token in its document."""
        rows = np.arange(len(self.tokens))
        return rows - np.repeat(self.first, self.length) + np.repeat(self.start, self.length)


@dataclass(frozen=True)
class Scanned:
    """What the model says of the tokens of one shard."""

    activations: Float[np.ndarray, "n k"]
    """float16, falling along k; 0 where fewer than k prototypes are active."""
    prototypes: Int[np.ndarray, "n k"]
    residual_share: Float[np.ndarray, " n"]
    loss: Float[np.ndarray, " n"]
    """Cross-entropy of the next token, nats; NaN at the end of a document."""
    predicted: Int[np.ndarray, " n"]
    """Most probable next token."""


def shard_windows(plan: WindowPlan, shards: TokenShards, windows: slice) -> ShardWindows:
    """Read the tokens of some windows of the plan."""
    document, start, length = plan.document[windows], plan.start[windows], plan.length[windows]
    pieces, following = [], []
    for number, first, size in zip(document, start, length, strict=True):
        tokens = shards.document_tokens(int(plan.corpus_document[number]))
        end = int(first + size)
        pieces.append(np.asarray(tokens[int(first) : end]))
        following.append(int(tokens[end]) if end < len(tokens) else -1)
    return ShardWindows(
        document,
        start,
        length,
        np.concatenate(pieces).astype(np.int64),
        np.array(following, np.int64),
    )


def scan_shard(
    model: PrismForCausalLM, windows: ShardWindows, *, separator: int, batch_size: int
) -> Scanned:
    """Run the model over the windows, each with the separator in front as in training.

    Windows of similar length share a batch; padding stands on the right, where a causal model
    does not see it, and is dropped.
    """
    n, k = len(windows.tokens), model.config.n_active
    found = Scanned(
        np.zeros((n, k), np.float16),
        np.zeros((n, k), np.int32),
        np.zeros(n, np.float16),
        np.full(n, np.nan, np.float32),
        np.zeros(n, np.int32),
    )
    for rows, inputs, targets, kept in _batches(windows, separator, batch_size):
        _scan_batch(model, inputs, targets, kept, rows, found)
    return found


def _batches(
    windows: ShardWindows, separator: int, batch_size: int
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
    """Rows of the shard, padded inputs, targets of the kept positions and where they are."""
    order = np.argsort(-windows.length, kind="stable")
    first = windows.first
    for begin in range(0, len(order), batch_size):
        chosen = order[begin : begin + batch_size]
        longest = int(windows.length[chosen].max())
        inputs = np.full((len(chosen), longest + 1), separator, np.int64)
        kept = np.zeros((len(chosen), longest + 1), bool)
        rows, targets = [], []
        for line, window in enumerate(chosen):
            size = int(windows.length[window])
            own = slice(int(first[window]), int(first[window]) + size)
            inputs[line, 1 : size + 1] = windows.tokens[own]
            kept[line, 1 : size + 1] = True
            rows.append(np.arange(own.start, own.stop))
            targets.append(np.append(windows.tokens[own][1:], windows.following[window]))
        yield np.concatenate(rows), inputs, np.concatenate(targets), kept


@torch.inference_mode()
def _scan_batch(
    model: PrismForCausalLM,
    inputs: np.ndarray,
    targets: np.ndarray,
    kept: np.ndarray,
    rows: np.ndarray,
    found: Scanned,
) -> None:
    """Write one batch's results into its rows."""
    device = model.device
    states = model.backbone.base_model(
        input_ids=torch.from_numpy(inputs).to(device), use_cache=False
    ).last_hidden_state[torch.from_numpy(kept).to(device)]
    config = model.config
    activations, prototypes = prototype_activations(
        states, model.prototypes, config.n_active, config.cosine_chunk
    )
    share = residual_share(states, reconstruct(activations, prototypes, model.prototypes))
    loss, predicted = next_token(model, states, torch.from_numpy(targets).to(device))
    found.activations[rows] = activations.to(torch.float16).cpu().numpy()
    found.prototypes[rows] = prototypes.to(torch.int32).cpu().numpy()
    found.residual_share[rows] = share.to(torch.float16).cpu().numpy()
    found.loss[rows] = loss.cpu().numpy()
    found.predicted[rows] = predicted.to(torch.int32).cpu().numpy()


def next_token(
    model: PrismForCausalLM, states: Float[Tensor, "n d_model"], targets: Int[Tensor, " n"]
) -> tuple[Float[Tensor, " n"], Int[Tensor, " n"]]:
    """Cross-entropy of the targets (NaN where -1) and the most probable token."""
    losses, tokens = [], []
    for begin in range(0, len(states), HEAD_ROWS):
        logits = full_precision(model.lm_head(states[begin : begin + HEAD_ROWS]))
        target = targets[begin : begin + HEAD_ROWS]
        known = target >= 0
        loss = functional.cross_entropy(logits, target.clamp(min=0), reduction="none")
        losses.append(torch.where(known, loss, torch.nan))
        tokens.append(logits.argmax(dim=-1))
    return torch.cat(losses), torch.cat(tokens)
