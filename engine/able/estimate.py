"""Memory and disk a model needs, estimated before it is loaded."""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import torch
from safetensors import SafetensorError, safe_open

from engine.able.hub import Sizes, hub_sizes
from engine.able.loading import adapter_base
from engine.able.reach import is_hub_id
from engine.errors import ConfigError
from engine.lm.packaged import PACKAGED, packaged_path


_ACTIVATIONS = 34
"""Values alive a token and block, over the hidden size: 17 kept for the backward pass (34 bytes at
half precision in Korthikanti et al. 2022), and as many again for gradients."""
_FIXED = 300_000_000
"""Bytes of everything that grows with no model."""


@dataclass(frozen=True)
class Estimate:
    """What embedding a model takes, in bytes; estimates, not bounds."""

    disk: int
    """Fetched and removed again; 0 where the model is here."""
    memory: int
    """Held at once on the device."""
    weights: int
    """Weights on disk."""


def estimate(source: str, dtype: torch.dtype, batch_tokens: int) -> Estimate:
    """Estimate what a model takes.

    Args:
        source: Folder, adapter folder, hub id or packaged model.
        dtype: Format it will compute in.
        batch_tokens: Tokens times options of a batch.

    Raises:
        CacheMissing: A hub id cannot be read.
    """
    base = adapter_base(source) or source
    place = str(packaged_path(base)) if base in PACKAGED else base
    sizes = hub_sizes(place) if is_hub_id(place) else local_sizes(Path(place))
    held = sizes.n_parameters * dtype.itemsize
    working = _working(_configuration(Path(place)), dtype, batch_tokens, held)
    disk = 0 if sizes.is_local else sizes.weight_bytes
    return Estimate(disk, held + working + _FIXED, sizes.weight_bytes)


def local_sizes(folder: Path) -> Sizes:
    """Size of a model in a folder, from the headers of its safetensors; 0 where there are none."""
    weight_bytes = n_parameters = 0
    for path in sorted(folder.glob("*.safetensors")):
        weight_bytes += path.stat().st_size
        try:
            with safe_open(path, framework="pt") as file:
                for name in file.keys():  # noqa: SIM118  # it is no dictionary
                    shape = file.get_slice(name).get_shape()
                    n_parameters += int(torch.Size(shape).numel())
        except (SafetensorError, OSError):
            continue  # loading says what is wrong with it
    return Sizes(weight_bytes, n_parameters, is_local=True)


def check_room(
    name: str, needed: Estimate, device: torch.device, folder: Path, share: float = 1.0
) -> None:
    """Refuse a model that will not fit, before it is fetched or loaded.

    Args:
        name: Of the model.
        needed: What it takes.
        device: Where it will compute.
        folder: Where it would be fetched to; it exists.
        share: Of what is free, that may be used.

    Raises:
        ConfigError: It will not fit.
    """
    for what, need, free in (
        ("disk", needed.disk, shutil.disk_usage(folder).free),
        ("memory", needed.memory, free_memory(device)),
    ):
        if need > share * free:
            raise ConfigError(
                f"{name} needs about {_gigabytes(need)} of {what} and {_gigabytes(free)} are free; "
                "free some, or embed it on a larger machine into the same run."
            )


def free_memory(device: torch.device) -> int:
    """Bytes free on a device."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    return int(psutil.virtual_memory().available)


def _working(config: dict[str, Any], dtype: torch.dtype, batch_tokens: int, held: int) -> int:
    """Bytes of activations of a batch of questions with four options.

    A fifth of the weights where the shape is not known.
    """
    width = config.get("hidden_size") or config.get("n_embd") or config.get("d_model")
    layers = config.get("num_hidden_layers") or config.get("n_layer") or config.get("n_layers")
    if not isinstance(width, int) or not isinstance(layers, int):
        return held // 5
    return batch_tokens * layers * width * _ACTIVATIONS * dtype.itemsize // 4


def _configuration(folder: Path) -> dict[str, Any]:
    try:
        found = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _gigabytes(n_bytes: int) -> str:
    return f"{n_bytes / 1e9:.1f} GB"
