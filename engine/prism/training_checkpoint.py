"""Checkpoints of a training run: weights, optimiser and log, whole or not there at all."""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, load_model, save_file, save_model
from torch import Tensor, nn

from engine.errors import CacheStale
from engine.store import atomic_folder


KEEP = 2
"""Checkpoints kept beside the one a fork starts from."""

_PREFIX = "step-"


@dataclass(frozen=True)
class TrainingState:
    """Where a run stands."""

    step: int
    """Optimiser steps done."""
    bank_fitted: bool
    """Whether the bank has been started from warm states."""
    log: list[dict[str, Any]]
    """Rows of `training_log` so far."""
    evaluations: list[dict[str, Any]]
    """Rows of `evaluations` so far."""


def checkpoint_path(folder: Path, step: int) -> Path:
    """Folder of the checkpoint after `step` steps."""
    return folder / f"{_PREFIX}{step:07d}"


def latest_checkpoint(folder: Path) -> Path | None:
    """The checkpoint with the most steps, or None."""
    found = sorted(folder.glob(f"{_PREFIX}*"))
    return found[-1] if found else None


def save_checkpoint(
    folder: Path, model: nn.Module, optimiser: torch.optim.Optimizer, state: TrainingState
) -> Path:
    """Write a checkpoint whole; the folder appears in one step."""
    target = checkpoint_path(folder, state.step)
    with atomic_folder(target) as partial:
        save_model(model, str(partial / "model.safetensors"))
        save_file(_optimiser_tensors(optimiser), partial / "optimiser.safetensors")
        (partial / "state.json").write_text(json.dumps(state.__dict__), encoding="utf-8")
    return target


def load_checkpoint(
    path: Path, model: nn.Module, optimiser: torch.optim.Optimizer | None
) -> TrainingState:
    """Read weights and optimiser in place and return where the run stood.

    A dense model reads a prototype model's checkpoint: the bank is left out. So is a bank that
    was not fitted yet, which says nothing: a fork may have another number of prototypes.

    Raises:
        CacheStale: The checkpoint is damaged or of another model.
    """
    try:
        state = TrainingState(**json.loads((path / "state.json").read_text(encoding="utf-8")))
        _load_weights(path, model, with_bank=state.bank_fitted)
        if optimiser is not None:
            _load_optimiser(optimiser, load_file(path / "optimiser.safetensors"))
        return state
    except (SafetensorError, OSError, ValueError, KeyError, RuntimeError, TypeError) as error:
        message = f"The checkpoint {path} cannot be read ({error}); remove it and train again."
        raise CacheStale(message) from error


def prune_checkpoints(folder: Path, keep_step: int | None) -> None:
    """Remove all but the newest `KEEP` checkpoints and the one at `keep_step`."""
    for old in sorted(folder.glob(f"{_PREFIX}*"))[:-KEEP]:
        if keep_step is None or old != checkpoint_path(folder, keep_step):
            shutil.rmtree(old)


def _load_weights(path: Path, model: nn.Module, *, with_bank: bool) -> None:
    file = str(path / "model.safetensors")
    decoder = getattr(model, "backbone", None)
    if decoder is not None and with_bank:
        load_model(model, file)
        return
    model = model if decoder is None else decoder
    tensors = {
        name.removeprefix("backbone."): tensor
        for name, tensor in load_file(file).items()
        if name != "prototypes"
    }
    missing, unexpected = model.load_state_dict(tensors, strict=False)
    own = model.state_dict()
    filled = {own[name].data_ptr() for name in tensors if name in own}
    absent = [name for name in missing if own[name].data_ptr() not in filled]
    if unexpected or absent:
        raise ValueError(f"weights do not fit: {absent + unexpected}")


def _named_groups(optimiser: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Parameters by group name and place, the same for a model with and without a bank."""
    return {
        f"{group['name']}.{place}": parameter
        for group in optimiser.param_groups
        for place, parameter in enumerate(group["params"])
    }


def _optimiser_tensors(optimiser: torch.optim.Optimizer) -> dict[str, Tensor]:
    tensors = {}
    for name, parameter in _named_groups(optimiser).items():
        for key, value in optimiser.state.get(parameter, {}).items():
            tensors[f"{name}.{key}"] = torch.as_tensor(value).detach().cpu().contiguous()
    return tensors


def _load_optimiser(optimiser: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    for name, parameter in _named_groups(optimiser).items():
        keys = [key for key in tensors if key.startswith(f"{name}.")]
        state = {}
        for key in keys:
            value = tensors[key]
            is_step = key.endswith(".step")
            state[key.rsplit(".", 1)[1]] = value if is_step else value.to(parameter.device)
        if state:
            optimiser.state[parameter] = state
