"""Opening what a user names: a run, or a folder written by `save_pretrained`."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel

from engine.devices import resolve_device
from engine.errors import CacheMissing, CacheStale, ConfigError
from engine.live.model import LiveModel
from engine.live.text import Codec
from engine.lm.loading import load_weights, quiet_loading
from engine.prism.checkpoints import load_prism
from engine.prism.configuration import MODEL_TYPE
from engine.store import Run, open_run, resolve_run
from engine.store.runs import DRAFT, MANIFEST


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

    A name that no run has may be that of a folder in the working directory.

    Raises:
        CacheMissing: nothing of that name, or a folder that is neither a run nor a model.
        CacheStale: its files are damaged.
        UnsupportedModel: it is no causal language model of transformers.
    """
    path = _place(name)
    bare = _holds(path, "config.json") and not _holds(path, MANIFEST)
    if path.is_dir() and not (bare or _holds(path, MANIFEST, DRAFT)):
        raise CacheMissing(
            f"{name} is neither a run (no run.json) nor a model folder (no config.json); "
            "`headwater info` lists the runs there are."
        )
    run = None if bare else open_run(path if path.is_dir() else name)
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


def _holds(folder: Path, *names: str) -> bool:
    return any((folder / name).is_file() for name in names)


def _place(name: str) -> Path:
    """The folder a name stands for: that of a run, or else one of the working directory.

    Raises:
        ConfigError: it can name neither.
    """
    here = Path(name)
    usable = name != "" and "\0" not in name and here.is_dir()
    try:
        place = resolve_run(name)
    except ConfigError:
        if not usable:
            raise
        return here
    return here if usable and not place.exists() else place


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
    if settings.get("model_type") == MODEL_TYPE:
        model, tokenizer = load_prism(folder, device=where)
    else:
        model, tokenizer = load_weights({"path": str(folder)})[0], folder
    torch.nn.Module.to(model, where)
    return model.eval().requires_grad_(requires_grad=False), tokenizer
