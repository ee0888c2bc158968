"""What a suppression does to benign text: divergence, perplexity, tokens touched."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from engine.errors import PromptError
from engine.live.decomposition import divergence
from engine.live.model import LiveModel, Pass
from engine.live.reader import Reader
from engine.live.results import SideEffects


_ROWS = 256
"""Positions whose full logits exist at once."""


@dataclass(frozen=True)
class Reading:
    """A text as the model reads it unchanged: the part that no suppression alters."""

    found: Pass
    """States of the positions that have a next token."""
    targets: Int[Tensor, " pos"]
    """Those next tokens."""
    losses: Float[Tensor, " pos"]
    """-log p(next token), nats."""


def read_text(model: LiveModel, ids: Sequence[int]) -> Reading:
    """Read the tokens of one text; at least two."""
    tokens = torch.tensor([list(ids)], device=model.device)
    found = model.run(tokens[:, :-1])
    targets = tokens[0, 1:]
    return Reading(found, targets, token_losses(model, found.states[0], targets))


def read_texts(reader: Reader, texts: Sequence[str], max_tokens: int) -> list[Reading]:
    """Read the beginnings of some texts, `max_tokens` in all; the caller holds the lock.

    Raises:
        PromptError: no text has two tokens.
    """
    each = min(reader.model.context, max(2, max_tokens // max(1, len(texts))))
    # A token rarely holds more characters than this; the rest of a long text is not encoded.
    ids = [reader.ids(text[: 32 * each], "benign text")[:each] for text in texts]
    readings = [read_text(reader.model, part) for part in ids if len(part) > 1]
    if not readings:
        raise PromptError("The benign texts hold no two tokens to predict; pass longer texts.")
    return readings


def token_losses(
    model: LiveModel, states: Float[Tensor, "pos d_model"], targets: Int[Tensor, " pos"]
) -> Float[Tensor, " pos"]:
    """-log p(target) after each state, nats, in float64."""
    parts = []
    for start in range(0, len(states), _ROWS):
        rows = slice(start, start + _ROWS)
        logs = log_probabilities(model, states[rows])
        parts.append(-logs.gather(-1, targets[rows, None])[:, 0])
    return torch.cat(parts)


def log_probabilities(
    model: LiveModel, states: Float[Tensor, "pos d_model"]
) -> Float[Tensor, "pos vocab"]:
    """Log-probability of every token after each state, nats, in float64."""
    return model.logits(states).double().log_softmax(-1)


def measure(
    model: LiveModel,
    readings: Sequence[Reading],
    mask: Bool[Tensor, " prototypes"] | None,
    strength: float,
) -> SideEffects:
    """Compare the predictions with and without suppression.

    Only positions where a suppressed prototype is active are computed anew; everywhere else the
    logits are the same bit for bit, so the divergence is 0 and the loss as it was.
    """
    total = sum(len(reading.targets) for reading in readings)
    before = sum(float(reading.losses.sum()) for reading in readings)
    after, kl, touched = before, 0.0, 0
    for reading in readings:
        rows = model.touched(reading.found, mask)[0].nonzero()[:, 0]
        touched += len(rows)
        for part in rows.split(_ROWS) if len(rows) else ():
            here = reading.found.at(part)
            old = log_probabilities(model, here.states[0])
            new = log_probabilities(model, model.suppressed(here, mask, strength)[0])
            kl += float(divergence(old, new).sum())
            changed = -new.gather(-1, reading.targets[part, None])[:, 0]
            after += float((changed - reading.losses[part]).sum())
    return SideEffects(
        kl=kl / total,
        perplexity_before=math.exp(before / total),
        perplexity_after=math.exp(min(after / total, 700.0)),
        tokens_touched_share=touched / total,
        n_tokens=total,
        n_texts=len(readings),
    )
