"""An attribution pool opened for search: memory-mapped arrays, ids of its sequences, statistics."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float

from engine.errors import CacheStale, ConfigError
from engine.prism.attribution.gradient import BankGradient, Variant
from engine.prism.attribution.pool import TokenArrays, TokenPool, lengths_to_offsets
from engine.prism.attribution.preconditioner import DAMPING, LocalTerms, Preconditioner
from engine.prism.attribution.scoring import by_norm
from engine.prism.attribution.search import (
    Inverted,
    Packed,
    invert,
    pair_scores,
    run_loop,
    score_pool,
)
from engine.prism.model import PrismForCausalLM
from engine.store import Run, open_array, read_table
from engine.store.pools import POOL, find_pool


INVERT_BELOW = 200_000
"""Tokens up to which the inverted index is not stored but made when a pool is opened."""
INVERTED: tuple[str, ...] = ("inverted_starts", "inverted_tokens")
"""Arrays of the inverted index, in the order of `Inverted`."""


@dataclass(frozen=True)
class Prepared:
    """A query ready to be searched for.

    gradient: of the query's summed loss, conditioned as the variant says.
    variant: how sequences are scored.
    """

    gradient: BankGradient
    variant: Variant


class AttributionIndex:
    """The attribution pool of a run.

    Attributes:
        run: folder that holds the pool.
        facts: what its stage recorded: bits, length, corpus, model, ...
        sequences: table `attribution_sequences`, in order.
        pool: the tokens.
        inverted: the inverted index; None for a large pool without one.
    """

    def __init__(self, run: Run, model: PrismForCausalLM) -> None:
        self.run = run
        self.facts: dict[str, Any] = run.manifest["stages"][POOL]
        self.sequences: pd.DataFrame = read_table(run, "attribution_sequences")
        self._weights = model.config.loss_weights
        self._norms = model.prototypes.detach().double().norm(dim=1).cpu().numpy()
        self._device = torch.device(model.device)
        arrays = TokenArrays(*(open_array(run, POOL, name) for name in TokenArrays._fields))
        offsets = lengths_to_offsets(self.sequences["n_tokens"])
        self._check(arrays, int(offsets[-1]), model)
        self.pool = TokenPool(arrays, offsets, model.prototypes)
        self.inverted = self._inverted()

    @classmethod
    def open(cls, run: Run, model: PrismForCausalLM) -> "AttributionIndex":
        """Open the pool of a run whose model is loaded.

        Raises:
            CacheMissing: The run has no pool.
            CacheStale: Its pool was made with another checkpoint, or is damaged.
        """
        return cls(find_pool(run), model)

    def _check(self, arrays: TokenArrays, n_tokens: int, model: PrismForCausalLM) -> None:
        """Refuse arrays whose shapes do not fit the table or the model."""
        bank = tuple(model.prototypes.shape)
        if (self.facts.get("n_prototypes"), self.facts.get("d_model")) != bank or any(
            len(column) != n_tokens for column in arrays
        ):
            raise CacheStale(
                f"The attribution pool in {self.run.path} does not fit the model or its own table; "
                f"make it again with `{self.run.command_of_stage(POOL)}`."
            )

    def _inverted(self) -> Inverted | None:
        files = {Path(file["path"]).stem for file in self.run.arrays[POOL]["files"]}
        if files.issuperset(INVERTED):
            return Inverted(*(open_array(self.run, POOL, name) for name in INVERTED)).frozen()
        if self.pool.n_tokens > INVERT_BELOW:
            return None
        return invert(self.pool.arrays, self.pool.n_prototypes)

    @cached_property
    def preconditioner(self) -> Preconditioner:
        """M over the pool; co-usage is summed up only when the coupled form is asked for."""
        table = read_table(self.run, "attribution_prototypes")
        largest, nearest = (table[name].to_numpy(np.float64) for name in ("largest", "nearest"))
        local = LocalTerms(largest, nearest, self.pool.n_tokens)
        tokens = self.sequences["n_tokens"]
        inverse = float((self.sequences["inverse_square_norm"] * tokens).sum() / tokens.sum())
        factor = self._weights.reconstruction * 2 / self.pool.n_tokens * inverse
        blocks = local.blocks(self._norms, self.pool.d_model, self._weights)
        return Preconditioner(
            diagonal=factor * table["usage"].to_numpy(np.float64) + blocks,
            coupling=lambda: (factor * self.pool.co_usage().matrix).toarray(),
            damping=float(self.facts.get("damping", DAMPING)),
        )

    def warm(self) -> None:
        """Compile the loops, or read them back, so that the first query does not wait for it."""
        width = self.pool.d_model
        empty = BankGradient("path", torch.zeros(1, dtype=torch.long), torch.zeros(1, width))
        query, few = Packed.of([empty], self.pool), self.pool.first(1)
        for inverted in (None, self.inverted):
            run_loop(few, query, inverted)

    def prepare(self, gradient: BankGradient, variant: Variant) -> Prepared:
        """Condition the gradient of a query's summed loss."""
        if gradient.statistic != variant.statistic:
            raise ConfigError(
                f"A gradient of {gradient.statistic} cannot be searched as {variant.name}."
            )
        if variant.conditioning == "none":
            return Prepared(gradient, variant)
        return Prepared(self.preconditioner.apply(gradient, variant.conditioning), variant)

    def scores(self, queries: list[Prepared]) -> Float[np.ndarray, "queries sequences"]:
        """Score of every sequence for queries of one variant, float64.

        Positive lowers the loss of the query. Without conditioning the unit is nats: the change of
        the summed loss of the query for a step of size 1 down the gradient of the sequence's
        summed loss, to first order. Conditioned, that step is divided by the curvature of the
        bank's own losses; with `unit` the sequence's gradient has length 1.
        """
        found = score_pool(
            self.pool,
            [query.gradient for query in queries],
            inverted=self.inverted,
            device=self._device,
        )
        if queries[0].variant.unit:
            found = by_norm(found, self._gradient_norms(queries[0].variant))
        return found

    def _gradient_norms(self, variant: Variant) -> Float[np.ndarray, " sequences"]:
        return self.sequences[f"{variant.statistic}_norm"].to_numpy(np.float64)

    def search(self, query: Prepared, top: int) -> pd.DataFrame:
        """The `top` sequences of largest score, falling: rank, sequence, score; all if fewer."""
        return ranked(self.scores([query])[0], top)

    def pair_scores(self, query: Prepared, sequence: int) -> Float[np.ndarray, "tokens k"]:
        """Summands of one sequence's score, by predicted token and active prototype."""
        found = pair_scores(self.pool, self.pool.tokens_of(sequence), query.gradient)
        if not query.variant.unit:
            return found
        norm = self._gradient_norms(query.variant)[sequence]
        return found / norm if norm > 0 else np.zeros_like(found)

    def token_scores(self, query: Prepared, sequence: int) -> Float[np.ndarray, " tokens"]:
        """What each predicted token adds to the sequence's score."""
        return self.pair_scores(query, sequence).sum(1)

    def shares(self, query: Prepared, sequence: int) -> pd.DataFrame:
        """What each prototype adds to the sequence's score, largest absolute first.

        Returns:
            prototype, share; the shares add up to the score.
        """
        summands = self.pair_scores(query, sequence)
        tokens = self.pool.tokens_of(sequence)
        prototypes, place = np.unique(self.pool.arrays.prototypes[tokens], return_inverse=True)
        share = np.bincount(place.ravel(), summands.ravel(), minlength=len(prototypes))
        order = np.lexsort((prototypes, -np.abs(share)))
        order = order[share[order] != 0]
        return pd.DataFrame(
            {"prototype": prototypes[order].astype(np.int64), "share": share[order]}
        )


def ranked(scores: Float[np.ndarray, " sequences"], top: int) -> pd.DataFrame:
    """The `top` largest scores, falling; equal ones in the order of the sequences."""
    top = min(top, len(scores))
    chosen = np.argpartition(-scores, top - 1)[:top] if 0 < top < len(scores) else slice(None)
    numbers = np.arange(len(scores))[chosen]
    order = np.lexsort((numbers, -scores[numbers]))[:top]
    sequence = numbers[order]
    return pd.DataFrame(
        {"rank": np.arange(1, len(sequence) + 1), "sequence": sequence, "score": scores[sequence]}
    )
