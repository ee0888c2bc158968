"""Opening what a user names: a run, or a folder written by `save_pretrained`."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from transformers import AutoModelForCausalLM, PreTrainedModel

from engine.devices import resolve_device
from engine.errors import CacheMissing, CacheStale, UnsupportedModel
from engine.live.model import LiveModel
from engine.live.text import Codec
from engine.lm.loading import quiet_loading
from engine.prism.checkpoints import load_prism
from engine.prism.configuration import MODEL_TYPE
from engine.store import Run, open_run


@dataclass(frozen=True)
class Opened:
    """A loaded model, its tokenizer and, if it came from one, its run."""

    name: str
    kind: str
    model: LiveModel
    codec: Codec
    run: Run | None


def open_model(name: str, device: str = "auto") -> Opened:
    """Load a run by name or path, or a bare model folder.

    Raises:
        CacheMissing: nothing of that name, or a folder that is neither a run nor a model.
        CacheStale: its files are damaged.
    """
    path = Path(name)
    bare = "\x00" not in name and path.is_dir() and not (path / "run.json").exists()
    if bare and not (path / "config.json").is_file():
        raise CacheMissing(
            f"{name} is neither a run (no run.json) nor a model folder (no config.json); "
            "`headwater info` lists the runs there are."
        )
    run = None if bare else open_run(name)
    folder = path if run is None else run.model_path
    if not (folder / "config.json").is_file():
        raise CacheMissing(
            f"Run {name} holds no model yet; run `headwater train` again to finish it."
        )
    settings = _settings(folder)
    model, tokenizer = _load(folder, settings, device)
    kind = str(run.manifest.get("kind", "prism")) if run is not None else _kind(settings)
    shown = path.resolve().name if run is None else run.name
    return Opened(shown, kind, LiveModel(model), Codec.from_folder(tokenizer), run)


def _settings(folder: Path) -> dict[str, Any]:
    try:
        settings = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CacheStale(
            f"{folder / 'config.json'} cannot be read ({error}); write the model again."
        ) from error
    if not isinstance(settings, dict):
        raise CacheStale(f"{folder / 'config.json'} is no configuration; write the model again.")
    return settings


def _kind(settings: dict[str, Any]) -> str:
    if settings.get("model_type") != MODEL_TYPE:
        return "dense"
    return "retrofit" if settings.get("base") else "prism"


def _load(folder: Path, settings: dict[str, Any], device: str) -> tuple[PreTrainedModel, Path]:
    """The model in float32, ready to read, and the folder of its tokenizer."""
    where = resolve_device(device).device
    quiet_loading()
    try:
        if settings.get("model_type") == MODEL_TYPE:
            model, tokenizer = load_prism(folder, device=where)
        else:
            model, tokenizer = _load_dense(folder), folder
    except SafetensorError as error:
        raise CacheStale(
            f"The weights in {folder} are damaged ({error}); train or copy the model again."
        ) from error
    torch.nn.Module.to(model, where)
    return model.eval().requires_grad_(requires_grad=False), tokenizer


def _load_dense(folder: Path) -> PreTrainedModel:
    """A causal LM without a bank; only safetensors are read, and no code of the folder is run."""
    try:
        return AutoModelForCausalLM.from_pretrained(
            folder,
            dtype=torch.float32,
            local_files_only=True,
            use_safetensors=True,
            trust_remote_code=False,
        )
    except OSError as error:
        raise CacheMissing(
            f"{folder} holds no readable model.safetensors; write the model with save_pretrained."
        ) from error
    except (ValueError, KeyError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise UnsupportedModel(
            f"{folder} is no causal language model that transformers can load ({reason[:200]})."
        ) from error
