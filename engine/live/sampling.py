"""Drawing the next token so that two generations share every random number."""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from engine.live.results import Sampler


_SEEDS = 2**64


def uniform_numbers(seed: int, step: int, n: int) -> Float[np.ndarray, " n"]:
    """Numbers in (0, 1) that depend on (seed, step) alone."""
    key = np.array([seed % _SEEDS, step], dtype=np.uint64)
    numbers = np.random.Generator(np.random.Philox(key=key)).random(n)
    return np.maximum(numbers, np.finfo(np.float64).tiny)


def draw(
    logits: Float[Tensor, "batch vocab"], seeds: Sequence[int], step: int, sampler: Sampler
) -> Int[Tensor, " batch"]:
    """Draw one token a row: argmax of log-probability plus Gumbel noise of (seed, step).

    Equal distributions under equal seeds give equal tokens, and close ones mostly do: each token
    keeps its own noise, whatever happens to the others.
    """
    if sampler.temperature == 0:
        return logits.argmax(-1)
    scores = restrict(logits.double() / sampler.temperature, sampler)
    noise = np.stack([uniform_numbers(seed, step, logits.shape[-1]) for seed in seeds])
    gumbel = -torch.log(-torch.log(torch.from_numpy(noise)))
    return (scores + gumbel.to(scores.device)).argmax(-1)


def restrict(
    scores: Float[Tensor, "batch vocab"], sampler: Sampler
) -> Float[Tensor, "batch vocab"]:
    """Scores with -inf outside the `top_k` likeliest tokens and the nucleus of mass `top_p`.

    The nucleus is the smallest set of likeliest tokens whose mass reaches `top_p`.
    """
    vocab = scores.shape[-1]
    if 0 < sampler.top_k < vocab:
        lowest = scores.topk(sampler.top_k, dim=-1).values[..., -1:]
        scores = scores.masked_fill(scores < lowest, -torch.inf)
    if sampler.top_p < 1:
        ordered, order = scores.sort(dim=-1, descending=True)
        mass = ordered.softmax(-1)
        before = mass.cumsum(-1) - mass
        dropped = torch.zeros_like(before, dtype=torch.bool)
        dropped.scatter_(-1, order, before >= sampler.top_p)
        scores = scores.masked_fill(dropped, -torch.inf)
    return scores
