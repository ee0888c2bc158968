"""Clocks: CPU time where other programs share the machine, synchronised wall time on a GPU."""

import resource
import time
from collections.abc import Callable

import torch


def cpu_seconds() -> float:
    """CPU time of this process and of the children it has waited for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def device_clock(device: str) -> Callable[[], float]:
    """A clock of the work done on a device so far, in seconds."""
    if not device.startswith("cuda"):
        return cpu_seconds

    def clock() -> float:
        torch.cuda.synchronize()
        return time.perf_counter()

    return clock


def timed(clock: Callable[[], float], work: Callable[[], object]) -> float:
    """Seconds `work` takes by `clock`."""
    start = clock()
    work()
    return clock() - start


def ratio(rounds: list[dict[str, float]], over: str, under: str) -> float:
    """Sum of one time over the sum of the other."""
    return sum(r[over] for r in rounds) / sum(r[under] for r in rounds)
