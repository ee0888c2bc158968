"""Atomic files: what is half-written is never seen under its own name."""

import errno
import json
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any

import numpy as np
from safetensors import SafetensorError

from engine.errors import CacheMissing, CacheStale, StorageError


try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

_TEMPORARY = ".tmp-"
_FULL = (errno.ENOSPC, errno.EDQUOT)
NO_SPACE = "No space left"
"""What libraries that raise errors of their own say of a full disk."""


@contextmanager
def atomic_file(path: Path) -> Iterator[IO[bytes]]:
    """Write bytes to a temporary file beside `path`, then rename it into place.

    The data reach the disk before the name does. When the body fails, the temporary file goes and
    an older file under `path` stays as it was.

    Raises:
        StorageError: The disk is full or the folder cannot be written.
    """
    temporary = _temporary(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        _sync_folder(path.parent)
    except OSError as error:
        raise storage_error(path, error) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Fill a temporary folder beside `path`, then rename it into place; an older one is replaced.

    Raises:
        StorageError: The disk is full or the folder cannot be written.
    """
    temporary = _temporary(path)
    try:
        temporary.mkdir(parents=True)
        yield temporary
        if path.exists():
            outgoing = _temporary(path)
            path.rename(outgoing)
            temporary.rename(path)
            shutil.rmtree(outgoing)
        else:
            temporary.rename(path)
        _sync_folder(path.parent)
    except OSError as error:
        raise storage_error(path, error) from error
    except SafetensorError as error:
        if NO_SPACE not in str(error):
            raise
        raise _disk_full(path) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


@contextmanager
def scratch_folder(parent: Path, prefix: str) -> Iterator[Path]:
    """A folder to work in below `parent`, gone afterwards; what killed processes left goes first.

    Each folder is locked while it is in use, and the system drops the lock of a process that is
    killed. So leftovers are told from the folder of a process that runs beside this one.

    Args:
        parent: Where; it exists.
        prefix: What the folder's name begins with; all of that name are taken for scratch.
    """
    for leftover in parent.glob(f"{prefix}*"):
        with _locked(leftover) as free:
            if free:
                shutil.rmtree(leftover, ignore_errors=True)
    with TemporaryDirectory(dir=parent, prefix=prefix) as name, _locked(Path(name)):
        yield Path(name)


@contextmanager
def _locked(folder: Path) -> Iterator[bool]:
    """Hold the lock of a folder; False where another process holds it, or there are no locks."""
    if fcntl is None:
        yield False
        return
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        yield False
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        free = True
    except OSError:
        free = False
    try:
        yield free
    finally:
        os.close(descriptor)


def write_bytes_atomic(path: Path, data: bytes) -> None:
    """Write `data` to `path` in one step."""
    with atomic_file(path) as file:
        file.write(data)


def write_json_atomic(path: Path, value: Any) -> None:
    """Write `value` to `path` as indented JSON, in one step."""
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    write_bytes_atomic(path, (text + "\n").encode())


def write_array_atomic(path: Path, array: np.ndarray) -> None:
    """Write an array of numbers as .npy."""
    with atomic_file(path) as file:
        np.save(file, array, allow_pickle=False)


def read_json(path: Path) -> Any:
    """Read a JSON file.

    Raises:
        CacheMissing: The file is not there.
        CacheStale: The file is not JSON.
    """
    try:
        return json.loads(path.read_bytes())
    except FileNotFoundError as error:
        raise CacheMissing(f"The file {path} does not exist.") from error
    except (ValueError, UnicodeDecodeError) as error:
        message = f"The file {path} is damaged: it is not JSON. Remove it and run its stage again."
        raise CacheStale(message) from error


def remove_leftovers(folder: Path) -> None:
    """Remove what an interrupted write left behind in `folder` and the folders below it.

    What a process that still runs on this machine is writing stays.
    """
    for path in sorted(folder.rglob(f".*{_TEMPORARY}*")):
        if _is_being_written(path):
            continue
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


@contextmanager
def one_at_a_time(folder: Path) -> Iterator[None]:
    """Wait until nobody else is in such a block for a folder; the system frees a killed one's.

    Args:
        folder: It exists. Do not nest blocks for one folder.
    """
    if fcntl is None:
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _temporary(path: Path) -> Path:
    mark = f"{_TEMPORARY}{os.getpid()}-{uuid.uuid4().hex[:8]}"
    return path.with_name(f".{path.name}{mark}")


def _is_being_written(path: Path) -> bool:
    """Whether the process in a temporary name runs; always False where that cannot be asked."""
    process, dash, _ = path.name.rpartition(_TEMPORARY)[2].partition("-")
    if os.name == "nt" or not dash or not process.isdecimal():
        return False
    try:
        os.kill(int(process), 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def _sync_folder(folder: Path) -> None:
    """Make the rename itself durable, where the system can."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def storage_error(path: Path, error: OSError) -> StorageError:
    """What a failed write means, in a sentence."""
    if error.errno in _FULL:
        return _disk_full(path)
    reason = error.strerror or str(error)
    return StorageError(
        f"Cannot write {path}: {reason}. Choose a folder you may write to with HEADWATER_CACHE."
    )


def _disk_full(path: Path) -> StorageError:
    return StorageError(
        f"The disk is full, so {path.name} was not written; what was finished before is whole. "
        f"Free space under {path.parent} and run the same command again."
    )
