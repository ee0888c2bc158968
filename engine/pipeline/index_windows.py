"""Which stretches of which documents an index scans: a plan made once, from a seed."""

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Int, Shaped

from engine.errors import CorpusError


RUN_WINDOWS = 4
"""Consecutive windows taken from a long document before the domain's other documents get a turn."""

UNWANTED = "unwanted"
"""Domain whose training texts are scanned whole: they are few and a concept is chosen on them."""


@dataclass(frozen=True)
class WindowPlan:
    """Windows to scan, sorted by document and start; none reaches beyond its document."""

    documents: pd.DataFrame
    """Documents of the run as the `documents` table has them, numbered from 0."""
    corpus_document: Int[np.ndarray, " documents"]
    """Number of each of them in the corpus."""
    domains: tuple[str, ...]
    """Names of the domains by number."""
    document_domain: Int[np.ndarray, " documents"]
    """Number of each document's domain."""
    document: Int[np.ndarray, " windows"]
    """Document of each window, in the run's numbering."""
    start: Int[np.ndarray, " windows"]
    """Position of the window's first token."""
    length: Int[np.ndarray, " windows"]
    """Tokens in the window."""

    @property
    def n_tokens(self) -> int:
        """Tokens to scan."""
        return int(self.length.sum())

    def shards(self, shard_tokens: int) -> list[slice]:
        """Windows of each shard: runs that close once they hold `shard_tokens` tokens."""
        before = np.cumsum(self.length) - self.length
        number = before // shard_tokens
        edges = np.flatnonzero(np.diff(number, prepend=-1, append=number[-1] + 1))
        return [slice(int(a), int(b)) for a, b in itertools.pairwise(edges)]


def plan_windows(
    documents: pd.DataFrame,
    lengths: Int[np.ndarray, " documents"],
    *,
    max_tokens: int,
    context: int,
    seed: int,
) -> WindowPlan:
    """Choose windows of training documents, `max_tokens` at most, spread over the domains.

    Every domain gets an equal share of the tokens; what a small domain cannot use goes to the
    others. The unwanted domain is taken whole. Within a domain documents come in a seeded order,
    each with at most `RUN_WINDOWS` consecutive windows a turn, so that long documents do not
    crowd out the others.

    Args:
        documents: Documents of a corpus, as its table has them.
        lengths: Tokens of each.
        max_tokens: Tokens to scan at most.
        context: Tokens of a window, the separator in front of it included.
        seed: Seed of the order.

    Raises:
        CorpusError: The corpus has no training document with a token.
    """
    usable = np.flatnonzero((documents["split"] == "train").to_numpy() & (lengths > 0))
    if len(usable) == 0:
        raise CorpusError(
            "The corpus holds no training text to index; build it with more documents."
        )
    windows = _all_windows(usable, lengths[usable], context - 1)
    windows = _rows(windows, _order(windows, seed))
    names = documents["domain"].to_numpy()
    domains = tuple(dict.fromkeys(names))
    domain_number = pd.Index(domains).get_indexer(names)
    domain = domain_number[windows["document"]]
    windows = _rows(windows, _within_budget(domain, windows["length"], domains, max_tokens))
    windows = _rows(windows, np.lexsort((windows["start"], windows["document"])))
    corpus_document, document = np.unique(windows["document"], return_inverse=True)
    rows = documents.iloc[corpus_document].reset_index(drop=True)
    rows["document"] = np.arange(len(rows), dtype=np.int32)
    return WindowPlan(
        rows,
        corpus_document,
        domains,
        domain_number[corpus_document],
        document,
        windows["start"],
        windows["length"],
    )


def _rows(windows: dict[str, Any], rows: Shaped[np.ndarray, " n"]) -> dict[str, Any]:
    """Some of the windows, by index or mask."""
    return {name: values[rows] for name, values in windows.items()}


def _all_windows(
    documents: Int[np.ndarray, " n"], lengths: Int[np.ndarray, " n"], size: int
) -> dict[str, Any]:
    """Every window of the documents, in their order."""
    counts = -(-lengths // size)
    document = np.repeat(documents, counts)
    number = np.arange(len(document)) - np.repeat(np.cumsum(counts) - counts, counts)
    start = number * size
    return {
        "document": document,
        "start": start,
        "length": np.minimum(np.repeat(lengths, counts) - start, size),
        "number": number,
        "count": np.repeat(counts, counts),
    }


def _order(windows: dict[str, Any], seed: int) -> Int[np.ndarray, " windows"]:
    """Windows in the order they are taken: by turn, document (shuffled), place in the turn."""
    generator = np.random.default_rng(seed)
    documents, inverse = np.unique(windows["document"], return_inverse=True)
    shuffled = generator.permutation(len(documents))[inverse]
    origin = generator.random(len(documents))[inverse]
    first = (origin * np.maximum(windows["count"] - RUN_WINDOWS + 1, 1)).astype(np.int64)
    place = (windows["number"] - first) % windows["count"]
    return np.lexsort((place, shuffled, place // RUN_WINDOWS))


def _within_budget(
    domain: Int[np.ndarray, " n"],
    length: Int[np.ndarray, " n"],
    domains: tuple[str, ...],
    max_tokens: int,
) -> Shaped[np.ndarray, " n"]:
    """Windows that fit their domain's share, in the order given."""
    sizes = np.bincount(domain, weights=length, minlength=len(domains))
    budget = equal_shares(sizes, max_tokens, [i for i, d in enumerate(domains) if d == UNWANTED])
    kept = np.zeros(len(domain), bool)
    for number in range(len(domains)):
        rows = np.flatnonzero(domain == number)
        kept[rows] = np.cumsum(length[rows]) <= budget[number]
        if budget[number] > 0 and len(rows) and not kept[rows].any():
            kept[rows[0]] = True
    return kept


def equal_shares(
    sizes: Shaped[np.ndarray, " n"], total: float, first: list[int]
) -> Shaped[np.ndarray, " n"]:
    """Divide `total` equally; what exceeds a part's size goes to the others.

    Parts in `first` are served whole before the rest, to half of the total at most.
    """
    budget = np.zeros(len(sizes))
    for part in first:
        budget[part] = min(sizes[part], total / 2)
    left = total - budget.sum()
    open_parts = [i for i in np.argsort(sizes, kind="stable") if i not in first]
    for done, part in enumerate(open_parts):
        budget[part] = min(sizes[part], left / (len(open_parts) - done))
        left -= budget[part]
    return budget
