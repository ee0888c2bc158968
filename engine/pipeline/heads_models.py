"""The decoders whose heads are looked at: runs, folders of checkpoints, revisions of a hub."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer
from torch import nn
from transformers import PreTrainedModel

from engine.able.loading import refuse_configuration
from engine.config import LossWeights, TrainConfig
from engine.corpus.build import open_corpus
from engine.corpus.tokenizer import TOKENIZER_FILE, corpus_tokenizer, load_tokenizer
from engine.devices import Device
from engine.errors import CacheMissing, ConfigError
from engine.lm.loading import load_weights, locate, model_reference, quiet_loading
from engine.lm.packaged import PACKAGED
from engine.pipeline.retrofit import model_tokenizer
from engine.prism.checkpoints import CONFIG_FILE, load_prism
from engine.prism.configuration import MODEL_TYPE
from engine.prism.model import PrismForCausalLM
from engine.prism.training import build_model
from engine.prism.training_checkpoint import load_checkpoint
from engine.provenance import fingerprint_model
from engine.snippets import tokenizer_of
from engine.store import read_json, resolve_run, stored_manifest


HEADS = "heads"
"""Kind of the runs that hold attention heads."""
TRAINING_STATE = "state.json"
"""What tells a checkpoint of a run's training from a folder of `save_pretrained`."""
_LISTED = 12
"""Names that a sentence lists at most."""
_NUMBER = re.compile(r"(\d+)$")


@dataclass(frozen=True)
class Checkpoint:
    """Weights of one moment of a training."""

    name: str
    """As the folder or the revision is called."""
    step: int
    """Optimiser step; its place in the list where the names carry no number."""
    reference: dict[str, Any] = field(hash=False)
    """How `load_decoder` finds it."""

    @property
    def identity(self) -> Any:
        """What tells its weights from others: of files their digest, of a hub the revision."""
        folder = self.reference.get("path")
        return fingerprint_model(Path(folder)) if folder else self.reference


@dataclass(frozen=True)
class HeadSource:
    """What the user named: a model and the moments of it to look at."""

    name: str
    """Short name."""
    reference: dict[str, Any]
    """How the model itself is found; the same whatever checkpoints are asked for."""
    checkpoints: tuple[Checkpoint, ...]
    """At least one, in the order of their steps."""
    manifest: dict[str, Any] | None
    """Manifest of the run that the model was trained in, if it was trained here."""

    def tokenizer(self) -> Tokenizer:
        """The model's own tokenizer.

        Raises:
            UnsupportedModel: it has none that can be read.
        """
        settings = (self.manifest or {}).get("config", {}).get("train")
        for folder in self._folders():
            if (folder / TOKENIZER_FILE).is_file() or _is_prism(folder):
                return load_tokenizer(tokenizer_of(folder))
        if settings is not None:  # a run still in training has left none yet
            corpus = open_corpus(settings["corpus"])
            return load_tokenizer(corpus_tokenizer(corpus, settings["vocab_size"]))
        return model_tokenizer(locate(self.reference))

    def _folders(self) -> list[Path]:
        """Folders that may hold the tokenizer."""
        own = [Path(self.reference["path"])] if "path" in self.reference else []
        last = self.checkpoints[-1].reference
        at = [Path(last["path"])] if "path" in last else []
        return [*(folder / "model" for folder in own), *own, *at]


def find_source(
    model: str, checkpoints: Sequence[str] = (), revisions: Sequence[str] = ()
) -> HeadSource:
    """The decoders that a user means.

    Args:
        model: name or folder of a run, folder of `save_pretrained`, folder that holds such
            folders, package of weights, or id of a hub.
        checkpoints: folders, or names or steps of the model's own checkpoints; all it has if
            empty.
        revisions: branches, tags or commits of a hub's model.

    Raises:
        CacheMissing: there is no such model, or no such checkpoint; the sentence says which are.
        ConfigError: both lists are given, or revisions of something that is not on a hub.
    """
    if checkpoints and revisions:
        raise ConfigError("--checkpoint and --revisions name the same thing; give one of them.")
    folder = _folder(model)
    if folder is None:
        return _remote(model, checkpoints, revisions)
    if revisions:
        raise ConfigError(
            f"{model} is a folder, which has no revisions; name its checkpoints with --checkpoint."
        )
    manifest = stored_manifest(folder)
    if manifest is not None and manifest.get("kind") == HEADS:
        return _studied(folder, checkpoints)
    own = _own_checkpoints(folder, manifest)
    chosen = [_named_checkpoint(model, name, own) for name in checkpoints] or own
    if not chosen:
        raise CacheMissing(
            f"{folder} holds no {CONFIG_FILE} and no folder such as step-100 or checkpoint-100; "
            "name a run, a folder of save_pretrained, a folder of such folders or a hub id."
        )
    reference = {"path": str(folder.resolve())}
    return HeadSource(folder.resolve().name, reference, _in_order(chosen), manifest)


def load_decoder(source: HeadSource, checkpoint: Checkpoint, device: Device) -> PreTrainedModel:
    """The decoder of a checkpoint, frozen, in evaluation mode; of a prototype model its backbone.

    Raises:
        CacheMissing, CacheStale, UnsupportedModel: its weights cannot be had or used, or it is no
            causal language model.
    """
    quiet_loading()
    folder = checkpoint.reference.get("path")
    if folder:
        # code of its own is never run here, and `load_weights` says so
        refuse_configuration(folder, allow_code=True)
    if folder and (Path(folder) / TRAINING_STATE).is_file():
        model: Any = _trained(source, Path(folder))
    elif folder and _is_prism(Path(folder)):
        model = load_prism(folder)[0]
    else:
        model = load_weights(checkpoint.reference)[0]
    decoder = model.backbone if isinstance(model, PrismForCausalLM) else model
    nn.Module.to(decoder, device=device.device, dtype=device.dtype)
    return decoder.eval().requires_grad_(requires_grad=False)


# --- local ------------------------------------------------------------------------------------


def _folder(model: str) -> Path | None:
    """The folder a name stands for: a run's or any other; None where there is none."""
    try:
        place = resolve_run(model)
    except ConfigError:
        place = Path(model)
    for path in (place, Path(model)):
        if path.is_dir():
            return path
    if model.startswith(("/", ".", "~")):
        raise CacheMissing(f"There is no folder {model}; name a run, a model's folder or a hub id.")
    return None


def _studied(folder: Path, checkpoints: Sequence[str]) -> HeadSource:
    """The decoder that an emergence study ships; its samples are scored by the study itself."""
    model = folder / "model"
    if not (model / CONFIG_FILE).is_file():
        raise ConfigError(
            f"Run {folder.name} holds what was found about heads and no model; name the model."
        )
    if checkpoints:
        raise ConfigError(
            f"Run {folder.name} keeps no checkpoints; leave --checkpoint out, or name one of the "
            f"folders in {model}."
        )
    reference = {"path": str(model.resolve())}
    return HeadSource(folder.resolve().name, reference, (_checkpoint(model),), None)


def _own_checkpoints(folder: Path, manifest: dict[str, Any] | None) -> list[Checkpoint]:
    """Every checkpoint of a folder; its model itself where it is not one of them."""
    places = [*folder.glob("*/"), *folder.glob("checkpoints/*/")]
    found = [_checkpoint(p) for p in places if _NUMBER.search(p.name) and _is_model(p)]
    model = folder / "model" if manifest is not None else folder
    if not (model / CONFIG_FILE).is_file():
        return found
    if manifest is None:
        return found or [_checkpoint(model)]
    step = int(manifest.get("stages", {}).get("train", {}).get("steps", 0))
    before = [c for c in found if c.step != step]
    return [*before, Checkpoint("model", step, {"path": str(model.resolve())})]


def _is_model(folder: Path) -> bool:
    kept = (folder / TRAINING_STATE).is_file() and (folder / "model.safetensors").is_file()
    return kept or (folder / CONFIG_FILE).is_file()


def _is_prism(folder: Path) -> bool:
    path = folder / CONFIG_FILE
    return path.is_file() and read_json(path).get("model_type") == MODEL_TYPE


def _checkpoint(folder: Path) -> Checkpoint:
    number = _NUMBER.search(folder.name)
    step = int(number.group(1)) if number else 0
    return Checkpoint(folder.name, step, {"path": str(folder.resolve())})


def _named_checkpoint(model: str, name: str, own: list[Checkpoint]) -> Checkpoint:
    """A checkpoint by its name, its step or its folder."""
    for known in own:
        if name == known.name or (name.isdecimal() and int(name) == known.step):
            return known
    if Path(name).is_dir() and _is_model(Path(name)):
        return _checkpoint(Path(name))
    names = [known.name for known in sorted(own, key=lambda c: c.step)]
    shown = ", ".join(names[:_LISTED]) + (", ..." if len(names) > _LISTED else "")
    raise CacheMissing(
        f"{model} has no checkpoint {name!r}, and no folder of that name holds a model; "
        f"there are: {shown or 'none'}."
    )


def _in_order(found: list[Checkpoint]) -> tuple[Checkpoint, ...]:
    """By step; numbered in the order given where the steps do not tell them apart."""
    if len({c.step for c in found}) == len(found):
        return tuple(sorted(found, key=lambda c: c.step))
    return tuple(Checkpoint(c.name, place, c.reference) for place, c in enumerate(found))


def _trained(source: HeadSource, folder: Path) -> nn.Module:
    """The model of a run's training, with the weights of a checkpoint."""
    manifest = source.manifest or stored_manifest(folder.parents[1])
    settings = (manifest or {}).get("config", {}).get("train")
    if settings is None:
        raise CacheMissing(
            f"{folder} is a checkpoint of a training, and the run around it with its settings is "
            "not there; copy the whole run."
        )
    config = TrainConfig(**{**settings, "weights": LossWeights(**settings["weights"])})
    model = build_model(config, end_of_text=0)
    load_checkpoint(folder, model, None)
    return model


# --- elsewhere --------------------------------------------------------------------------------


def _remote(model: str, checkpoints: Sequence[str], revisions: Sequence[str]) -> HeadSource:
    """A package of weights, or a model of a hub with the revisions asked for."""
    reference = model_reference(model)
    name = model.rsplit("/", 1)[-1]
    if checkpoints:
        raise CacheMissing(
            f"There is no run and no folder {model!r} that could hold checkpoints; of a hub's "
            "model name --revisions."
        )
    if model in PACKAGED and revisions:
        raise ConfigError(f"{model} is a package of weights and has no revisions.")
    if not revisions:
        return HeadSource(name, reference, (Checkpoint("main", 0, reference),), None)
    numbers = [_NUMBER.search(revision) for revision in revisions]
    found = [
        Checkpoint(
            revision, int(number.group(1)) if number else 0, {**reference, "revision": revision}
        )
        for revision, number in zip(revisions, numbers, strict=True)
    ]
    return HeadSource(name, reference, _in_order(found), None)
