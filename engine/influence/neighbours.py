"""Likeness of states: the cosine of hidden states after the final norm."""

from typing import Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from engine.corpus.documents import Progress, no_progress
from engine.influence.decoder import last_states, tensors
from engine.influence.frame import Sequences
from engine.numerics import unit_vectors
from engine.prism.model import PrismForCausalLM


States = Literal["mean", "last"]


def score_neighbours(
    model: PrismForCausalLM,
    pool: Sequences,
    queries: Sequences,
    progress: Progress = no_progress,
    *,
    states: States = "mean",
    batch_size: int = 32,
) -> Float[np.ndarray, "queries pool"]:
    """Cosine of the states of two texts, in [-1, 1]; larger means more alike.

    Args:
        model: Gives the states.
        pool: Texts to score.
        queries: Texts they are compared with.
        progress: Wraps the batches of the pool.
        states: `mean` takes the mean state of a text's tokens, the separator left out; `last` the
            state from which its last predicted token is predicted.
        batch_size: Sequences a forward pass.
    """
    asked = unit_vectors(text_states(model, queries, states=states, batch_size=batch_size))
    held = unit_vectors(text_states(model, pool, progress, states=states, batch_size=batch_size))
    return (asked @ held.T).float().cpu().numpy()


def text_states(
    model: PrismForCausalLM,
    sequences: Sequences,
    progress: Progress = no_progress,
    *,
    states: States,
    batch_size: int,
) -> Float[Tensor, "n d_model"]:
    """One state a sequence, the mean or the last."""
    batches = list(sequences.batches(batch_size))
    found = []
    for rows in progress(batches, label="States", total=len(batches)):
        part = sequences[rows]
        tokens, predicted = tensors(part, model.device)
        values = last_states(model, tokens)
        if states == "last":
            place = torch.arange(predicted.shape[1], device=tokens.device)
            last = torch.where(predicted, place, -1).amax(dim=1)
            found.append(values[torch.arange(len(last), device=tokens.device), last])
            continue
        length = torch.from_numpy(np.asarray(part.length, np.int64)).to(tokens.device)
        place = torch.arange(tokens.shape[1], device=tokens.device)
        text = ((place > 0) & (place < length[:, None])).to(values.dtype)[..., None]
        found.append((values * text).sum(1) / text.sum(1))
    return torch.cat(found)
