"""What attribution needs of a predicted token: active prototypes, output error, unit state, loss.

With z the state after the final norm, y the token that follows and f the decoder's constant logit
factor, the output error is

    e = dL/dz = f W^T (softmax(f (W z + b)) - onehot(y)),    L = -log p(y), nats

[vocab] values exist only for a chunk of tokens at a time. Derived from the equations of "Prototype
Language Models" (arXiv 2607.00510), sections on the architecture and on attribution.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Protocol, cast, runtime_checkable

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from engine.errors import ConfigError
from engine.numerics import full_precision, unit_vectors
from engine.prism.model import PrismForCausalLM


CHUNK_LOGITS = 2**22
"""Logits that exist at once."""
BATCH_TOKENS = 4096
"""Tokens of a forward pass, padding included, unless one row alone is longer."""


@runtime_checkable
class SequenceRows(Protocol):
    """Rows of tokens, and which of their predictions count."""

    @property
    def tokens(self) -> Int[np.ndarray, "n length"]:
        """Token ids, padded on the right with any id."""
        ...

    @property
    def predicted(self) -> Bool[np.ndarray, "n length-1"]:
        """Whether the prediction of tokens[:, 1:] counts."""
        ...


@dataclass(frozen=True)
class TokenStatistics:
    """Statistics of predicted tokens, in order of row and position, float32 unless asked wider."""

    row: Int[Tensor, " tokens"]
    """Row each token belongs to."""
    position: Int[Tensor, " tokens"]
    """Place in its row of the state that makes the prediction; the token predicted is the next."""
    activations: Float[Tensor, "tokens k"]
    """ReLU(cosine) of the active prototypes, falling."""
    indices: Int[Tensor, "tokens k"]
    """Which prototypes they are."""
    errors: Float[Tensor, "tokens d_model"]
    """e, nats per unit of state."""
    unit_states: Float[Tensor, "tokens d_model"]
    """z / |z|."""
    square_norm: Float[Tensor, " tokens"]
    """|z|^2."""
    loss: Float[Tensor, " tokens"]
    """-log p of the token predicted, nats."""

    def __len__(self) -> int:
        return len(self.loss)

    @classmethod
    def concatenate(cls, parts: "list[TokenStatistics]") -> "TokenStatistics":
        """The tokens of several, end to end."""
        names = [field.name for field in fields(cls)]
        return cls(**{name: torch.cat([getattr(part, name) for part in parts]) for name in names})

    def ordered(self) -> "TokenStatistics":
        """The same tokens by row and position."""
        order = torch.argsort(self.row * (int(self.position.max()) + 1) + self.position)
        return TokenStatistics(**{f.name: getattr(self, f.name)[order] for f in fields(self)})


@torch.no_grad()
def output_errors(
    states: Float[Tensor, "tokens d_model"],
    targets: Int[Tensor, " tokens"],
    head: nn.Linear,
    factor: float = 1.0,
) -> tuple[Float[Tensor, "tokens d_model"], Float[Tensor, " tokens"]]:
    """Errors e = dL/dz and losses L = -log p(target) in float32 (float64 for float64 states).

    Args:
        states: z, the input of the head.
        targets: tokens that follow.
        head: the LM head.
        factor: constant the decoder multiplies its logits by.
    """
    states = full_precision(states)
    weight = head.weight.detach().to(states.dtype)
    bias = None if head.bias is None else head.bias.detach().to(states.dtype)
    chunk = max(1, CHUNK_LOGITS // len(weight))
    errors, losses = torch.empty_like(states), states.new_empty(len(states))
    for start in range(0, len(states), chunk):
        rows = slice(start, start + chunk)
        logits = nn.functional.linear(states[rows], weight, bias)
        target = targets[rows, None]
        likelihood = (logits if factor == 1.0 else logits.mul_(factor)).log_softmax(-1)
        losses[rows] = -likelihood.gather(1, target)[:, 0]
        excess = likelihood.exp_()
        excess.scatter_add_(1, target, excess.new_full(target.shape, -1.0))
        errors[rows] = excess @ weight
    return errors if factor == 1.0 else errors.mul_(factor), losses


@torch.no_grad()
def state_statistics(
    model: PrismForCausalLM,
    states: Float[Tensor, "tokens d_model"],
    targets: Int[Tensor, " tokens"],
    row: Int[Tensor, " tokens"],
    position: Int[Tensor, " tokens"],
) -> TokenStatistics:
    """Statistics of states whose following tokens are known."""
    states = full_precision(states)
    head = cast(nn.Linear, model.get_output_embeddings())
    errors, loss = output_errors(states, targets, head, model.logit_factor)
    activations, indices = model.explain(states)
    return TokenStatistics(
        row=row,
        position=position,
        activations=activations,
        indices=indices,
        errors=errors,
        unit_states=unit_vectors(states),
        square_norm=states.square().sum(-1),
        loss=loss,
    )


def row_statistics(model: PrismForCausalLM, rows: SequenceRows) -> TokenStatistics:
    """Statistics of every predicted token of some rows, on the model's device.

    Raises:
        ConfigError: no token of the rows is predicted.
    """
    parts = list(_batches(model, rows.tokens, rows.predicted))
    if not parts:
        raise ConfigError("No token of these sequences is predicted; choose longer ones.")
    return TokenStatistics.concatenate(parts).ordered()


@torch.no_grad()
def _batches(
    model: PrismForCausalLM,
    tokens: Int[np.ndarray, "n length"],
    predicted: Bool[np.ndarray, "n length-1"],
) -> Iterator[TokenStatistics]:
    """Rows of like length together; what stands behind the last predicted token is not read."""
    extent = np.where(predicted, np.arange(1, predicted.shape[1] + 1), 0).max(1, initial=0)
    order = np.argsort(-extent, kind="stable")
    order = order[extent[order] > 0]
    while len(order):
        longest = int(extent[order[0]])
        size = max(1, BATCH_TOKENS // longest)
        chosen, order = order[:size], order[size:]
        inputs = torch.from_numpy(tokens[chosen, : longest + 1].astype(np.int64)).to(model.device)
        kept = torch.from_numpy(predicted[chosen, :longest]).to(model.device)
        states = model.backbone.base_model(
            input_ids=inputs[:, :-1], use_cache=False
        ).last_hidden_state[kept]
        line, position = torch.nonzero(kept, as_tuple=True)
        row = torch.from_numpy(chosen.astype(np.int64)).to(model.device)[line]
        yield state_statistics(model, states, inputs[:, 1:][kept], row, position)
