"""The agreement study: every attribution method on one pool and the same queries, side by side.

The pool is drawn from a corpus's training texts and the queries from its held-out texts, spread
over the domains. Every method scores every pair; what a method scored is kept beside the cache
until the study is done, so a stopped study goes on after the last method it finished.
"""

import logging
import shutil
import time
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from safetensors.numpy import load_file, save

from engine.config import cache_root, require
from engine.corpus.documents import Progress, no_progress
from engine.errors import UnsupportedModel
from engine.influence.agreement import mean_over_queries, rank_correlation, top_overlap
from engine.influence.decoder import last_states, tensors
from engine.influence.frame import Sequences, draw_sequences
from engine.pipeline.attribution_scorers import Scored, Scorers, check_method
from engine.pipeline.coverage import state_source
from engine.prism.coverage import Coverage, CoverageReport
from engine.prism.model import PrismForCausalLM
from engine.provenance import fingerprint
from engine.store import Run, RunWriter, atomic_file, open_run, read_table


logger = logging.getLogger(__name__)
STAGE = "attribution_agreement"
REFERENCES = ("full", "full+diagonal", "full+coupled", "ekfac")
"""Methods that the others are held against, where they were scored."""
METHODS = (
    *("path", "errors", "activations"),
    *("path+diagonal", "errors+diagonal", "path+coupled", "path+unit"),
    *("path@4", "path@32", "errors@32", "errors~8", "errors~16", "errors~32", "errors~64"),
    *("full", "full+diagonal", "full+coupled"),
    *("knn", "knn-last", "tfidf", "bm25", "gradient-dot", "gradient-cosine", "random"),
)
"""What is scored where nothing is named: all that needs no further package."""
PEERS = ("projected", "ekfac")
"""Methods of packages that `make bench-peers` installs."""
FEW = 10
"""First ones compared beside `top`."""
COVERAGE_SEQUENCES = 512
"""Sequences of the pool whose states the bank's coverage is measured on."""


@dataclass(frozen=True, kw_only=True)
class AgreementStudy:
    """Settings of a study."""

    pool: int = 3_000
    """Sequences of the pool."""
    queries: int = 40
    """Queries."""
    length: int = 128
    """Tokens of each, the separator included."""
    target_tokens: int | None = None
    """Last tokens of a query whose loss is summed; all of them if unset."""
    top: int = 100
    """First ones whose overlap is taken, beside the first ten."""
    methods: tuple[str, ...] = METHODS
    """Methods to score, by name."""
    seed: int = 0
    """Seed of pool and queries."""

    def __post_init__(self) -> None:
        for name in self.methods:
            check_method(name)
        require(self.length >= 2, f"length is {self.length}; it must be 2 or more.")
        require(self.queries >= 1, f"queries is {self.queries}; it must be 1 or more.")
        require(
            FEW <= self.top <= self.pool,
            f"top is {self.top}; it must lie between {FEW} and the pool's {self.pool} sequences.",
        )
        tokens = self.target_tokens
        require(
            tokens is None or 1 <= tokens < self.length,
            f"target_tokens is {tokens}; it must be 1 to {self.length - 1}.",
        )


def study_agreement(
    run_name: str | Path, study: AgreementStudy, progress: Progress = no_progress
) -> Run:
    """Write the tables `attribution_agreement` and `attribution_costs` of a run.

    Args:
        run_name: A run with a bank whose corpus is built.
        study: Settings.
        progress: Wraps the parts of each method's work.

    Raises:
        UnsupportedModel: The run has no bank.
        CorpusError: The corpus does not hold so many sequences.
        PackageMissing: A method needs a package that is not here.
    """
    started = time.perf_counter()
    run = open_run(run_name)
    writer = RunWriter.resume(run.path)
    identity = {"model": run.manifest["model"].get("fingerprint"), "study": asdict(study)}
    if writer.begin_stage(STAGE, identity):
        return run
    source = state_source(run, progress)
    model = source.model
    if not isinstance(model, PrismForCausalLM):
        raise UnsupportedModel(f"Run {run.name} is {run.kind}: it has no bank to attribute with.")
    draw = partial(draw_sequences, source.shards, length=study.length, seed=study.seed)
    pool = draw(study.pool, split="train")
    queries = with_targets(draw(study.queries, split="validation"), study.target_tokens)
    folder = cache_root() / "influence" / "agreement" / fingerprint(identity)
    scored = score_methods(Scorers(model, pool, queries, progress), study.methods, folder)
    writer.write_table("attribution_agreement", agreement_table(scored, queries, study.top))
    writer.write_table("attribution_costs", cost_table(scored, pool, queries))
    facts = {
        "seconds": time.perf_counter() - started,
        "study": asdict(study),
        "pool": pool.fingerprint,
        "queries": queries.fingerprint,
        "threads": torch.get_num_threads(),
        "coverage": pool_coverage(model, pool).as_dict(),
    }
    writer.finish_stage(STAGE, facts)
    shutil.rmtree(folder, ignore_errors=True)
    return open_run(run_name)


def with_targets(queries: Sequences, tokens: int | None) -> Sequences:
    """The queries with only their last tokens predicted; as they are where None."""
    if tokens is None:
        return queries
    place = np.arange(1, queries.tokens.shape[1])
    late = place >= queries.length[:, None] - tokens
    predicted = queries.predicted & late
    rest = (queries.domain, queries.document, queries.start, queries.length)
    return Sequences(queries.tokens, predicted, *rest)


def score_methods(scorers: Scorers, methods: tuple[str, ...], folder: Path) -> dict[str, Scored]:
    """Scores of each method, from the folder where they are there already."""
    for name in methods:
        group = scorers.group(name)
        if all(_kept(folder, member).is_file() for member in group):
            continue
        for member, scored in scorers.score(name).items():
            _keep(_kept(folder, member), scored)
        logger.info("%s: scored", name)
    return {name: _read(_kept(folder, name)) for name in methods}


def _kept(folder: Path, method: str) -> Path:
    return folder / f"{method}.safetensors"


def _keep(path: Path, scored: Scored) -> None:
    """Write scores and costs; what is unknown is NaN."""
    facts = [scored.seconds, scored.cpu_seconds, scored.bits, scored.bytes_a_sequence]
    numbers = np.array([np.nan if fact is None else fact for fact in facts], np.float64)
    with atomic_file(path) as file:
        file.write(save({"scores": scored.scores, "facts": numbers}))


def _read(path: Path) -> Scored:
    found = load_file(path)
    seconds, cpu_seconds, bits, size = found["facts"].tolist()
    return Scored(
        found["scores"],
        seconds,
        cpu_seconds,
        None if np.isnan(bits) else int(bits),
        None if np.isnan(size) else size,
    )


def agreement_table(scored: dict[str, Scored], queries: Sequences, top: int) -> pd.DataFrame:
    """Every method against every reference that was scored, by query."""
    frames = [
        pd.DataFrame(
            {
                "method": method,
                "reference": reference,
                "query": np.arange(len(queries), dtype=np.int32),
                "domain": queries.domain,
                "overlap_10": top_overlap(found.scores, scored[reference].scores, FEW),
                "overlap_top": top_overlap(found.scores, scored[reference].scores, top),
                "top": top,
                "spearman": rank_correlation(found.scores, scored[reference].scores),
            }
        )
        for method, found in scored.items()
        for reference in REFERENCES
        if reference in scored and reference != method
    ]
    require(
        bool(frames),
        f"None of {', '.join(scored)} can be held against another; name one of "
        f"{', '.join(REFERENCES)} and a method beside it.",
    )
    return pd.concat(frames, ignore_index=True)


def cost_table(scored: dict[str, Scored], pool: Sequences, queries: Sequences) -> pd.DataFrame:
    """What each method keeps and takes."""
    rows: list[dict[str, Any]] = [
        {
            "method": method,
            "bits": found.bits,
            "bytes_a_sequence": found.bytes_a_sequence,
            "seconds": found.seconds,
            "cpu_seconds": found.cpu_seconds,
            "pool": len(pool),
            "queries": len(queries),
            "pool_tokens": pool.n_predicted,
        }
        for method, found in scored.items()
    ]
    frame = pd.DataFrame(rows)
    return frame.astype({"bits": "Int32", "bytes_a_sequence": "float64"})


def agreement_summary(run: Run) -> list[dict[str, Any]]:
    """Means over queries of each method against each reference, best overlap first.

    `low` and `high` are the 95 % interval of `overlap_top`.
    """
    table = read_table(run, "attribution_agreement")
    rows: list[dict[str, Any]] = []
    for (method, reference), part in table.groupby(["method", "reference"], sort=False):
        overlap = mean_over_queries(part["overlap_top"].to_numpy(np.float64))
        rows.append(
            {
                "method": str(method),
                "reference": str(reference),
                "overlap_10": float(part["overlap_10"].mean()),
                "overlap_top": overlap.mean,
                "low": overlap.low,
                "high": overlap.high,
                "top": int(part["top"].iloc[0]),
                "spearman": float(part["spearman"].mean()),
                "queries": overlap.n,
            }
        )
    return sorted(rows, key=lambda row: (row["reference"], -row["overlap_top"]))


def pool_coverage(model: PrismForCausalLM, pool: Sequences) -> CoverageReport:
    """How the bank covers the pool's states, and whether these collapsed."""
    coverage = Coverage(model.prototypes, model.config.n_active)
    chosen = pool[np.linspace(0, len(pool) - 1, min(COVERAGE_SEQUENCES, len(pool))).astype(int)]
    for rows in chosen.batches(32):
        part = chosen[rows]
        states = last_states(model, tensors(part, model.device)[0])
        kept = torch.from_numpy(np.arange(part.tokens.shape[1]) < part.length[:, None])
        coverage.update(states[kept.to(states.device)])
    return coverage.report()
