"""Pairs of models with their labels, splits that tear no family, and balanced draws of pairs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from engine.atlas.lineage import Lineage
from engine.config import require


POSITIVE, HARD, MEDIUM, EASY = "positive", "hard", "medium", "easy"
SHARES = {HARD: 0.5, MEDIUM: 0.3, EASY: 0.2}
"""Share of each level among the negatives that are drawn."""
N_SPLITS, TEST_SHARE = 10, 1 / 3
"""Random splits, and the share of roots in each one's test part."""


@dataclass(frozen=True)
class Pairs:
    """Pairs of models whose relation is known."""

    names: tuple[str, ...]
    """Models, in the order that `a` and `b` count in."""
    frame: pd.DataFrame
    """Rows of `model_pairs`."""
    a: Int[np.ndarray, " pairs"]
    """Place of the first model."""
    b: Int[np.ndarray, " pairs"]
    """Place of the second."""
    unit: Int[np.ndarray, " models"]
    """Unit of each model, which no split may tear."""
    roots: Int[np.ndarray, " units"]
    """Roots of each unit, students of a teacher not counted."""

    @property
    def related(self) -> Bool[np.ndarray, " pairs"]:
        """Whether each pair is related."""
        return self.frame["related"].to_numpy(bool)

    @property
    def level(self) -> np.ndarray:
        """Level of each pair."""
        return self.frame["level"].to_numpy(object)

    @property
    def kind(self) -> np.ndarray:
        """Kind of each pair."""
        return self.frame["kind"].to_numpy(object)

    def inside(self, units: np.ndarray) -> Bool[np.ndarray, " pairs"]:
        """Which pairs have both models in the given units."""
        kept = np.isin(self.unit, units)
        return kept[self.a] & kept[self.b]

    def of(self, matrix: Float[np.ndarray, "models models"]) -> Float[np.ndarray, " pairs"]:
        """Entries of a matrix over models, by pair."""
        return matrix[self.a, self.b]


def make_pairs(lineage: Lineage, embedded: Sequence[str]) -> Pairs:
    """All pairs of embedded models whose relation is documented, one way or the other.

    Raises:
        ConfigError: There are no related pairs, or no unrelated ones.
    """
    known = set(embedded)
    names = tuple(card.name for card in lineage.cards if card.name in known)
    rows = [row for a, b in combinations(names, 2) if (row := _row(lineage, a, b)) is not None]
    related = {row["related"] for row in rows}
    require(
        related == {True, False},
        "The catalogue documents no related or no unrelated pair among the embedded models; it "
        "needs columns `parents` and `root`, and both roots and derivatives of them.",
    )
    columns = ["a", "b", "related", "level", "kind", "edges"]
    frame = pd.DataFrame(rows, columns=columns).assign(pair=range(len(rows)))
    place = {name: number for number, name in enumerate(names)}
    units = lineage.units
    _, unit = np.unique([units[lineage.place[name]] for name in names], return_inverse=True)
    roots = np.zeros(unit.max() + 1, np.int64)
    for name in names:
        card = lineage.by_name[name]
        roots[unit[place[name]]] += card.is_base and not card.parents
    a, b = (frame[column].map(place).to_numpy(np.int64) for column in ("a", "b"))
    return Pairs(names, frame, a, b, unit.astype(np.int64), roots)


def _row(lineage: Lineage, a: str, b: str) -> dict[str, object] | None:
    related = lineage.related(a, b)
    if related is None:
        return None
    kind = lineage.derivation(a, b) if related else lineage.likeness(a, b)
    edges = lineage.edges[lineage.place[a], lineage.place[b]]
    return {
        "a": a,
        "b": b,
        "related": related,
        "level": POSITIVE if related else HARD if kind else _ease(lineage, a, b),
        "kind": kind,
        "edges": int(edges) if np.isfinite(edges) else 0,
    }


def _ease(lineage: Lineage, a: str, b: str) -> str:
    first, second = lineage.by_name[a], lineage.by_name[b]
    for name in ("tokenizer", "data"):
        if getattr(first, name) and getattr(first, name) == getattr(second, name):
            return MEDIUM
    return EASY


def halves(
    pairs: Pairs, seed: int = 0
) -> tuple[Int[np.ndarray, " units"], Int[np.ndarray, " held"]]:
    """Development and held-out units: half of the units of several roots each, half of the rest."""
    generator = np.random.default_rng([seed, 1])
    parts: list[np.ndarray] = []
    for several in (True, False):
        own = np.flatnonzero((pairs.roots > 1) == several)
        parts.append(generator.permutation(own))
    dealt = np.concatenate(parts)
    return np.sort(dealt[::2]), np.sort(dealt[1::2])


def random_splits(
    pairs: Pairs, n: int = N_SPLITS, seed: int = 0
) -> Iterator[tuple[Int[np.ndarray, " train"], Int[np.ndarray, " test"]]]:
    """Units to learn from and units to test on; a third of the roots is in each test part."""
    generator = np.random.default_rng([seed, 2])
    for _ in range(n):
        order = generator.permutation(len(pairs.roots))
        filled = np.cumsum(pairs.roots[order])
        cut = int(np.searchsorted(filled, filled[-1] * TEST_SHARE)) + 1
        yield np.sort(order[cut:]), np.sort(order[:cut])


def balanced(
    pairs: Pairs, mask: Bool[np.ndarray, " pairs"], generator: np.random.Generator
) -> Int[np.ndarray, " drawn"]:
    """Places of all related pairs of a mask and as many unrelated ones by `SHARES`.

    Hard pairs are drawn evenly over their kinds. Where a level has too few, easier and then harder
    ones take their places.
    """
    positives = np.flatnonzero(mask & pairs.related)
    wanted = len(positives)
    drawn: list[int] = []
    for level, share in SHARES.items():
        own = np.flatnonzero(mask & (pairs.level == level))
        order = _by_kind(pairs.kind[own], generator)
        drawn += own[order][: round(share * wanted)].tolist()
    rest = np.setdiff1d(np.flatnonzero(mask & ~pairs.related), drawn)
    missing = max(0, min(wanted - len(drawn), len(rest)))
    drawn += generator.permutation(rest)[:missing].tolist()
    return np.sort(np.concatenate([positives, np.array(drawn[:wanted], np.int64)]))


def _by_kind(kinds: np.ndarray, generator: np.random.Generator) -> Int[np.ndarray, " pairs"]:
    """A random order in which the kinds take turns."""
    order = generator.permutation(len(kinds))
    turn = pd.Series(kinds[order]).groupby(kinds[order]).cumcount().to_numpy()
    return order[np.argsort(turn, kind="stable")]
