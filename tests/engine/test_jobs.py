"""The seam for fan-out."""

import os
import sys

import pytest

from engine.errors import ConfigError, StorageError
from engine.jobs import Processes, RayCluster, fan_of, map_jobs


def square(item):
    """A job whose errors and process can be told."""
    if item == 99:
        raise StorageError("The disk is full.")
    return item * item, os.getpid()


def test_jobs_run_in_order_and_skip_what_is_done():
    """A resumed stage runs only what an earlier call did not finish."""
    ran: list[int] = []

    def job(item: int) -> int:
        ran.append(item)
        return item * item

    assert map_jobs(job, range(5), done=lambda item: item in (1, 3)) == [0, 4, 16]
    assert ran == [0, 2, 4]


def test_processes_give_the_results_of_one_process_in_the_order_of_the_items():
    """Jobs end in any order; results keep that of the items, and none runs here."""
    found = map_jobs(square, range(7), done=lambda item: item == 3, fan=Processes(2))
    assert [result for result, _ in found] == [0, 1, 4, 16, 25, 36]
    assert os.getpid() not in {process for _, process in found}


def test_an_error_of_a_job_elsewhere_comes_as_it_was_raised():
    """A full disk ends a catalogue run in the sentence it ends with here."""
    with pytest.raises(StorageError, match="disk is full"):
        map_jobs(square, [1, 99, 2], fan=Processes(2))


@pytest.mark.slow
def test_items_are_taken_only_as_places_come_free():
    """Progress is drawn around the items, so they may not all be taken at once."""
    taken: list[int] = []

    def items():
        for item in range(5):
            taken.append(item)
            yield item

    ended = Processes(2)(square, items())
    next(ended)
    assert len(taken) == 2
    assert len(list(ended)) == 4


def test_where_jobs_run_follows_from_what_is_typed(monkeypatch):
    """One sentence for what cannot be."""
    assert fan_of(1, None) is None
    assert fan_of(3, None) == Processes(3)
    with pytest.raises(ConfigError, match="--workers is 0"):
        fan_of(0, None)
    with pytest.raises(ConfigError, match="exclude each other"):
        fan_of(2, "auto")
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ConfigError, match="Ray is not installed"):
        fan_of(1, "auto")


@pytest.mark.slow
def test_a_ray_cluster_gives_the_results_of_one_process():
    """The same jobs, the same order, the same errors, on a cluster of this machine alone."""
    pytest.importorskip("ray")
    found = map_jobs(square, range(7), done=lambda item: item == 3, fan=RayCluster())
    assert [result for result, _ in found] == [0, 1, 4, 16, 25, 36]
    with pytest.raises(StorageError, match="disk is full"):
        map_jobs(square, [1, 99, 2], fan=RayCluster())
