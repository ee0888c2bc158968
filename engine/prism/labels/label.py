"""Label every prototype and score each label on contexts it was not chosen from."""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int

from engine.corpus.documents import Progress, no_progress
from engine.prism.labels.choose import Inactive, choose_predicate
from engine.prism.labels.contexts import Contexts, FeatureSpace
from engine.prism.labels.predicates import Predicate, balanced_accuracy, holds
from engine.prism.labels.wording import category_and_role


LEAST_CHOICE = 6
"""Active contexts without which no predicate is chosen."""

LEAST_HELD_OUT = 6
"""Held-out active contexts without which a label has no score, and so is no label."""


@dataclass(frozen=True)
class LabelExamples:
    """Contexts the labels are chosen from and measured on.

    A document's contexts are all for the choice or all held out.
    """

    active: Contexts
    """Contexts on which prototypes are active, sorted by prototype."""
    first: Int[np.ndarray, " prototypes_and_one"]
    """Prototype i's contexts are rows first[i] to first[i + 1] of `active`."""
    inactive: Contexts
    """Contexts drawn at random from all scanned tokens."""
    inactive_prototypes: Int[np.ndarray, "n k"]
    """Active prototypes of those; -1 where fewer than k are active."""


@dataclass(frozen=True)
class Label:
    """A prototype's label."""

    category: str
    """Broad category."""
    role: str
    """Specific role, in words."""
    predicate: Predicate
    """What the role claims."""
    score: float | None
    """Balanced accuracy on held-out contexts; None where it could not be measured."""
    random_score: float | None
    """The same for another prototype's predicate."""


def held_out(documents: Int[np.ndarray, " n"], seed: int) -> Bool[np.ndarray, " n"]:
    """Half of the documents, by a hash of their number."""
    mixed = (documents.astype(np.uint64) + np.uint64(seed + 1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(31)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    return ((mixed >> np.uint64(40)) & np.uint64(1)).astype(bool)


def label_prototypes(
    space: FeatureSpace,
    examples: LabelExamples,
    *,
    seed: int = 0,
    masked_tokens: AbstractSet[int] = frozenset(),
    unwanted: AbstractSet[int] = frozenset(),
    raised: Int[np.ndarray, "prototypes tokens"] | None = None,
    progress: Progress = no_progress,
) -> list[Label]:
    """Label all prototypes.

    Each label is the predicate that best tells active from inactive contexts in one half of the
    documents. Its score is its balanced accuracy in the other half; the random score is that of
    the predicate of another prototype, drawn at random, on the same contexts.

    Args:
        space: General features.
        examples: Contexts.
        seed: Seed of the halves and of the random labels.
        masked_tokens: Tokens never shown in a role.
        unwanted: Prototypes that stand for unwanted content.
        raised: Tokens each prototype raises most, the most first.
        progress: Wraps the range of prototypes.
    """
    n_prototypes = len(examples.first) - 1
    numbers = range(n_prototypes)
    wrapped = progress(numbers, label="Labels", total=n_prototypes)
    choice, test = _halves(space, examples, seed)
    predicates = [choice.choose(i) for i in wrapped]
    others = _others(predicates, seed)
    labels = []
    for number in numbers:
        score, random_score = test.scores(number, predicates[number], predicates[others[number]])
        known = predicates[number] if score is not None else ()
        category, role = category_and_role(
            known,
            space,
            masked_tokens=masked_tokens,
            unwanted=number in unwanted,
            raised=() if raised is None else raised[number].tolist(),
        )
        labels.append(Label(category, role, known, score, random_score))
    return labels


def _others(predicates: list[Predicate], seed: int) -> Int[np.ndarray, " prototypes"]:
    """For each prototype another one that has a predicate, at random."""
    generator = np.random.default_rng(seed)
    named = np.array([i for i, predicate in enumerate(predicates) if predicate], np.int64)
    if len(named) < 2:
        return np.arange(len(predicates))
    drawn = generator.integers(len(named), size=len(predicates))
    clash = named[drawn] == np.arange(len(predicates))
    drawn[clash] = (drawn[clash] + 1) % len(named)
    return named[drawn]


@dataclass(frozen=True)
class _Half:
    """One half of the documents."""

    space: FeatureSpace
    active: Contexts
    first: np.ndarray
    inactive: Inactive
    inactive_prototypes: np.ndarray

    def rows(self, prototype: int) -> slice:
        return slice(int(self.first[prototype]), int(self.first[prototype + 1]))

    def quiet(self, prototype: int) -> np.ndarray:
        return ~(self.inactive_prototypes == prototype).any(axis=1)

    def choose(self, prototype: int) -> Predicate:
        active = self.active.take(self.rows(prototype))
        if len(active) < LEAST_CHOICE:
            return ()
        return choose_predicate(self.space, active, self.inactive, self.quiet(prototype))

    def scores(
        self, prototype: int, own: Predicate, other: Predicate
    ) -> tuple[float | None, float | None]:
        active = self.active.take(self.rows(prototype))
        if len(active) < LEAST_HELD_OUT or not own:
            return None, None
        quiet = self.quiet(prototype)
        matrix = self.space.matrix(active)
        found = []
        for predicate in (own, other):
            on_active = holds(predicate, active, matrix)
            on_inactive = holds(predicate, self.inactive.contexts, self.inactive.matrix)[quiet]
            found.append(balanced_accuracy(on_active, on_inactive))
        return found[0], found[1] if other is not own else None


def _halves(space: FeatureSpace, examples: LabelExamples, seed: int) -> tuple[_Half, _Half]:
    """The half labels are chosen from and the half they are measured on."""
    owner = np.repeat(np.arange(len(examples.first) - 1), np.diff(examples.first))
    active_out = held_out(examples.active.document, seed)
    inactive_out = held_out(examples.inactive.document, seed)
    halves = []
    for wanted in (False, True):
        rows, others = active_out == wanted, inactive_out == wanted
        contexts = examples.inactive.take(others)
        counts = np.bincount(owner[rows], minlength=len(examples.first) - 1)
        halves.append(
            _Half(
                space,
                examples.active.take(rows),
                np.concatenate([[0], np.cumsum(counts)]),
                Inactive.of(space, contexts),
                examples.inactive_prototypes[others],
            )
        )
    return halves[0], halves[1]
