"""Concepts: sets of prototypes that stand for one kind of text, chosen on training texts alone."""

from typing import Any

import numpy as np
from jaxtyping import Float

from engine.pipeline.index_statistics import PrototypeStatistics


CONCEPT = "NSFW"
LEAST_LOG_RATIO = 1.5
"""Log ratio of mass per token a prototype must reach: 4.5 times the mass of other texts."""
LARGEST_SHARE = 0.04
"""Share of the bank a concept may hold."""
TYPICAL_LOG_RATIO = 3.0
"""Log ratio from which a prototype's label says that it stands for the domain: 20 times."""
LEAST_TOKENS = 8
"""Active tokens in the concept's texts a prototype needs."""


def mass_log_ratio(
    statistics: PrototypeStatistics, domain: int
) -> Float[np.ndarray, " prototypes"]:
    """Log ratio of activation mass per token: a domain's texts over all other texts.

    Both sides are smoothed by the prototype's mean activation on one token, so that a prototype
    seen once or twice does not reach an extreme value.
    """
    inside = statistics.domain_mass[:, domain]
    outside = statistics.domain_mass.sum(axis=1) - inside
    n_inside = statistics.domain_tokens[domain]
    n_outside = statistics.domain_tokens.sum() - n_inside
    overall = (inside + outside) / max(n_inside + n_outside, 1)
    smoothing = np.maximum(statistics.mean, 1e-6)
    # Pseudo-mass spread over both sides at the overall rate keeps the ratio near 0 when rare.
    weight = smoothing / np.maximum(overall, 1e-12)
    inside_rate = (inside + smoothing) / (n_inside + weight)
    outside_rate = (outside + smoothing) / (n_outside + weight)
    return np.log(inside_rate / outside_rate)


def _scores(
    statistics: PrototypeStatistics, domains: tuple[str, ...], domain: str
) -> Float[np.ndarray, " prototypes"]:
    """Log ratios; minus infinity where too few tokens are known, or the domain is no contrast."""
    nothing = np.full(len(statistics.counts), -np.inf)
    if domain not in domains:
        return nothing
    number = domains.index(domain)
    if statistics.domain_tokens[number] in (0, statistics.domain_tokens.sum()):
        return nothing
    known = statistics.domain_counts[:, number] >= LEAST_TOKENS
    return np.where(known, mass_log_ratio(statistics, number), nothing)


def typical_prototypes(
    statistics: PrototypeStatistics, domains: tuple[str, ...], domain: str
) -> frozenset[int]:
    """Prototypes so typical of a domain that their label says so."""
    score = _scores(statistics, domains, domain)
    return frozenset(np.flatnonzero(score >= TYPICAL_LOG_RATIO).tolist())


def concept_rows(
    statistics: PrototypeStatistics, domains: tuple[str, ...], domain: str
) -> dict[str, Any]:
    """Columns of the `concepts` table for a domain; empty when the corpus lacks it."""
    score = _scores(statistics, domains, domain)
    chosen = np.flatnonzero(score >= LEAST_LOG_RATIO)
    chosen = chosen[np.argsort(-score[chosen], kind="stable")]
    chosen = chosen[: max(int(LARGEST_SHARE * len(score)), 1)]
    inside = int(statistics.domain_tokens[domains.index(domain)]) if domain in domains else 0
    outside = int(statistics.domain_tokens.sum()) - inside
    origin = (
        f"Log ratio of activation mass per token, {domain} training texts over all others, at "
        f"least {LEAST_LOG_RATIO}; at most {LARGEST_SHARE:.0%} of the bank; "
        f"{inside} against {outside} tokens"
    )
    return {
        "concept": [CONCEPT] * len(chosen),
        "prototype": chosen.astype(np.int32),
        "score": score[chosen].astype(np.float32),
        "origin": [origin] * len(chosen),
    }
