"""What the cards of a map document: who was made of whom, who only looks alike, who splits whom.

Two models are related when edges that copy weights lead both back to one base, or one to the
other. The same architecture, tokenizer, data or name is no relation, and neither is a teacher.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from scipy.sparse.csgraph import connected_components, shortest_path


TWIN, DISTILLED, CONVERGENCE = "twin", "distilled", "convergence"
HARD_KINDS = (TWIN, DISTILLED, CONVERGENCE, "size", "architecture", "data", "name")
"""Ways in which unrelated models are alike; of several the first counts."""
SIBLINGS, ANCESTOR, RELATIVES = "siblings", "ancestor", "relatives"
UNKNOWN = "unknown"


@dataclass(frozen=True, kw_only=True)
class Card:
    """What is documented of one model."""

    name: str
    """The model."""
    relation: str = "root"
    """How it was made of its parents."""
    parents: tuple[str, ...] = ()
    """Models it was made of."""
    roots: tuple[str, ...] = ()
    """Bases whose weights it goes back to; empty where unknown."""
    copies_weights: bool = False
    """Whether it took over weights of its parents."""
    architecture: str = ""
    tokenizer: str = ""
    data: str = ""
    size: str = ""
    family: str = ""
    groups: tuple[str, ...] = ()
    """Groups of models that are alike without lineage, `kind:members`."""

    @property
    def is_base(self) -> bool:
        """Whether no weights of it come from another model."""
        return self.roots == (self.name,)


@dataclass(frozen=True)
class Lineage:
    """The documented lineage of the models of a map."""

    cards: tuple[Card, ...]
    """One card a model, embedded or not."""

    @cached_property
    def by_name(self) -> dict[str, Card]:
        """Cards by model."""
        return {card.name: card for card in self.cards}

    @cached_property
    def place(self) -> dict[str, int]:
        """Place of each model among the cards."""
        return {card.name: number for number, card in enumerate(self.cards)}

    @cached_property
    def _ancestors(self) -> dict[str, frozenset[str]]:
        found: dict[str, frozenset[str]] = {}
        for card in self.cards:
            self._walk(card.name, found, weights_only=True)
        return found

    @cached_property
    def _origins(self) -> dict[str, frozenset[str]]:
        found: dict[str, frozenset[str]] = {}
        for card in self.cards:
            self._walk(card.name, found, weights_only=False)
        return found

    def _walk(
        self, name: str, found: dict[str, frozenset[str]], *, weights_only: bool
    ) -> frozenset[str]:
        """Models that a model was made of, directly or not; a circle ends where it began."""
        if name not in found:
            found[name] = frozenset()
            card = self.by_name.get(name)
            own = card.parents if card and (card.copies_weights or not weights_only) else ()
            above = [self._walk(parent, found, weights_only=weights_only) for parent in own]
            found[name] = frozenset(own).union(*above)
        return found[name]

    def ancestors(self, name: str) -> frozenset[str]:
        """Models whose weights a model goes back to."""
        return self._ancestors[name]

    @cached_property
    def edges(self) -> Float[np.ndarray, "cards cards"]:
        """Documented edges between models, infinite where none connect them."""
        graph = np.zeros((len(self.cards), len(self.cards)))
        for card in self.cards:
            for parent in card.parents:
                if parent in self.place:
                    graph[self.place[card.name], self.place[parent]] = 1
        return shortest_path(graph, directed=False, unweighted=True)

    @cached_property
    def units(self) -> Int[np.ndarray, " cards"]:
        """Unit of each model: families that no split may tear, numbered from 0.

        Documented edges of any kind, a base in common, and bases that are twins join models.
        """
        marks: dict[str, list[int]] = {}
        for number, card in enumerate(self.cards):
            twins = [group for group in card.groups if group.startswith(f"{TWIN}:")]
            for mark in (card.name, *card.parents, *card.roots, *(f"group {g}" for g in twins)):
                marks.setdefault(mark, []).append(number)
        graph = np.zeros((len(self.cards), len(self.cards)))
        for members in marks.values():
            graph[members[0], members] = 1
        return connected_components(graph, directed=False)[1].astype(np.int64)

    def related(self, a: str, b: str) -> bool | None:
        """Whether edges that copy weights connect two models; None where that is not known."""
        first, second = self.by_name[a], self.by_name[b]
        if b in self.ancestors(a) or a in self.ancestors(b):
            return True
        if not first.roots or not second.roots:
            return None
        return bool(set(first.roots) & set(second.roots))

    def derivation(self, a: str, b: str) -> str:
        """How the later of two related models was made of the earlier, or how they are related."""
        first, second = self.by_name[a], self.by_name[b]
        for earlier, later in ((first, second), (second, first)):
            if earlier.name in later.parents and later.copies_weights:
                return later.relation
        if a in self.ancestors(b) or b in self.ancestors(a):
            return ANCESTOR
        return SIBLINGS if set(first.parents) & set(second.parents) else RELATIVES

    def likeness(self, a: str, b: str) -> str:
        """In which of `HARD_KINDS` two unrelated models are alike; empty where in none."""
        first, second = self.by_name[a], self.by_name[b]
        shared = _kinds(set(first.groups) & set(second.groups))
        own = self._groups_of_roots(first), self._groups_of_roots(second)
        shared |= _kinds(own[0] & own[1]) - {CONVERGENCE}
        if self._all_origins(first) & self._all_origins(second):
            shared.add(DISTILLED)
        return next((kind for kind in HARD_KINDS if kind in shared), "")

    def known(self, model: str, other: str) -> str:
        """What another model is to a model by the documents, in a word."""
        first, second = self.by_name.get(model), self.by_name.get(other)
        if first is None or second is None:
            return UNKNOWN
        for earlier, later, words in (
            (second, first, ("parent", "teacher", "ancestor")),
            (first, second, ("child", "student", "descendant")),
        ):
            if earlier.name in later.parents:
                return words[0 if later.copies_weights else 1]
            if earlier.name in self.ancestors(later.name):
                return words[2]
        related = self.related(model, other)
        if related is None:
            return UNKNOWN
        if related:
            return "sibling" if set(first.parents) & set(second.parents) else "relative"
        return TWIN if self.likeness(model, other) == TWIN else "unrelated"

    def _groups_of_roots(self, card: Card) -> set[str]:
        roots = [self.by_name[root] for root in card.roots if root in self.by_name]
        return {group for root in roots for group in root.groups}

    def _all_origins(self, card: Card) -> frozenset[str]:
        """Bases it goes back to, by weights or by way of teachers."""
        above = self._origins[card.name] | {card.name}
        bases = [self.by_name[name] for name in above if name in self.by_name]
        return frozenset(root for base in bases for root in base.roots)


def lineage_of(rows: Iterable[Mapping[Any, Any]]) -> Lineage:
    """The lineage that rows of `model_cards` document."""
    lists = ("parents", "roots", "groups")
    texts = ("relation", "architecture", "tokenizer", "data", "size", "family")
    return Lineage(
        tuple(
            Card(
                name=row["model"],
                copies_weights=bool(row["copies_weights"]),
                **{name: tuple(row[name]) for name in lists},
                **{name: row[name] for name in texts},
            )
            for row in rows
        )
    )


def _kinds(groups: Iterable[str]) -> set[str]:
    return {group.partition(":")[0] for group in groups}
