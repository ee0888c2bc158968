"""Drawing the next token so that two generations share every random number."""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from engine.live.results import Sampler


_SEEDS = 2**64
_HEAD = 512
"""Likeliest tokens that are sorted first; most nuclei are smaller."""


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
        dropped = _outside_nucleus(scores, sampler.top_p, min(vocab, _HEAD))
        scores = scores.masked_fill(dropped, -torch.inf)
    return scores


def _outside_nucleus(
    scores: Float[Tensor, "batch vocab"], top_p: float, n_sorted: int
) -> Bool[Tensor, "batch vocab"]:
    """Tokens that the mass `top_p` does without.

    Only the `n_sorted` likeliest are put in order; a row whose nucleus is larger is done anew.
    """
    ordered, order = scores.topk(n_sorted, dim=-1)
    mass = (ordered - scores.logsumexp(-1, keepdim=True)).exp()
    reached = mass.cumsum(-1)
    dropped = torch.ones_like(scores, dtype=torch.bool)
    dropped.scatter_(-1, order, reached - mass >= top_p)
    if n_sorted < scores.shape[-1]:
        wide = reached[:, -1] < top_p
        if bool(wide.any()):
            dropped[wide] = _outside_nucleus(scores[wide], top_p, scores.shape[-1])
    return dropped
