"""Fingerprints of values, files and models; versions and times. No torch, no tables."""

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import engine


FINGERPRINT_DIGITS = 16
"""Hexadecimal digits of a fingerprint (64 bits)."""
_CHUNK = 1 << 20
_MODEL_FILES = ("*.safetensors", "config.json", "tokenizer.json")


def fingerprint(value: Any) -> str:
    """Sixteen hex digits that change whenever `value` changes.

    Args:
        value: Anything JSON can hold, and dataclasses, paths, tuples and sets within it.

    Returns:
        The start of the SHA-256 of the value's canonical JSON.
    """
    return fingerprint_bytes(canonical_json(value).encode())


def canonical_json(value: Any) -> str:
    """JSON with sorted keys and no spaces; equal values give equal text.

    Raises:
        ValueError: `value` holds a NaN or an infinity.
        TypeError: `value` holds something JSON cannot.
    """
    return json.dumps(
        _plain(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _plain(dataclasses.asdict(value))
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(_plain(item) for item in value)
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Path):
        return value.as_posix()
    item = getattr(value, "item", None)  # NumPy and torch scalars
    return item() if callable(item) else value


def fingerprint_bytes(data: bytes) -> str:
    """Sixteen hex digits of the SHA-256 of `data`."""
    return hashlib.sha256(data).hexdigest()[:FINGERPRINT_DIGITS]


def file_sha256(path: Path) -> str:
    """The full SHA-256 of a file, in hex, read a megabyte at a time."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def fingerprint_model(folder: Path) -> str:
    """Fingerprint of what determines a model's output: weights, configuration, tokenizer.

    Files that only describe the model do not count, so that a note in the folder changes nothing.
    """
    files = sorted(path for pattern in _MODEL_FILES for path in folder.glob(pattern))
    return fingerprint([(path.name, file_sha256(path)) for path in files])


def engine_version() -> str:
    """Version of the engine that computes."""
    return engine.__version__


def now_iso() -> str:
    """The present time in UTC, to the second, as ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="seconds")
