"""Attribution against its peers: a fixed model, sequences of 128 tokens, pools of several sizes."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from threadpoolctl import threadpool_limits

from engine.config import cache_root
from engine.errors import ConfigError, UnsupportedModel
from engine.influence.decoder import block_linears
from engine.influence.ekfac import Ekfac, EkfacSettings, weights_fingerprint
from engine.influence.frame import Sequences, count_windows, draw_sequences
from engine.pipeline.attribution_agreement import with_targets
from engine.pipeline.coverage import state_source
from engine.pipeline.measurements import record_measurement
from engine.prism.model import PrismForCausalLM
from engine.provenance import fingerprint
from engine.store import open_run
from scripts.bench import attribution_parts as parts


LENGTH = 128
SEED = 0


@dataclass(frozen=True)
class AttributionBench:
    """What is run."""

    run: str
    pools: str
    """Sizes of pools, comma-separated; `all` is every window of the training texts."""
    slow_pools: str
    """Sizes at which EK-FAC and the exact gradient are run; EK-FAC is extrapolated beyond them."""
    kinds: tuple[str, ...]
    """Of cached, projected, ekfac and full."""


def measure_attribution(bench: AttributionBench) -> None:
    """Run the parts that are not done yet, one thread each, and keep the record `attribution`."""
    torch.set_num_threads(1)
    with threadpool_limits(limits=1):
        rows, setting = _run(bench)
    record_measurement("attribution", setting, rows)
    for row in rows:
        print(_line(row), flush=True)


def _run(bench: AttributionBench) -> tuple[list[parts.Row], dict[str, Any]]:
    source = state_source(open_run(bench.run))
    model = source.model
    if not isinstance(model, PrismForCausalLM):
        raise UnsupportedModel(f"Run {bench.run} has no bank; name one that has.")
    every = count_windows(source.shards, LENGTH, "train")
    sizes, slow = _sizes(bench.pools, every), _sizes(bench.slow_pools, every)
    draw = partial(draw_sequences, source.shards, length=LENGTH, seed=SEED)
    windows = draw(max(parts.QUERY_COUNTS), split="validation")
    queries = {"token": with_targets(windows, 1), "window": windows}
    fit_on = draw(min(sizes), split="train")
    identity = [weights_fingerprint(model), source.shards.fingerprint, LENGTH, SEED, min(sizes)]
    folder = cache_root() / "bench" / f"attribution-{fingerprint(identity)}"
    runner = _Runner(model, queries, fit_on, folder, bench.kinds, frozenset(slow))
    rows: list[parts.Row] = []
    for size in sizes:
        rows += runner.rows(draw(size, split="train"), rows)
    setting = {
        "device": "cpu",
        "run": bench.run,
        "corpus": source.shards.corpus.name,
        "threads": 1,
        "length": LENGTH,
        "windows_in_all": every,
        "parameters": sum(p.numel() for p in model.backbone.parameters()),
        "prototypes": model.config.n_prototypes,
        "active": model.config.n_active,
        "seed": SEED,
        "top": parts.TOP,
        "target": "token: the last token of a held-out text; window: all its tokens",
        "search": "scores of the whole pool and its first 100; the file cache is warm",
        "clock": "cpu_s: CPU seconds of one thread; wall_s: wall seconds on a shared machine",
    }
    return rows, setting


@dataclass(frozen=True)
class _Runner:
    """What the pools share."""

    model: PrismForCausalLM
    queries: dict[str, Sequences]
    fit_on: Sequences
    folder: Path
    kinds: tuple[str, ...]
    slow: frozenset[int]

    def rows(self, pool: Sequences, earlier: list[parts.Row]) -> list[parts.Row]:
        """Rows of one pool; `earlier` holds those of smaller ones."""
        task = parts.Task(self.model, pool, self.queries, self.folder)
        rows: list[parts.Row] = []
        if "cached" in self.kinds:
            for bits in (8, 4):
                rows += self._part(
                    f"cached-{bits}", pool, partial(parts.measure_cached, task, bits)
                )
        if "projected" in self.kinds:
            dimensions = equal_bytes(rows, len(block_linears(self.model.backbone)))
            rows += self._part(
                "projected", pool, partial(parts.measure_projected, task, dimensions)
            )
        if "ekfac" in self.kinds:
            rows += self._ekfac(task, earlier)
        if "full" in self.kinds and len(pool) in self.slow:
            rows += self._part("full", pool, partial(parts.measure_full, task))
            rows += parts.measure_agreement(task, ["cached-8", "cached-4", "projected"])
        return rows

    def _ekfac(self, task: parts.Task, earlier: list[parts.Row]) -> list[parts.Row]:
        if len(task.pool) not in self.slow:
            return parts.extrapolate_ekfac(earlier, len(task.pool))
        ekfac = Ekfac(self.model, self.fit_on, EkfacSettings())
        rows: list[parts.Row] = []
        if len(task.pool) == len(self.fit_on):
            fit = partial(parts.measure_ekfac_fit, task, ekfac)
            rows += self._part("ekfac-factors", task.pool, fit)
        for target in self.queries:
            for n in parts.QUERY_COUNTS:
                run = partial(parts.measure_ekfac, task, ekfac, target, n)
                rows += self._part(f"ekfac-{target}-{n}", task.pool, run)
        return rows

    def _part(
        self, name: str, pool: Sequences, work: Callable[[], list[parts.Row]]
    ) -> list[parts.Row]:
        print(f"{name}, pool {len(pool)}", flush=True)
        return parts.once(self.folder / f"{name}-{len(pool)}.json", work)


def equal_bytes(rows: list[parts.Row], n_layers: int) -> int:
    """Dimensions at which a projected index keeps no fewer bytes than the cached one at 8 bits."""
    cached = [row["bytes_a_sequence"] for row in rows if row["method"] == "cached-8"]
    return math.ceil((max(cached, default=24_576.0) / 4 / n_layers) ** 0.5)


def _sizes(typed: str, every: int) -> list[int]:
    """Sizes of `3000,30000,all`, rising."""
    try:
        found = {every if part == "all" else int(part) for part in typed.split(",") if part}
    except ValueError as error:
        raise ConfigError(f"{typed!r} is no list of pool sizes; write 3000,30000,all.") from error
    if any(not parts.TOP <= size <= every for size in found):
        raise ConfigError(f"A pool of {typed} was asked for; {parts.TOP} to {every} can be drawn.")
    return sorted(found)


def _line(row: parts.Row) -> str:
    where = f"{row['method']:<14} pool {row['pool']:>6}  {row['target']:<6}"
    if "reference" in row:
        facts = f"with {row['reference']}: first 100 {row['overlap_100']:.3f}"
        return f"{where}  {facts}, rho {row['spearman']:.3f}"
    times = {key: value for key, value in row.items() if key.endswith("_cpu_s")}
    shown = "  ".join(f"{key.removesuffix('_cpu_s')} {value:.4g}" for key, value in times.items())
    note = " (extrapolated)" if "extrapolated_from" in row else ""
    queries = f"queries {row['queries']:>2}"
    return f"{where}  {queries}  CPU s: {shown}{note}"
