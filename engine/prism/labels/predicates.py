"""Predicates over contexts: what a label claims, in a form that can be right or wrong."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int

from engine.prism.labels.contexts import Contexts, FeatureSpace


@dataclass(frozen=True)
class GeneralPart:
    """One general feature: an attribute of a token, a structure or a domain."""

    feature: int
    """Row of the feature in the space's matrix."""


@dataclass(frozen=True)
class TokenPart:
    """One of a few named tokens in a slot."""

    slot: str
    """"predicted", "current" or "previous"."""
    tokens: tuple[int, ...]
    """Token ids, the most frequent first."""


Part = GeneralPart | TokenPart
Predicate = tuple[Part, ...]
"""Parts that must all hold; the most telling first. Empty: no label was found."""


def slot_of(part: Part, space: FeatureSpace) -> str:
    """What a part speaks of: a token slot, "structure" or "domain"."""
    return part.slot if isinstance(part, TokenPart) else space.describe(part.feature)[0]


def holds(
    predicate: Predicate,
    contexts: Contexts,
    matrix: Bool[np.ndarray, "features n"],
) -> Bool[np.ndarray, " n"]:
    """Where a predicate holds; `matrix` is the space's matrix of the same contexts."""
    result = np.ones(len(contexts), bool)
    for part in predicate:
        if isinstance(part, TokenPart):
            result &= np.isin(slot_tokens(contexts, part.slot), part.tokens)
        else:
            result &= matrix[part.feature]
    return result


def slot_tokens(contexts: Contexts, slot: str) -> Int[np.ndarray, " n"]:
    """Tokens that fill a slot."""
    return getattr(contexts, slot)


def balanced_accuracy(
    on_active: Bool[np.ndarray, " active"], on_inactive: Bool[np.ndarray, " inactive"]
) -> float:
    """Mean of the share of active tokens called active and of inactive ones called inactive.

    1 is perfect, 0.5 is what a predicate with no relation to the prototype reaches.
    """
    return float(on_active.mean() + 1.0 - on_inactive.mean()) / 2.0
