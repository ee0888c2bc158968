"""How strong the evidence is that two models are related, in a word."""

import numpy as np
from jaxtyping import Float


CAVEAT = (
    "This is evidence of related input dependence, not proof of derivation: models trained alike "
    "can answer alike."
)
STRONG, MODERATE, WEAK, NONE, UNKNOWN = "strong", "moderate", "weak", "none", "unknown"
THRESHOLDS = ((99.9, STRONG), (99.0, MODERATE), (95.0, WEAK))
"""Percentiles among unrelated pairs from which on a word holds."""


def percentiles(
    scores: Float[np.ndarray, "..."], unrelated: Float[np.ndarray, " pairs"]
) -> Float[np.ndarray, "..."] | None:
    """Percent of unrelated pairs whose score is lower; None where there are no such pairs."""
    if len(unrelated) == 0:
        return None
    below = np.searchsorted(np.sort(unrelated), scores, side="left")
    return 100.0 * below / len(unrelated)


def verdict(percentile: float | None) -> str:
    """The word for a percentile among unrelated pairs."""
    if percentile is None:
        return UNKNOWN
    return next((word for least, word in THRESHOLDS if percentile >= least), NONE)
