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


def concept_rows(
    statistics: PrototypeStatistics, domains: tuple[str, ...], domain: str
) -> dict[str, Any]:
    """Columns of the `concepts` table for a domain; empty when the corpus lacks it."""
    empty: dict[str, Any] = {"concept": [], "prototype": [], "score": [], "origin": []}
    if domain not in domains:
        return empty
    number = domains.index(domain)
    if statistics.domain_tokens[number] in (0, statistics.domain_tokens.sum()):
        return empty
    score = mass_log_ratio(statistics, number)
    known = statistics.domain_counts[:, number] >= LEAST_TOKENS
    chosen = np.flatnonzero(known & (score >= LEAST_LOG_RATIO))
    chosen = chosen[np.argsort(-score[chosen], kind="stable")]
    chosen = chosen[: max(int(LARGEST_SHARE * len(score)), 1)]
    origin = (
        f"Log ratio of activation mass per token, {domain} training texts over all others, at "
        f"least {LEAST_LOG_RATIO}; at most {LARGEST_SHARE:.0%} of the bank; "
        f"{int(statistics.domain_tokens[number])} against "
        f"{int(statistics.domain_tokens.sum() - statistics.domain_tokens[number])} tokens"
    )
    return {
        "concept": [CONCEPT] * len(chosen),
        "prototype": chosen.astype(np.int32),
        "score": score[chosen].astype(np.float32),
        "origin": [origin] * len(chosen),
    }
