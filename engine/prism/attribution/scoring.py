"""Score a pool of sequences against queries with one model, all in memory."""

import numpy as np
import torch
from jaxtyping import Float

from engine.config import LossWeights
from engine.corpus.documents import Progress, no_progress
from engine.prism.attribution.gradient import BankGradient, Variant, query_gradients
from engine.prism.attribution.pool import TokenArrays, TokenPool, lengths_to_offsets
from engine.prism.attribution.preconditioner import DAMPING, LocalTerms, Preconditioner
from engine.prism.attribution.quantise import Bits, activation_step
from engine.prism.attribution.search import gradient_norms, score_pool
from engine.prism.attribution.statistics import SequenceRows, TokenStatistics, row_statistics
from engine.prism.model import PrismForCausalLM


ROWS = 128
"""Sequences whose statistics exist in float32 at once."""


class _Rows:
    """Some rows of a `SequenceRows`."""

    def __init__(self, rows: SequenceRows, chosen: slice) -> None:
        self.tokens = rows.tokens[chosen]
        self.predicted = rows.predicted[chosen]


def make_pool(
    model: PrismForCausalLM,
    rows: SequenceRows,
    *,
    bits: Bits = 8,
    progress: Progress = no_progress,
) -> tuple[TokenPool, float]:
    """Statistics of sequences, stored in memory, and the mean of 1/|z|^2 over their tokens.

    A sequence without a predicted token has none in the pool, and scores 0.
    """
    parts: list[TokenArrays] = []
    lengths = np.asarray(rows.predicted).sum(1)
    inverse = 0.0
    starts = range(0, len(lengths), ROWS)
    for start in progress(starts, label="Pool", total=len(starts)):
        own = slice(start, start + ROWS)
        if lengths[own].any():
            found = row_statistics(model, _Rows(rows, own))
            inverse += float((1 / found.square_norm.double()).sum())
            parts.append(TokenArrays.of(found, model.prototypes.detach(), bits))
    offsets = lengths_to_offsets(lengths)
    pool = TokenPool(TokenArrays.concatenate(parts), offsets, model.prototypes)
    return pool, inverse / max(1, pool.n_tokens)


def pool_preconditioner(
    pool: TokenPool,
    model: PrismForCausalLM,
    inverse_square_norm: float,
    *,
    damping: float = DAMPING,
    weights: LossWeights | None = None,
) -> Preconditioner:
    """M of a model's bank over a pool, with the weights its bank was trained under."""
    step = activation_step(pool.arrays.activations)
    local = LocalTerms.none(pool.n_prototypes)
    for tokens in pool.chunks():
        local = local.add(pool.arrays.prototypes[tokens], pool.arrays.activations[tokens] * step)
    return Preconditioner.of(
        pool.co_usage(),
        local,
        bank_norms=model.prototypes.detach().double().norm(dim=1).cpu().numpy(),
        d_model=pool.d_model,
        weights=weights or model.config.loss_weights,
        inverse_square_norm=inverse_square_norm,
        damping=damping,
    )


def gradients_of(
    model: PrismForCausalLM, queries: SequenceRows, variant: Variant
) -> list[BankGradient]:
    """Gradient of each query's summed loss, without conditioning."""
    found: TokenStatistics = row_statistics(model, queries)
    return query_gradients(found, model.prototypes.detach(), variant.statistic, len(queries.tokens))


def score_sequences(
    model: PrismForCausalLM,
    pool: SequenceRows,
    queries: SequenceRows,
    variant: str,
    *,
    bits: Bits = 8,
    damping: float = DAMPING,
    progress: Progress = no_progress,
) -> Float[np.ndarray, "queries pool"]:
    """Scores of pool sequences for queries, float32; positive lowers the loss of the query.

    The pool's statistics stay in memory: about 2 d_model + 4 k bytes a token at 8 bits, four times
    as much at 32.

    Args:
        model: with a bank.
        pool: training sequences.
        queries: each at least one predicted token long.
        variant: name of a `Variant`.
        bits: as which the pool's statistics are stored; 32 leaves them as they are.
        damping: of the preconditioner.
        progress: wraps the pass over the pool.

    Raises:
        ConfigError: there is no such variant, or a query without a predicted token.
    """
    chosen = Variant.parse(variant)
    gradients = gradients_of(model, queries, chosen)
    stored, inverse = make_pool(model, pool, bits=bits, progress=progress)
    if chosen.conditioning != "none":
        conditioner = pool_preconditioner(stored, model, inverse, damping=damping)
        gradients = [conditioner.apply(gradient, chosen.conditioning) for gradient in gradients]
    scores = score_pool(stored, gradients, device=torch.device(model.device))
    if chosen.unit:
        scores = by_norm(scores, gradient_norms(stored, chosen.statistic))
    return scores.astype(np.float32)


def by_norm(
    scores: Float[np.ndarray, "queries sequences"], norms: Float[np.ndarray, " sequences"]
) -> Float[np.ndarray, "queries sequences"]:
    """Scores over the norms of the sequences' own gradients; 0 where there is no gradient."""
    return np.divide(scores, norms, out=np.zeros_like(scores), where=norms > 0)
