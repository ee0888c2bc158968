"""Find the predicate that best tells a prototype's active contexts from inactive ones."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from engine.prism.labels.contexts import SLOTS, Contexts, FeatureSpace
from engine.prism.labels.predicates import (
    GeneralPart,
    Part,
    Predicate,
    TokenPart,
    slot_of,
    slot_tokens,
)


RATE_FLOOR = 0.005
"""Rates among inactive tokens below this count as this, so that rarity alone wins nothing."""

ACCURACY_WEIGHT = 2.0
"""Weight of accuracy against information in the choice of a predicate."""

LEAST_GAIN = 0.06
"""What a further part must add to be worth its words."""

LEAST_VALUE = 0.15
"""A predicate below this tells too little to be a label."""

MAX_PARTS = 3
N_GENERAL = 20
MAX_TOKENS = 4


@dataclass(frozen=True)
class Inactive:
    """Contexts drawn at random from all scanned tokens, and their features."""

    contexts: Contexts
    matrix: Bool[np.ndarray, "features n"]
    totals: Int[np.ndarray, " features"]
    """Contexts with each feature."""

    @classmethod
    def of(cls, space: FeatureSpace, contexts: Contexts) -> "Inactive":
        """Contexts with their features."""
        matrix = np.ascontiguousarray(space.matrix(contexts))
        return cls(contexts, matrix, matrix.sum(axis=1))


@dataclass(frozen=True)
class Candidates:
    """Parts a predicate may be made of, and where each holds."""

    parts: tuple[Part, ...]
    slots: tuple[str, ...]
    on_active: Float[np.ndarray, "candidates active"]
    on_inactive: Float[np.ndarray, "candidates inactive"]


def predicate_value(
    rate_active: Float[np.ndarray, "*shape"], rate_inactive: Float[np.ndarray, "*shape"]
) -> Float[np.ndarray, "*shape"]:
    """How much a predicate with these rates is worth as a label.

    KL(p || q) + weight (p - q), with p and q its rates among active and inactive tokens: the
    nats an active token gives about it, which favours the specific, plus twice the gain in
    balanced accuracy, which favours the complete. Negative where p < q.
    """
    p = np.clip(rate_active, 1e-6, 1 - 1e-6)
    q = np.clip(rate_inactive, RATE_FLOOR, 1 - RATE_FLOOR)
    information = p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q))
    return np.where(p > q, information, -information) + ACCURACY_WEIGHT * (p - q)


def shrunk_rate(hits: Shaped[np.ndarray, "*shape"], n: int) -> Float[np.ndarray, "*shape"]:
    """Share of hits, drawn towards 0 when there are few examples."""
    return hits / (n + 2.0)


def choose_predicate(
    space: FeatureSpace,
    active: Contexts,
    inactive: Inactive,
    quiet: Bool[np.ndarray, " n"],
) -> Predicate:
    """The most telling conjunction of at most three parts.

    Args:
        space: General features.
        active: Contexts on which the prototype is active, for the choice alone.
        inactive: Random contexts.
        quiet: Those of them on which the prototype is not active.

    Returns:
        The parts, the most telling first; empty if nothing tells enough.
    """
    candidates = _candidates(space, active, inactive, quiet)
    n_active, n_inactive = candidates.on_active.shape[1], candidates.on_inactive.shape[1]
    held_active, held_inactive = np.ones(n_active, np.float32), np.ones(n_inactive, np.float32)
    single = _values(candidates, held_active, held_inactive)
    best_value, best = _grow_pairs(candidates, single)
    while 0 < len(best) < MAX_PARTS:
        held_active = candidates.on_active[best].prod(axis=0)
        held_inactive = candidates.on_inactive[best].prod(axis=0)
        values = _values(candidates, held_active, held_inactive)
        values[_excluded(candidates, best)] = -np.inf
        choice = int(values.argmax())
        if values[choice] < best_value + LEAST_GAIN:
            break
        best, best_value = [*best, choice], float(values[choice])
    best.sort(key=lambda candidate: -single[candidate])
    return tuple(candidates.parts[candidate] for candidate in best)


def _grow_pairs(candidates: Candidates, single: np.ndarray) -> tuple[float, list[int]]:
    """The best one or two parts."""
    first = int(single.argmax())
    if single[first] < LEAST_VALUE:
        return 0.0, []
    n_active, n_inactive = candidates.on_active.shape[1], candidates.on_inactive.shape[1]
    pairs = predicate_value(
        shrunk_rate(candidates.on_active @ candidates.on_active.T, n_active),
        shrunk_rate(candidates.on_inactive @ candidates.on_inactive.T, n_inactive),
    )
    for row in range(len(pairs)):
        pairs[row, _excluded(candidates, [row])] = -np.inf
    left, right = np.unravel_index(int(pairs.argmax()), pairs.shape)
    if pairs[left, right] < single[first] + LEAST_GAIN:
        return float(single[first]), [first]
    return float(pairs[left, right]), [int(left), int(right)]


def _values(candidates: Candidates, active: np.ndarray, inactive: np.ndarray) -> np.ndarray:
    """Value of each candidate joined with what holds already."""
    return predicate_value(
        shrunk_rate(candidates.on_active @ active, len(active)),
        shrunk_rate(candidates.on_inactive @ inactive, len(inactive)),
    )


def _excluded(candidates: Candidates, chosen: list[int]) -> Bool[np.ndarray, " candidates"]:
    """Candidates that speak of what is spoken of already; structures may be joined once."""
    slots = {candidates.slots[i] for i in chosen}
    return np.array([slot in slots for slot in candidates.slots])


def _candidates(
    space: FeatureSpace, active: Contexts, inactive: Inactive, quiet: np.ndarray
) -> Candidates:
    """The best general features of this prototype, and sets of its most typical tokens."""
    matrix = space.matrix(active)
    n_quiet = int(quiet.sum())
    loud = inactive.matrix[:, ~quiet].sum(axis=1)
    rate_inactive = (inactive.totals - loud) / max(n_quiet, 1)
    value = predicate_value(shrunk_rate(matrix.sum(axis=1), len(active)), rate_inactive)
    best = np.argsort(-value, kind="stable")[:N_GENERAL]
    parts: list[Part] = [GeneralPart(int(feature)) for feature in best]
    on_active, on_inactive = [matrix[best]], [inactive.matrix[np.ix_(best, quiet)]]
    for slot in SLOTS:
        seen = slot_tokens(active, slot)
        base = slot_tokens(inactive.contexts, slot)[quiet]
        tokens = _typical_tokens(seen, base)
        if len(tokens) == 0:
            continue
        parts += [TokenPart(slot, tuple(tokens[: i + 1].tolist())) for i in range(len(tokens))]
        on_active.append(np.logical_or.accumulate(seen == tokens[:, None], axis=0))
        on_inactive.append(np.logical_or.accumulate(base == tokens[:, None], axis=0))
    return Candidates(
        tuple(parts),
        tuple(slot_of(part, space) for part in parts),
        np.concatenate(on_active).astype(np.float32),
        np.concatenate(on_inactive).astype(np.float32),
    )


def _typical_tokens(
    seen: Int[np.ndarray, " active"], base: Int[np.ndarray, " inactive"]
) -> Int[np.ndarray, " tokens"]:
    """Tokens that fill a slot at least twice and much more often than elsewhere, best first."""
    tokens, counts = np.unique(seen[seen >= 0], return_counts=True)
    kept = counts >= max(2, round(0.04 * len(seen)))
    tokens, counts = tokens[kept], counts[kept]
    order = np.argsort(-counts, kind="stable")[: 2 * MAX_TOKENS]
    tokens, counts = tokens[order], counts[order]
    elsewhere = (base == tokens[:, None]).mean(axis=1) if len(base) else np.zeros(len(tokens))
    value = predicate_value(counts / (len(seen) + 2.0), elsewhere)
    order = np.argsort(-value, kind="stable")
    return tokens[order][value[order] > 0][:MAX_TOKENS]
