"""What the attribution benchmark times, part by part: each gives rows of plain numbers.

A part that is done is kept in a folder with its rows and scores, so a stopped benchmark goes on.
Every time is given twice, CPU seconds of one thread and wall seconds, and apart for the query's own
pass, the preparation of its gradient, and the search.
"""

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from safetensors.numpy import load_file, save
from torch import Tensor

from engine.influence.agreement import mean_over_queries, rank_correlation, top_overlap
from engine.influence.ekfac import Ekfac
from engine.influence.frame import Sequences
from engine.influence.projected import BATCH, ProjectedIndex
from engine.influence.prototype_gradients import score_full
from engine.prism.attribution.gradient import BankGradient, query_gradients
from engine.prism.attribution.pool import TokenPool
from engine.prism.attribution.quantise import Bits
from engine.prism.attribution.scoring import make_pool
from engine.prism.attribution.search import Inverted, invert, score_pool
from engine.prism.attribution.statistics import row_statistics
from engine.prism.model import PrismForCausalLM
from engine.store import atomic_file, read_json, write_json_atomic
from scripts.bench.clock import cpu_seconds


QUERY_COUNTS = (1, 32)
TOP = 100
CLOCKS = ("cpu_s", "wall_s")
REPEATS = 5
"""Repetitions of a search; the median counts, after one that warms up."""
Row = dict[str, Any]
Result = TypeVar("Result")


@dataclass(frozen=True)
class Task:
    """One model, one pool, the queries and a folder."""

    model: PrismForCausalLM
    pool: Sequences
    queries: dict[str, Sequences]
    """The same texts by what is asked of them: `token`, their last token; `window`, all tokens."""
    folder: Path

    def scores(self, method: str, target: str) -> np.ndarray | None:
        """Scores that a part kept: [queries, pool]."""
        path = self._path(method, target)
        return load_file(path)["scores"] if path.is_file() else None

    def keep(self, method: str, target: str, scores: np.ndarray) -> None:
        """Keep the scores of a part."""
        with atomic_file(self._path(method, target)) as file:
            file.write(save({"scores": np.ascontiguousarray(scores, np.float32)}))

    def _path(self, method: str, target: str) -> Path:
        return self.folder / f"{method}-{target}-{len(self.pool)}.safetensors"

    def asked(self) -> Iterator[tuple[str, Sequences]]:
        """Every target with every number of queries."""
        for target, queries in self.queries.items():
            for n in QUERY_COUNTS:
                yield target, queries[:n]

    def row(self, method: str, target: str, n_queries: int, **figures: Any) -> Row:
        """A row of the record."""
        facts = {"method": method, "pool": len(self.pool), "target": target}
        return {**facts, "queries": n_queries, **figures}


def once(path: Path, work: Callable[[], list[Row]]) -> list[Row]:
    """Rows of a part: from its file, or made and kept."""
    if not path.is_file():
        write_json_atomic(path, work())
    return read_json(path)


def timed(name: str, work: Callable[[], Result], repeats: int = 1) -> tuple[Result, Row]:
    """A result and its median times, after one call that warms up where it is repeated."""
    result = work() if repeats > 1 else None
    walls, cpus = [], []
    for _ in range(repeats):
        wall, cpu = time.perf_counter(), cpu_seconds()
        result = work()
        walls.append(time.perf_counter() - wall)
        cpus.append(cpu_seconds() - cpu)
    seconds = {f"{name}_cpu_s": statistics.median(cpus), f"{name}_wall_s": statistics.median(walls)}
    return result, seconds  # pyright: ignore[reportReturnType]


def measure_cached(task: Task, bits: Bits) -> list[Row]:
    """The cached statistics: index, then every number of queries."""
    model = task.model
    (pool, _), index = timed("index", lambda: make_pool(model, task.pool, bits=bits))
    inverted, inversion = timed("invert", lambda: invert(pool.arrays, pool.n_prototypes))
    bank = model.prototypes.detach()
    size = pool.bytes_a_token * pool.n_tokens / pool.n_sequences
    own = {"bits": bits, "bytes_a_sequence": size, **index, **inversion}
    rows = []
    for target, queries in task.asked():
        n = len(queries)
        found, passed = timed("query_pass", partial(row_statistics, model, queries), REPEATS)
        gradients, prepared = timed(
            "preparation", partial(query_gradients, found, bank, "path", n), REPEATS
        )
        scores, searched = timed("search", partial(_search, pool, gradients, inverted), REPEATS)
        times = passed | prepared | searched
        rows.append(task.row(f"cached-{bits}", target, n, **own, **times))
        task.keep(f"cached-{bits}", target, scores)
    return rows


def _search(pool: TokenPool, gradients: list[BankGradient], inverted: Inverted) -> np.ndarray:
    """Scores of the whole pool, and their first ones."""
    scores = score_pool(pool, gradients, inverted=inverted).astype(np.float32)
    torch.from_numpy(scores).topk(TOP)
    return scores


def measure_projected(task: Task, dimensions: int) -> list[Row]:
    """Bergson's projected index: build, open, then every number of queries."""
    index = ProjectedIndex(task.model, task.pool, dimensions=dimensions, folder=task.folder)
    index.build()
    opened, opening = timed("open", index.open)
    built = {f"index_{clock}": seconds for clock, seconds in index.build_seconds().items()}
    own = {"dimensions": dimensions, "bytes_a_sequence": index.bytes_a_sequence, **built, **opening}
    none = {"preparation_cpu_s": 0.0, "preparation_wall_s": 0.0}
    rows = []
    for target, queries in task.asked():
        gradients, passed = timed("query_pass", partial(_projected, index, queries), REPEATS)
        _, searched = timed("search", partial(opened.top, gradients, TOP), REPEATS)
        task.keep("projected", target, opened.search(gradients))
        times = passed | none | searched
        rows.append(task.row("projected", target, len(queries), **own, **times))
    return rows


def _projected(index: ProjectedIndex, queries: Sequences) -> dict[str, Tensor]:
    """Projected gradients of all queries."""
    parts = [index.query_gradients(queries[rows]) for rows in queries.batches(BATCH)]
    return {name: torch.cat([part[name] for part in parts]) for name in parts[0]}


def measure_ekfac_fit(task: Task, ekfac: Ekfac) -> list[Row]:
    """Factors, fitted beforehand on the sequences that EK-FAC was made with."""
    steps = ekfac.fit()
    times = {f"fit_{step}_{clock}": s for step, own in steps.items() for clock, s in own.items()}
    damping = "0.1 times the mean eigenvalue of each layer"
    facts = {"fitted_on": len(ekfac.fit_on), "damping": damping}
    return [task.row("ekfac-factors", "", 0, **facts, **times)]


def measure_ekfac(task: Task, ekfac: Ekfac, target: str, n: int) -> list[Row]:
    """One batch of queries: against a single sequence (query and its solve), then all.

    What the library does for the query alone cannot be timed apart from inside; the pass over one
    sequence stands for it, and the search is the rest.
    """
    queries = task.queries[target][:n]
    score = partial(ekfac.score, queries=queries, keep=False)
    _, alone = timed("query", partial(score, task.pool[:1]))
    scores, whole = timed("whole", partial(score, task.pool))
    task.keep("ekfac", target, scores)
    searched = {
        f"search_{clock}": whole[f"whole_{clock}"] - alone[f"query_{clock}"] for clock in CLOCKS
    }
    return [task.row("ekfac", target, n, bytes_a_sequence=0.0, **alone, **whole, **searched)]


def extrapolate_ekfac(rows: list[Row], pool: int) -> list[Row]:
    """EK-FAC's times at a pool that was not run, in proportion to the largest that was."""
    run = [row for row in rows if row["method"] == "ekfac" and "search_cpu_s" in row]
    run = [row for row in run if "extrapolated_from" not in row]
    largest = max((row["pool"] for row in run), default=None)
    found = []
    for row in run:
        if row["pool"] != largest or row["pool"] >= pool:
            continue
        factor = pool / row["pool"]
        searched = {f"search_{clock}": factor * row[f"search_{clock}"] for clock in CLOCKS}
        whole = {
            f"whole_{clock}": row[f"query_{clock}"] + searched[f"search_{clock}"]
            for clock in CLOCKS
        }
        found.append({**row, **searched, **whole, "pool": pool, "extrapolated_from": largest})
    return found


def measure_full(task: Task) -> list[Row]:
    """The exact gradient of the bank: the reference of the agreement."""
    rows = []
    for target, queries in task.queries.items():
        scores, took = timed("whole", partial(score_full, task.model, task.pool, queries))
        task.keep("full", target, scores)
        rows.append(task.row("full", target, len(queries), bytes_a_sequence=0.0, **took))
    return rows


def measure_agreement(task: Task, methods: list[str]) -> list[Row]:
    """Overlap of the first 10 and 100 and rank correlation with `full` and `ekfac`."""
    rows = []
    for target in task.queries:
        known = {name: task.scores(name, target) for name in (*methods, "full", "ekfac")}
        for reference in ("full", "ekfac"):
            goal = known[reference]
            if goal is None or len(goal) < max(QUERY_COUNTS):
                continue
            rows += [
                _agreement(task, (method, target, reference), scores, goal)
                for method, scores in known.items()
                if method != reference and scores is not None and scores.shape == goal.shape
            ]
    return rows


def _agreement(
    task: Task, names: tuple[str, str, str], scores: np.ndarray, goal: np.ndarray
) -> Row:
    method, target, reference = names
    overlap = mean_over_queries(top_overlap(scores, goal, TOP))
    return task.row(
        method,
        target,
        len(scores),
        reference=reference,
        overlap_100=overlap.mean,
        overlap_100_interval=[overlap.low, overlap.high],
        overlap_10=float(top_overlap(scores, goal, 10).mean()),
        spearman=float(np.nanmean(rank_correlation(scores, goal))),
    )
