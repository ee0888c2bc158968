"""Retrainings one by one: which sequences, what came out, each kept as it ends."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float, Int

from engine.corpus.documents import Progress, no_progress
from engine.pipeline.retraining_fit import fit, sequence_losses
from engine.pipeline.retraining_pool import StudyData
from engine.pipeline.retraining_settings import RetrainConfig
from engine.store import read_json, write_json_atomic


_SUBSET_DRAW = 7_919
"""Keeps the draw of subsets apart from every other draw of the same seed."""


@dataclass(frozen=True)
class Retraining:
    """One training to be done."""

    name: str
    """subset-0007, or removal-ekfac-top and digits of its members; names its file."""
    members: Bool[np.ndarray, " pool"]
    """What it is trained on."""
    seed: int
    """Seed of its initialisation and order."""

    @property
    def file(self) -> str:
        """Name of the file that keeps its outcome."""
        return f"{self.name}-seed{self.seed}.json"


@dataclass(frozen=True)
class Outcome:
    """What one training gave."""

    name: str
    """Name of the retraining."""
    seed: int
    """Its seed."""
    removed: list[int]
    """Rows of the pool it was not trained on."""
    seconds: float
    """Wall time of training and asking."""
    losses: list[float]
    """Summed loss of every query, nats."""


def subset_members(config: RetrainConfig, n_pool: int, subset: int) -> Bool[np.ndarray, " pool"]:
    """Members of subset number `subset`; it depends on nothing but seed, pool size and share.

    Args:
        config: Seed and share.
        n_pool: Sequences in the pool.
        subset: Counted from 0; more subsets leave those before them as they were.
    """
    order = np.random.default_rng((config.seed, _SUBSET_DRAW, subset)).permutation(n_pool)
    inside = np.zeros(n_pool, bool)
    inside[order[: int(n_pool * config.subset_share)]] = True
    return inside


def subset_name(subset: int) -> str:
    """Name of the retrainings of a subset."""
    return f"subset-{subset:04d}"


def planned_retrainings(config: RetrainConfig, n_pool: int) -> list[Retraining]:
    """Every subset with every seed, subset by subset, so that what is done can be used at once."""
    return [
        Retraining(subset_name(s), subset_members(config, n_pool, s), config.seed + training)
        for s in range(config.subsets)
        for training in range(config.seeds)
    ]


class OutcomeFolder:
    """Outcomes of finished retrainings, a file each."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def has(self, job: Retraining) -> bool:
        """Whether it was done before."""
        return (self.path / job.file).is_file()

    def read(self, job: Retraining) -> Outcome:
        """Its outcome."""
        return Outcome(**read_json(self.path / job.file))

    def write(self, job: Retraining, seconds: float, losses: Iterable[float]) -> None:
        """Keep its outcome, in one step."""
        removed = [int(row) for row in np.flatnonzero(~job.members)]
        outcome = Outcome(job.name, job.seed, removed, seconds, [float(x) for x in losses])
        write_json_atomic(self.path / job.file, asdict(outcome))


def retrain(
    jobs: Sequence[Retraining],
    data: StudyData,
    config: RetrainConfig,
    folder: OutcomeFolder,
    *,
    separator: int,
    progress: Progress = no_progress,
) -> None:
    """Do the trainings that are not done yet, in order.

    Args:
        jobs: Trainings.
        data: Pool and queries.
        config: Settings of each.
        folder: Where outcomes are kept; a study that was killed goes on from there.
        separator: Token id that ends a document.
        progress: Wraps the trainings.
    """
    left = [job for job in jobs if not folder.has(job)]
    for job in progress(left, label="Retraining", total=len(left)):
        started = time.perf_counter()
        model = fit(data.pool.tokens, job.members, config, job.seed, separator=separator)
        losses = sequence_losses(model, data.queries)
        folder.write(job, time.perf_counter() - started, losses)


@dataclass(frozen=True)
class SubsetOutcomes:
    """Outcomes of every subset that all seeds have finished."""

    subsets: Int[np.ndarray, " subsets"]
    """Their numbers."""
    members: Bool[np.ndarray, "subsets pool"]
    """What each was trained on."""
    losses: Float[np.ndarray, "seeds subsets queries"]
    """Summed loss of each query, nats."""
    seconds: Float[np.ndarray, "seeds subsets"]
    """Wall time of each training."""


def finished_outcomes(config: RetrainConfig, n_pool: int, folder: OutcomeFolder) -> SubsetOutcomes:
    """The subsets that have been retrained with every seed."""
    jobs = planned_retrainings(config, n_pool)
    rows = [jobs[i : i + config.seeds] for i in range(0, len(jobs), config.seeds)]
    done = [s for s, row in enumerate(rows) if all(folder.has(job) for job in row)]
    outcomes = [[folder.read(job) for job in rows[s]] for s in done]
    n_queries = len(outcomes[0][0].losses) if outcomes else 0
    losses = np.empty((config.seeds, len(done), n_queries))
    seconds = np.empty((config.seeds, len(done)))
    for place, row in enumerate(outcomes):
        losses[:, place] = [outcome.losses for outcome in row]
        seconds[:, place] = [outcome.seconds for outcome in row]
    members = [rows[s][0].members for s in done]
    return SubsetOutcomes(
        subsets=np.array(done, np.int64),
        members=np.array(members, bool).reshape(len(done), n_pool),
        losses=losses,
        seconds=seconds,
    )
