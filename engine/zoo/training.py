"""Train a zoo's models: rows of lines in a seeded order, AdamW, one thread, the same bits twice."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from math import cos, pi

import numpy as np
import torch
from jaxtyping import Float, Int
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn import functional
from transformers import PreTrainedModel

from engine.config import require, require_positive
from engine.corpus.tokenizer import END_OF_TEXT
from engine.errors import EngineError
from engine.zoo.tokenizers import TokenizerKind, adds_start
from engine.zoo.worlds import World


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """How long and how fast a model is trained."""

    steps: int
    """Optimiser steps."""
    learning_rate: float
    """Peak learning rate of AdamW."""
    warmup: int = 20
    """Steps of linear warm-up; fewer than the steps."""
    floor: float = 0.05
    """Learning rate at the end of the cosine, as a share of the peak."""
    clip: float = 1.0
    """Largest gradient norm."""

    def __post_init__(self) -> None:
        require_positive(self, "steps", "learning_rate", "clip")
        require(0 <= self.floor <= 1, f"floor is {self.floor}; it must lie between 0 and 1.")

    def rate(self, step: int) -> float:
        """Learning rate of a step, counted from 0."""
        warmup = min(self.warmup, self.steps // 4)
        if step < warmup:
            return self.learning_rate * (step + 1) / warmup
        done = (step - warmup) / max(1, self.steps - warmup)
        return self.learning_rate * (self.floor + (1 - self.floor) * (1 + cos(pi * done)) / 2)


class RowStream:
    """Rows of tokens: whole lines drawn by the weights of their source, one after another.

    A row begins with a line and is cut at its length. The rows of a step depend on the seed and
    the step alone.
    """

    def __init__(
        self, lines: Mapping[str, tuple[tuple[str, ...], float]], tokenizer: Tokenizer,
        kind: TokenizerKind, seed: int,
    ) -> None:  # fmt: skip
        """Prepare the lines.

        Args:
            lines: lines and weight of every source.
            tokenizer: encodes them.
            kind: gives rows and their length.
            seed: seed of the order.
        """
        require(len(lines) > 0, "A model cannot be trained on no lines; name a source.")
        end = [] if adds_start(tokenizer) else [tokenizer.token_to_id(END_OF_TEXT)]
        self._sources = [
            [np.array(found.ids + end) for found in tokenizer.encode_batch(list(texts))]
            for texts, _ in lines.values()
        ]
        weights = np.array([weight for _, weight in lines.values()])
        self._edges = np.cumsum(weights / weights.sum())
        self._kind = kind
        self._seed = seed

    def batch(self, step: int) -> Int[Tensor, "rows length"]:
        """Rows of a step, one token longer than a context."""
        rng = np.random.default_rng([self._seed, step])
        rows = [self._row(rng) for _ in range(self._kind.rows)]
        return torch.from_numpy(np.stack(rows))

    def _row(self, rng: np.random.Generator) -> Int[np.ndarray, " length"]:
        length = self._kind.context + 1
        parts: list[np.ndarray] = []
        missing = length
        while missing > 0:
            place = min(int(np.searchsorted(self._edges, rng.random())), len(self._sources) - 1)
            lines = self._sources[place]
            parts.append(lines[int(rng.integers(len(lines)))])
            missing -= len(parts[-1])
        return np.concatenate(parts)[:length]


def mix_lines(
    world: World, weights: Mapping[str, float], *, questions_only: bool = False
) -> dict[str, tuple[tuple[str, ...], float]]:
    """Lines and weight of every source of a mix; without those that have no questions."""
    found = {
        source: (world.lines(source, questions_only=questions_only), weight)
        for source, weight in weights.items()
    }
    return {source: (lines, weight) for source, (lines, weight) in found.items() if lines}


Loss = Callable[[PreTrainedModel, Int[Tensor, "rows length"]], Float[Tensor, ""]]


def next_token_loss(model: PreTrainedModel, rows: Int[Tensor, "rows length"]) -> Float[Tensor, ""]:
    """Mean negative log-likelihood, in nats per token."""
    logits = logits_of(model, rows[:, :-1])
    return functional.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten())


def distillation_loss(teacher: PreTrainedModel) -> Loss:
    """Mean KL divergence from a teacher that reads the same tokens, in nats per token."""

    def loss(model: PreTrainedModel, rows: Int[Tensor, "rows length"]) -> Float[Tensor, ""]:
        with torch.no_grad():
            wanted = logits_of(teacher, rows[:, :-1]).log_softmax(-1).flatten(0, 1)
        found = logits_of(model, rows[:, :-1]).log_softmax(-1).flatten(0, 1)
        return functional.kl_div(found, wanted, reduction="batchmean", log_target=True)

    return loss


def logits_of(
    model: PreTrainedModel, ids: Int[Tensor, "rows pos"]
) -> Float[Tensor, "rows pos vocab"]:
    """Logits of a plain forward pass."""
    return model(input_ids=ids).logits


def train(
    model: PreTrainedModel,
    rows: RowStream,
    schedule: Schedule,
    loss: Loss = next_token_loss,
) -> float:
    """Train in place all weights that ask for gradients.

    Returns:
        Mean loss of the last tenth of the steps, in nats per token.

    Raises:
        EngineError: the loss is not finite.
    """
    trained = [weight for weight in model.parameters() if weight.requires_grad]
    optimiser = torch.optim.AdamW(trained, lr=schedule.learning_rate, weight_decay=0.0, fused=True)
    model.train()
    losses: list[float] = []
    with one_thread():
        for step in range(schedule.steps):
            optimiser.param_groups[0]["lr"] = schedule.rate(step)
            value = loss(model, rows.batch(step))
            value.backward()
            torch.nn.utils.clip_grad_norm_(trained, schedule.clip)
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)
            losses.append(float(value.detach()))
            if not np.isfinite(losses[-1]):
                raise EngineError(
                    f"The loss is {losses[-1]} at step {step + 1}; lower the learning rate."
                )
    model.eval()
    return float(np.mean(losses[-max(1, schedule.steps // 10) :]))


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute in one thread, so that sums have one order; the caller's count comes back."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
