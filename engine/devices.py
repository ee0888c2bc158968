"""Where a computation runs, and in which number format."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

import torch

from engine.errors import ConfigError


if TYPE_CHECKING:
    from accelerate import PartialState


@dataclass(frozen=True, kw_only=True)
class Device:
    """A resolved device: what "auto" became, and why."""

    device: torch.device
    """Where tensors live."""
    dtype: torch.dtype
    """Format of the decoder's matrix products: bfloat16 on CUDA that has it, else float32."""
    reason: str
    """One sentence for the log."""


def resolve_device(name: str = "auto") -> Device:
    """Turn auto, cpu, cuda or cuda:N into a device and its number format.

    Half precision is left to CUDA: on a CPU without matrix units for it, it is 8 to 10 times
    slower than float32.
    """
    available = torch.cuda.is_available()
    if name == "cpu" or (name == "auto" and not available):
        why = "asked for" if name == "cpu" else "no CUDA device was found"
        return Device(
            device=torch.device("cpu"), dtype=torch.float32, reason=f"CPU in float32: {why}."
        )
    if name != "auto" and name != "cuda" and not name.startswith("cuda:"):
        raise ConfigError(f"Device {name!r} is unknown; use auto, cpu, cuda or cuda:N.")
    if not available:
        raise ConfigError(f"Device {name!r} was asked for but no CUDA device is visible; use cpu.")
    return _resolve_cuda("cuda" if name == "auto" else name)


def _resolve_cuda(name: str) -> Device:
    """Check a CUDA device's number and choose its number format."""
    number = name.partition(":")[2]
    count = torch.cuda.device_count()
    if number and not (number.isdecimal() and int(number) < count):
        raise ConfigError(f"Device {name!r} does not exist; this machine has {count} (from 0).")
    dtype = torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float32
    reason = f"{torch.cuda.get_device_name(name)} in {str(dtype).removeprefix('torch.')}."
    return Device(device=torch.device(name), dtype=dtype, reason=reason)


def join_processes(device: torch.device) -> "PartialState":
    """This process's place among those that `torchrun` started; alone without it.

    One process may work long while the others wait for it, as when a corpus is tokenised, so the
    wait is bounded by a day and not by the usual minutes.

    Args:
        device: Where this process computes; its index, if it has one, becomes the current one.
    """
    from accelerate import PartialState

    if device.index is not None:
        torch.cuda.set_device(device)
    return PartialState(cpu=device.type == "cpu", timeout=timedelta(days=1))


@contextmanager
def memory_given_back() -> Iterator[None]:
    """Afterwards, give back what the block left behind, models in reference cycles among it.

    Older objects are set aside meanwhile: a collection that walks all of torch and transformers
    takes a good part of the time that a small model does.
    """
    gc.freeze()
    try:
        yield
    finally:
        gc.collect()
        gc.unfreeze()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
