"""The one seam through which work fans out over shards and models.

A job is a plain function of one item that writes its own result and returns something small, so it
may run anywhere that sees the same folders. By default jobs run in this process, one after the
other; `Processes` runs them in several, and `RayCluster` on the machines of a Ray cluster.
"""

import multiprocessing
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol, TypeVar, runtime_checkable

from engine.errors import ConfigError


Item = TypeVar("Item")
Result = TypeVar("Result")
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS")
_LOCAL = "local"


@runtime_checkable
class Fan(Protocol):
    """Runs a job on items, and yields the place of each item with its result, as they end."""

    def __call__(
        self, function: Callable[[Item], Result], items: Iterable[Item]
    ) -> Iterator[tuple[int, Result]]:
        """Take items only as places for them come free, so that progress of items is progress."""
        ...


def map_jobs(
    function: Callable[[Item], Result],
    items: Iterable[Item],
    *,
    done: Callable[[Item], bool] | None = None,
    fan: Fan | None = None,
) -> list[Result]:
    """Run `function` on every item that is not done yet.

    Args:
        function: The job; it must not depend on the order of the items.
        items: What to run it on.
        done: Says whether an item was finished by an earlier, interrupted call; such an item is
            skipped and has no result here.
        fan: Where jobs run; in this process, one after the other, unless given.

    Returns:
        Results in the order of the items that ran.
    """
    todo = (item for item in items if done is None or not done(item))
    found = dict((fan or in_order)(function, todo))
    return [found[place] for place in sorted(found)]


def in_order(
    function: Callable[[Item], Result], items: Iterable[Item]
) -> Iterator[tuple[int, Result]]:
    """Run jobs here, one after the other."""
    for place, item in enumerate(items):
        yield place, function(item)


@dataclass(frozen=True)
class Processes:
    """Several processes of this machine, each with one thread; they end with this one."""

    workers: int
    """Processes."""

    def __call__(
        self, function: Callable[[Item], Result], items: Iterable[Item]
    ) -> Iterator[tuple[int, Result]]:
        """Run jobs; the first that fails ends the call with its error."""
        with _pool(self.workers) as pool:
            running: dict[Future[Result], int] = {}
            for place, item in enumerate(items):
                running[pool.submit(function, item)] = place
                if len(running) >= self.workers:
                    yield from _ended(running)
            while running:
                yield from _ended(running)


@dataclass(frozen=True)
class RayCluster:
    """The machines of a Ray cluster, which see the same folders; an extra.

    A job takes one processor, and one GPU where jobs compute on GPUs, which Ray gives it alone.
    """

    address: str = _LOCAL
    """auto: the cluster that this machine belongs to; local: a cluster of this machine alone, gone
    with this process; or HOST:PORT of the head."""
    gpus: int = 0
    """GPUs of a job."""

    def __call__(
        self, function: Callable[[Item], Result], items: Iterable[Item]
    ) -> Iterator[tuple[int, Result]]:
        """Run jobs; the first that fails ends the call with its error, and stops the others."""
        ray = _ray(self.address)
        try:
            remote = ray.remote(num_cpus=1, num_gpus=self.gpus, max_retries=1)(_apply)
            shared = ray.put(function)
            resources = ray.cluster_resources()
            slots = resources.get("GPU", 0) // self.gpus if self.gpus else resources.get("CPU", 1)
            running: dict[Any, int] = {}
            for place, item in enumerate(items):
                running[remote.remote(shared, item)] = place
                if len(running) >= max(1, int(slots)):
                    yield from _ray_ended(ray, running)
            while running:
                yield from _ray_ended(ray, running)
        finally:
            ray.shutdown()


def fan_of(workers: int, ray: str | None, gpus: int = 0) -> Fan | None:
    """Where jobs run, as typed: None for this process.

    Raises:
        ConfigError: There is no process to work, both ways are asked for, or Ray is not installed.
    """
    if workers < 1:
        raise ConfigError(f"--workers is {workers}; it must be 1 or more.")
    if ray is not None:
        if workers > 1:
            raise ConfigError("--workers and --ray exclude each other; Ray counts its own.")
        _import_ray()
        return RayCluster(ray, gpus)
    return Processes(workers) if workers > 1 else None


def _apply(function: Callable[[Any], Any], item: Any) -> Any:
    return function(item)


def _ended(running: dict[Future[Result], int]) -> Iterator[tuple[int, Result]]:
    """Take out the jobs that ended, at least one."""
    for future in wait(running, return_when=FIRST_COMPLETED).done:
        yield running.pop(future), future.result()


def _ray_ended(ray: Any, running: dict[Any, int]) -> Iterator[tuple[int, Any]]:
    """Take out the jobs that ended, at least one; an error comes as the job raised it."""
    ended, _ = ray.wait(list(running), num_returns=1)
    for reference in ended:
        try:
            result = ray.get(reference)
        except ray.exceptions.RayTaskError as error:
            raise error.cause from error
        yield running.pop(reference), result


def _ray(address: str) -> Any:
    """Ray, connected.

    Raises:
        ConfigError: It is not installed, or there is no such cluster.
    """
    ray = _import_ray()
    where = None if address == _LOCAL else address
    try:
        ray.init(
            address=where, include_dashboard=False if where is None else None,
            log_to_driver=False, configure_logging=False,
        )  # fmt: skip
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise ConfigError(
            f"No Ray cluster answers at {address!r} ({str(error).splitlines()[0]}); start one with "
            "`ray start --head`, or use --ray local."
        ) from error
    return ray


def _import_ray() -> Any:
    try:
        return import_module("ray")  # an extra
    except ImportError as error:
        raise ConfigError(
            'Ray is not installed; install it with `pip install -e ".[ray]"`, or use --workers.'
        ) from error


@contextmanager
def _pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    """Processes of one thread each; they end with this one, however it ends."""
    names = (*_THREADS, "TOKENIZERS_PARALLELISM")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(_THREADS, "1"), TOKENIZERS_PARALLELISM="false")
    pool = ProcessPoolExecutor(
        workers, multiprocessing.get_context("spawn"), initializer=_follow_parent
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


def _follow_parent() -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """Leave when the process that gave out the work is gone; half-written files have no name."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
