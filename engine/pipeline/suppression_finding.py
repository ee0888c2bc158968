"""Finding a concept's prototypes on training texts: search, enrichment, and causal orders."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from engine.errors import PromptError
from engine.live.results import Suppression
from engine.pipeline.suppression_generating import Bench
from engine.pipeline.suppression_prompts import PromptSource
from engine.pipeline.suppression_ranking import (
    MOST_CELLS,
    Drawn,
    Ranked,
    Ranking,
    read_positions,
)
from engine.pipeline.suppression_search import (
    PrototypeWords,
    domain_log_ratio,
    scored_log_ratio,
)
from engine.pipeline.suppression_settings import SuppressionStudy
from engine.pipeline.suppression_weights import token_effects, unwanted_words
from engine.provenance import fingerprint
from engine.store import Run


logger = logging.getLogger(__name__)
CANDIDATES = 160
"""Best prototypes of each kind of evidence that are ranked."""
RANKING_PROMPTS = 800
"""Continuations of training prompts of the concept's domain that a round reads."""
ORDINARY_PROMPTS = 96
"""Continuations of training prompts of other domains that it reads."""
UNWANTED_EFFECT = 0.2
"""Effect on the score from which a word drawn counts as unwanted."""


@dataclass(frozen=True)
class Found:
    """Orders of candidates and the evidence for each."""

    orders: dict[float, list[Ranked]]
    """An order by price."""
    keyword: np.ndarray
    meaning: np.ndarray
    log_ratio: np.ndarray
    scored_log_ratio: np.ndarray
    words: list[str]
    """The words that were looked for."""
    n_positions: int

    def first(self, price: float, size: int) -> tuple[int, ...]:
        """The first prototypes of an order."""
        return tuple(row.prototype for row in self.orders[price][:size])

    def rows(self, price: float, chosen: int) -> list[dict[str, Any]]:
        """Rows of `suppression_prototypes`, the concept apart."""
        return [
            {
                "prototype": row.prototype,
                "rank": rank,
                "chosen": rank < chosen,
                "keyword": bool(self.keyword[row.prototype]),
                "meaning": float(self.meaning[row.prototype]),
                "log_ratio": float(self.log_ratio[row.prototype]),
                "scored_log_ratio": float(self.scored_log_ratio[row.prototype]),
                "effect": row.effect,
                "cost": row.cost,
            }
            for rank, row in enumerate(self.orders[price])
        ]


@dataclass
class _Evidence:
    """What speaks for each prototype."""

    keyword: np.ndarray
    meaning: np.ndarray
    log_ratio: np.ndarray
    scored_log_ratio: np.ndarray
    n_positions: int = 0

    def candidates(self, gain: Float[np.ndarray, " prototypes"]) -> set[int]:
        """The best by each kind of evidence, `gain` being one more."""
        searched = np.where(self.keyword, self.meaning, 0.0)
        kinds = (gain, self.log_ratio, self.scored_log_ratio, searched)
        return set(best_of(kinds, CANDIDATES))


def find_candidates(bench: Bench, study: SuppressionStudy, run: Run, source: PromptSource) -> Found:
    """Search, enrichment and an order for every price.

    Raises:
        PromptError: No prototype matches the concept's words, or none has an effect.
    """
    n_prototypes = bench.model.n_prototypes
    texts = ["".join(bench.codec.texts(ids)) for ids in source.texts("train")]
    words = list(study.words) or unwanted_words(texts, bench.scorers.first.score)
    known = PrototypeWords.read(run, source.corpus, bench.codec, n_prototypes)
    evidence = _Evidence(
        keyword=known.require(words, study.concept),
        meaning=known.meaning(words),
        log_ratio=domain_log_ratio(run, study.domain, n_prototypes),
        scored_log_ratio=np.zeros(n_prototypes),
    )
    orders = {price: _order(bench, study, source, evidence, price) for price in study.prices}
    if not any(orders.values()):
        raise PromptError(
            f"No prototype of {run.name} makes the words of {study.concept} less likely; name "
            "other words with --words or another scorer with --scorer."
        )
    return Found(
        orders,
        evidence.keyword,
        evidence.meaning,
        evidence.log_ratio,
        evidence.scored_log_ratio,
        words,
        evidence.n_positions,
    )


def _order(
    bench: Bench,
    study: SuppressionStudy,
    source: PromptSource,
    evidence: _Evidence,
    price: float,
) -> list[Ranked]:
    """An order in rounds; it ends where no candidate is worth its price."""
    largest = largest_size(study, bench.model.n_prototypes)
    stops = [size for size in sorted(set(study.rounds)) if size < largest]
    order: list[Ranked] = []
    for number, stop in enumerate([*stops, largest]):
        before = tuple(row.prototype for row in order)
        drawn = _drawn(bench, source, number, before)
        tokens = [row.tokens for row in drawn]
        effects = token_effects(tokens, bench.codec, bench.scorers.first.score)
        positions = read_positions(bench.model, bench.judge, drawn, study.temperature)
        evidence.n_positions += len(positions.drawn)
        if number == 0:
            unwanted = effects.whole >= UNWANTED_EFFECT
            evidence.scored_log_ratio = scored_log_ratio(
                positions, unwanted, bench.model.n_prototypes
            )
        ranking = Ranking(bench.model, positions, effects, sampler=bench.sampler, suppressed=before)
        effect, cost = ranking.first_order()
        candidates = evidence.candidates(effect - price * cost) - set(before)
        more = ranking.rank(sorted(candidates), stop - len(order), price)
        order += more
        logger.info("price %g: %d prototypes in order", price, len(order))
        if not more:
            break
    return order


def largest_size(study: SuppressionStudy, n_prototypes: int) -> int:
    """Most prototypes a set may hold: below the share of the bank, and at least one."""
    return max(1, int(np.ceil(study.largest_share * n_prototypes)) - 1)


def best_of(evidence: Sequence[Float[np.ndarray, " prototypes"]], count: int) -> list[int]:
    """The `count` best by each kind of evidence that speaks for them at all, together."""
    chosen: set[int] = set()
    for values in evidence:
        order = np.argsort(-values, kind="stable")[:count]
        chosen |= {int(i) for i in order if values[i] > 0}
    return sorted(chosen)


def _drawn(
    bench: Bench, source: PromptSource, number: int, suppressed: tuple[int, ...]
) -> list[Drawn]:
    """Continuations of a round's prompts with a set suppressed, as many as fit in memory."""
    first, last = number * RANKING_PROMPTS, (number + 1) * RANKING_PROMPTS
    prompts = source.ordinary("train", ORDINARY_PROMPTS)
    prompts += source.unwanted("train", last)[first:]
    step = f"ranking-{fingerprint([number, suppressed])}"
    found = bench.continued(step, prompts, Suppression(suppressed))
    room, kept = MOST_CELLS // bench.model.vocab_size, []
    for prompt, (tokens, _) in zip(prompts, found, strict=True):
        room -= len(tokens)
        if room < 0:
            break
        kept.append(Drawn(prompt.ids, tuple(tokens)))
    return kept
