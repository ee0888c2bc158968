"""Build a zoo: every model of a plan after its parents, in one process or several, resumable."""

import logging
import multiprocessing
import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from engine.config import MAX_SEED, require
from engine.corpus.documents import Progress, no_progress
from engine.errors import EngineError
from engine.pipeline.models_zoo_folder import ZooFolder
from engine.pipeline.models_zoo_tables import MANIFEST, write_plan, write_tables
from engine.store import remove_leftovers
from engine.zoo.architectures import SIZES
from engine.zoo.manifest import ModelSpec, Plan
from engine.zoo.planning import make_plan, make_slice
from engine.zoo.schedules import Schedules
from engine.zoo.worlds import World


logger = logging.getLogger(__name__)
_SECONDS_BETWEEN_TABLES = 60.0
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS")
_SLOW = {"mamba": 6.0, "gemma2": 1.4, "gemma3_text": 1.2}
_QUESTIONS_COST = 25
"""Cost of making, asking and keeping a model, in steps of the narrowest size."""


def open_zoo(
    path: Path,
    *,
    only_slice: bool = False,
    plan: Plan | None = None,
    schedules: Schedules | None = None,
    seed: int = 0,
    n_questions: int | None = None,
) -> ZooFolder:
    """A zoo in a folder; nothing is built yet.

    Args:
        path: the folder.
        only_slice: the 24 models of the slice in place of all 239.
        plan: another plan.
        schedules: other training.
        seed: seed of world and plan.
        n_questions: questions every model is asked, at most.

    Raises:
        ConfigError: the seed is none, or the folder holds something else.
    """
    require(
        0 <= seed <= MAX_SEED, f"--seed is {seed}; it must be 0 or more, and {MAX_SEED} at most."
    )
    _refuse_others_folder(path)
    full = plan or make_plan(seed)
    chosen = make_slice(full) if only_slice else full
    return ZooFolder(path, chosen, World(seed, n_questions), schedules or Schedules())


def _refuse_others_folder(path: Path) -> None:
    """A zoo goes into a folder of its own."""
    if not path.exists() or (path.is_dir() and (path / MANIFEST).is_file()):
        return
    require(path.is_dir(), f"{path} is a file; name a folder with --to.")
    require(
        not any(path.iterdir()),
        f"{path} holds other things than a zoo; name an empty folder with --to.",
    )


def build_zoo(
    zoo: ZooFolder, *, jobs: int = 1, progress: Progress = no_progress
) -> list[dict[str, Any]]:
    """Build what is missing; a build that was killed goes on and ends with the same files.

    Args:
        zoo: the zoo.
        jobs: processes, each with one thread.
        progress: wraps the cost of the models, in steps of the narrowest size.

    Returns:
        The cards of all models, in the order of the plan.

    Raises:
        EngineError: a model cannot be made; what was finished stays.
    """
    require(jobs >= 1, f"jobs is {jobs}; it must be 1 or more.")
    zoo.path.mkdir(parents=True, exist_ok=True)
    remove_leftovers(zoo.path)
    write_plan(zoo)
    for kind in sorted({spec.tokenizer for spec in zoo.plan.models}):
        zoo.tokenizer(kind)  # made once, here, so that processes only read it
    missing = [spec for spec in zoo.plan.models if not zoo.is_done(spec)]
    logger.info("The zoo lacks %d of its %d models.", len(missing), len(zoo.plan.models))
    total = sum(cost(zoo, spec) for spec in missing)
    for _ in progress(_costs(zoo, missing, jobs), label="Building the zoo", total=total):
        pass
    return write_tables(zoo)


def cost(zoo: ZooFolder, spec: ModelSpec) -> int:
    """Estimated work of a model, in steps of the narrowest size."""
    shape, least = SIZES[spec.size], SIZES["XS"]
    width = (shape.d_model / least.d_model) ** 1.3 * shape.n_layers / least.n_layers
    steps = zoo.schedules.steps(spec) * _SLOW.get(spec.architecture, 1.0)
    return max(1, round(steps * width)) + _QUESTIONS_COST


def _costs(zoo: ZooFolder, missing: list[ModelSpec], jobs: int) -> Iterator[int]:
    """Build models; as each ends, yields once for each unit of its cost."""
    written = time.monotonic()
    for spec, card in _built(zoo, missing, jobs):
        logger.info(
            "%s: %s, accuracy %.2f, %.0f s",
            spec.id, spec.derivation, card["accuracy"]["all"], card["seconds"],
        )  # fmt: skip
        if time.monotonic() - written > _SECONDS_BETWEEN_TABLES:
            write_tables(zoo)
            written = time.monotonic()
        yield from range(cost(zoo, spec))


def _built(
    zoo: ZooFolder, missing: list[ModelSpec], jobs: int
) -> Iterator[tuple[ModelSpec, dict[str, Any]]]:
    """Models with their cards, as they end; each starts when its parents are there."""
    if jobs == 1:
        for spec in missing:
            yield spec, _timed(zoo, spec)
        return
    waiting = list(missing)
    unfinished = {spec.id for spec in missing}
    running: dict[Future[dict[str, Any]], ModelSpec] = {}
    with _processes(zoo, jobs) as pool:
        while waiting or running:
            ready = [s for s in waiting if not unfinished & {*s.parents, *s.roots} - {s.id}]
            for spec in ready[: jobs + 1 - len(running)]:
                running[pool.submit(_job, spec.id)] = spec
                waiting.remove(spec)
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                spec = running.pop(future)
                card = future.result()
                unfinished.discard(spec.id)
                yield spec, card


def _timed(zoo: ZooFolder, spec: ModelSpec) -> dict[str, Any]:
    """Build a model; a failure names it."""
    start = time.monotonic()
    try:
        card = zoo.build(spec)
    except EngineError as error:
        raise type(error)(f"The model {spec.id} could not be made. {error}") from error
    return {**card, "seconds": time.monotonic() - start}


@contextmanager
def _processes(zoo: ZooFolder, jobs: int) -> Iterator[ProcessPoolExecutor]:
    """Processes of one thread each; they end with this one, however it ends."""
    before = {name: os.environ.get(name) for name in (*_THREADS, "TOKENIZERS_PARALLELISM")}
    os.environ.update(dict.fromkeys(_THREADS, "1"), TOKENIZERS_PARALLELISM="false")
    pool = ProcessPoolExecutor(
        jobs, multiprocessing.get_context("spawn"), initializer=_start, initargs=(zoo,)
    )
    try:
        yield pool
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


_zoo: ZooFolder | None = None
"""The zoo that this process works on, where it is one of several."""


def _start(zoo: ZooFolder) -> None:
    global _zoo
    _zoo = zoo
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """Leave when the process that gave out the work is gone; half-written folders have no name."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _job(name: str) -> dict[str, Any]:
    assert _zoo is not None
    return _timed(_zoo, _zoo.plan.by_id[name])


def zoo_path(folder: str) -> Path:
    """Folder of a zoo as typed."""
    require(bool(folder.strip()), "--to is empty; name a folder.")
    return Path(folder).expanduser()
