"""Which questions, and which models, are left out together."""

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence

import numpy as np
from jaxtyping import Int

from engine.config import require


_WORDING = re.compile(r"(?P<fact>.+/.+/.+)/\d+")


def fact_of(key: str) -> str:
    """Name of the fact that a question is about; of another question its own name.

    Keys of a zoo's questions end in the number of the wording: `domain/relation/entity/0`.
    """
    found = _WORDING.fullmatch(key)
    return found["fact"] if found else key


def codes(labels: Sequence[Hashable]) -> Int[np.ndarray, " items"]:
    """Labels as numbers from 0, in order of appearance."""
    known = {label: number for number, label in enumerate(dict.fromkeys(labels))}
    return np.array([known[label] for label in labels], dtype=np.int64)


def grouped_folds(
    groups: Sequence[Hashable], n_folds: int, seed: int = 0
) -> Int[np.ndarray, " items"]:
    """Fold of every item: items of one group share it, and folds are as even as that allows.

    Groups are shuffled, then each goes, the largest first, into the fold with fewest items.

    Raises:
        ConfigError: There are fewer groups than folds, or fewer than two folds.
    """
    group = codes(groups)
    sizes = np.bincount(group)
    require(
        2 <= n_folds <= len(sizes),
        f"{len(sizes)} groups cannot be divided into {n_folds} folds; use 2 folds or more, and as "
        "many groups at least.",
    )
    shuffled = np.random.default_rng(seed).permutation(len(sizes))
    order = shuffled[np.argsort(-sizes[shuffled], kind="stable")]
    filled = np.zeros(n_folds, dtype=np.int64)
    fold = np.zeros(len(sizes), dtype=np.int64)
    for number in order:
        fold[number] = filled.argmin()
        filled[fold[number]] += sizes[number]
    return fold[group]


def connected(
    names: Sequence[str], links: Mapping[str, Iterable[str]]
) -> Int[np.ndarray, " names"]:
    """Number of each name's connected component; links to names that are not listed count too.

    Args:
        names: Items.
        links: Per item what it is linked to.
    """
    above: dict[str, str] = {}

    def top(name: str) -> str:
        while above.get(name, name) != name:
            name = above[name]
        return name

    for name, others in links.items():
        for other in others:
            above[top(name)] = top(other)
    return codes([top(name) for name in names])
