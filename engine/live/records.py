"""What the live engine reads of a run's tables and corpus: labels, concepts, rates, texts."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from engine.corpus.build import Corpus, open_corpus
from engine.corpus.presets import UNWANTED
from engine.errors import CacheMissing, CorpusError, PromptError
from engine.store import Run, read_table


NEAREST = 8
"""Prototypes of the closest firing rates among which a control is drawn."""


def label(category: str, role: str) -> str:
    """A prototype's two-level label in one string."""
    return " · ".join(part for part in (category, role) if part)


def read_labels(run: Run | None) -> dict[int, str]:
    """Label by prototype; empty where the run is not indexed."""
    if run is None or not run.has("prototypes"):
        return {}
    frame = read_table(run, "prototypes", columns=["prototype", "category", "role"])
    rows = zip(frame["prototype"], frame["category"], frame["role"], strict=True)
    return {int(prototype): label(category, role) for prototype, category, role in rows}


def matched_random(rates: pd.DataFrame, prototypes: Sequence[int], seed: int) -> tuple[int, ...]:
    """Draw as many other prototypes whose firing rates resemble those of a set.

    Each member, in random order, gets one of the `NEAREST` unused outsiders closest in log firing
    rate.

    Args:
        rates: prototype, firing_rate.
        prototypes: the set to match.
        seed: of the draw.

    Raises:
        PromptError: the set is more than half of the bank.
    """
    ids = rates["prototype"].to_numpy(dtype=np.int64)
    rate = rates["firing_rate"].to_numpy(dtype=np.float64)
    smallest = rate[rate > 0].min() if (rate > 0).any() else 1.0
    logs = dict(zip(ids.tolist(), np.log(rate + smallest / 2).tolist(), strict=True))
    wanted = sorted(set(prototypes))
    outside = np.array(sorted(set(logs) - set(wanted)), dtype=np.int64)
    if len(outside) < len(wanted):
        raise PromptError(
            f"{len(wanted)} of {len(logs)} prototypes are chosen, so there are not as many others "
            "to compare with; choose at most half."
        )
    generator = np.random.default_rng(seed)
    free = np.array([logs[int(i)] for i in outside])
    chosen = []
    for member in generator.permutation(wanted):
        near = np.argsort(np.abs(free - logs[int(member)]), kind="stable")[:NEAREST]
        near = near[np.isfinite(free[near])]
        pick = int(generator.choice(near))
        chosen.append(int(outside[pick]))
        free[pick] = np.inf
    return tuple(sorted(chosen))


def named_concept(known: dict[str, tuple[int, ...]], name: str, run: str) -> tuple[int, ...]:
    """Prototypes of one of the concepts a run has.

    Raises:
        PromptError: it has none of that name; the sentence lists them.
    """
    if name not in known:
        has = f"it has {', '.join(sorted(known))}" if known else "it has none"
        raise PromptError(
            f"{run} has no concept {name!r}; {has}. Concepts are made by "
            f"`headwater index --run {run}`, or name prototypes with --suppress."
        )
    return known[name]


def run_corpus(run: Run | None, name: str) -> Corpus:
    """The corpus a run was made from.

    Raises:
        CorpusError: it is not built here, or the model came without one.
    """
    corpus: dict[str, Any] = {} if run is None else run.manifest.get("corpus", {})
    if not corpus.get("name"):
        raise CorpusError(
            f"{name} names no corpus to take held-out texts from; pass your own texts."
        )
    return open_corpus(corpus["name"])


def benign_documents(corpus: Corpus, n: int, seed: int) -> list[int]:
    """Held-out documents outside the unwanted domain, taken from its domains in turn."""
    frame = corpus.documents
    held_out = frame[(frame["split"] == "validation") & (frame["domain"] != UNWANTED)]
    generator = np.random.default_rng(seed)
    queues = [
        generator.permutation(ids.to_numpy()).tolist()
        for _, ids in held_out.groupby("domain")["document"]
    ]
    if not queues:
        raise CorpusError(
            f"The corpus {corpus.name} holds no held-out benign text; build a larger one."
        )
    chosen: list[int] = []
    depth = 0
    while len(chosen) < n and any(len(queue) > depth for queue in queues):
        chosen += [int(queue[depth]) for queue in queues if len(queue) > depth]
        depth += 1
    return chosen[:n]


def firing_rates(run: Run | None, name: str) -> pd.DataFrame:
    """Firing rate by prototype of an indexed run."""
    if run is None or not run.has("prototypes"):
        raise CacheMissing(
            f"{name} has no table of prototypes, so no control can be matched; "
            f"run `headwater index --run {name}`."
        )
    return read_table(run, "prototypes", columns=["prototype", "firing_rate"])
