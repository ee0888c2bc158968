"""Reductions over a stream of active (token, prototype) pairs: the first few of each group.

Every reduction keeps the same rows however the stream is cut into shards, in memory that grows
with the number of prototypes alone.
"""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int, UInt


PER_DOCUMENT = 2
"""Top examples a document may give before others get a turn."""


@dataclass(frozen=True)
class Pairs:
    """Active pairs of token and prototype, by document and position."""

    prototype: Int[np.ndarray, " n"]
    document: Int[np.ndarray, " n"]
    position: Int[np.ndarray, " n"]
    activation: Float[np.ndarray, " n"]
    """float16, above 0."""

    def __len__(self) -> int:
        return len(self.prototype)

    def take(self, rows: Any) -> "Pairs":
        """Some rows, by index or mask."""
        return Pairs(*(getattr(self, f.name)[rows] for f in fields(self)))

    def followed_by(self, other: "Pairs") -> "Pairs":
        """These rows and then the others."""
        names = [f.name for f in fields(self)]
        return Pairs(*(np.concatenate([getattr(self, n), getattr(other, n)]) for n in names))

    @classmethod
    def empty(cls) -> "Pairs":
        """No rows."""
        numbers = np.zeros(0, np.int64)
        return cls(numbers, numbers, numbers, np.zeros(0, np.float16))


def falling_bits(activation: Float[np.ndarray, " n"]) -> UInt[np.ndarray, " n"]:
    """uint16 that falls as a float16 >= 0 rises, so that sorting by it is exact and fast."""
    return np.uint16(0xFFFF) - activation.astype(np.float16).view(np.uint16)


def rank_within(groups: Int[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
    """Place of each row within its group, for rows sorted by group."""
    if len(groups) == 0:
        return np.zeros(0, np.int64)
    rows = np.arange(len(groups))
    starts = np.concatenate([[True], groups[1:] != groups[:-1]])
    return rows - np.maximum.accumulate(np.where(starts, rows, 0))


def random_bits(
    pairs: Pairs, seed: int, weight: Float[np.ndarray, " n"] | None = None
) -> UInt[np.ndarray, " n"]:
    """A uint32 per pair, from its identity and the seed alone.

    The pairs of a group with the smallest values are a sample without replacement: uniform, or
    with chances in proportion to `weight` (exponential variates, Efraimidis and Spirakis 2006).
    """
    mixed = (pairs.document.astype(np.uint64) << np.uint64(32)) | pairs.position.astype(np.uint64)
    mixed = _mix(mixed + _mix(pairs.prototype.astype(np.uint64) + np.uint64(seed + 1)))
    if weight is None:
        return (mixed >> np.uint64(32)).astype(np.uint32)
    uniform = ((mixed >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    exponential = -np.log(uniform) / np.maximum(weight.astype(np.float64), 1e-9)
    return exponential.astype(np.float32).view(np.uint32)


def _mix(values: UInt[np.ndarray, " n"]) -> UInt[np.ndarray, " n"]:
    """SplitMix64's finaliser."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


COARSE_CELLS = 2**22
"""Cells of the histogram by which most pairs are dropped before sorting."""


class SmallestPerGroup:
    """Keeps the `n` pairs with the smallest values of each group; ties go to the earlier pair."""

    def __init__(self, n_groups: int, n: int) -> None:
        self.n = n
        self.limit = np.full(n_groups, np.iinfo(np.uint32).max, np.uint32)
        self.pairs = Pairs.empty()
        self.group = np.zeros(0, np.int64)
        self.value = np.zeros(0, np.uint32)

    def update(
        self, group: Int[np.ndarray, " n"], value: UInt[np.ndarray, " n"], pairs: Pairs
    ) -> None:
        """Offer pairs that stand after all earlier ones."""
        near = value <= self.limit[group]
        near[near] = self._may_enter(group[near], value[near])
        groups = np.concatenate([self.group, group[near]])
        values = np.concatenate([self.value, value[near]])
        both = self.pairs.followed_by(pairs.take(near))
        order = np.argsort((groups.astype(np.uint64) << np.uint64(32)) | values, kind="stable")
        order = order[rank_within(groups[order]) < self.n]
        self.group, self.value, self.pairs = groups[order], values[order], both.take(order)
        full = rank_within(self.group) == self.n - 1
        self.limit[self.group[full]] = self.value[full]

    def _may_enter(
        self, group: Int[np.ndarray, " m"], value: UInt[np.ndarray, " m"]
    ) -> Bool[np.ndarray, " m"]:
        """Pairs whose leading bits are among the `n` smallest of their group: cheap, and exact.

        Nothing that the sort after it would keep is dropped; it sorts a few rows instead of all.
        """
        n_groups = len(self.limit)
        bits = int(np.clip(np.log2(COARSE_CELLS / n_groups), 4, 12))
        leading = (value >> np.uint32(32 - bits)).astype(np.int64)
        counts = np.bincount((group << bits) | leading, minlength=n_groups << bits)
        before = np.cumsum(counts.reshape(n_groups, -1), axis=1).ravel() - counts
        return before[(group << bits) | leading] < self.n


class TopPairs:
    """Keeps the `n` strongest pairs of each prototype, at most two a document where that fills it.

    Pairs that were `late` (the model saw almost nothing before them) and third and further pairs
    of a document come after all others.
    """

    def __init__(self, n: int) -> None:
        self.n = n
        self.pairs = Pairs.empty()
        self.late = np.zeros(0, bool)

    def update(self, pairs: Pairs, late: Bool[np.ndarray, " n"]) -> None:
        """Offer pairs that stand after all earlier ones."""
        both = self.pairs.followed_by(pairs)
        flags = np.concatenate([self.late, late])
        order = strongest_first(both)
        place = rank_within(both.prototype[order])
        reach = 4 * self.n
        near = order[place < reach]
        rows, preferred = self._select(both.take(near), flags[near])
        short = np.setdiff1d(np.unique(both.prototype[order[place >= reach]]), preferred)
        if len(short):
            near = order[(place < reach) | np.isin(both.prototype[order], short)]
            rows, _ = self._select(both.take(near), flags[near])
        chosen = near[rows]
        self.pairs, self.late = both.take(chosen), flags[chosen]

    def _select(
        self, pairs: Pairs, late: Bool[np.ndarray, " n"]
    ) -> tuple[Int[np.ndarray, " kept"], Int[np.ndarray, " prototypes"]]:
        """Rows kept, from rows sorted strongest first, and prototypes filled by preferred rows."""
        strength = np.arange(len(pairs))
        by_document = np.lexsort((strength, pairs.document, late, pairs.prototype))
        same = (pairs.prototype[by_document].astype(np.int64) * 2 + late[by_document]) << 32
        crowded = np.zeros(len(pairs), bool)
        crowded[by_document] = rank_within(same | pairs.document[by_document]) >= PER_DOCUMENT
        last = late | crowded
        order = np.lexsort((strength, last, pairs.prototype))
        order = order[rank_within(pairs.prototype[order]) < self.n]
        filled = np.bincount(pairs.prototype[order], weights=~last[order])
        return order, np.flatnonzero(filled >= self.n)


def strongest_first(pairs: Pairs) -> Int[np.ndarray, " n"]:
    """Order by prototype, then falling activation, then document and position as given."""
    order = np.argsort(falling_bits(pairs.activation), kind="stable")
    prototype = pairs.prototype[order]
    small = len(prototype) == 0 or prototype.max() < 2**16
    return order[np.argsort(prototype.astype(np.uint16) if small else prototype, kind="stable")]


@dataclass(frozen=True)
class Examples:
    """Chosen examples, sorted by prototype, band and rank, each with its window."""

    band: Int[np.ndarray, " n"]
    """0: top; 1..: quantile bands, from high to low."""
    rank: Int[np.ndarray, " n"]
    pairs: Pairs
    start: Int[np.ndarray, " n"]
    """Position of the window's first token."""
    stop: Int[np.ndarray, " n"]
    """Position after its last token."""


def gather_examples(
    top: Pairs, banded: Pairs, banded_group: Int[np.ndarray, " n"], n_bands: int
) -> tuple[Int[np.ndarray, " all"], Int[np.ndarray, " all"], Pairs]:
    """Band, rank and pair of all examples; within a band by falling activation."""
    pairs = top.followed_by(banded)
    band = np.concatenate([np.zeros(len(top), np.int64), 1 + banded_group % n_bands])
    order = np.lexsort(
        (pairs.position, pairs.document, falling_bits(pairs.activation), band, pairs.prototype)
    )
    # Top examples keep the order they were chosen in: crowded documents come last.
    place = np.concatenate([np.arange(len(top)), np.zeros(len(banded), np.int64)])
    order = order[np.lexsort((place[order], band[order], pairs.prototype[order]))]
    pairs, band = pairs.take(order), band[order]
    rank = rank_within(pairs.prototype.astype(np.int64) * (n_bands + 1) + band)
    return band, rank, pairs
