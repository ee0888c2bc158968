"""The file of `headwater heads mixtures`: a list of what training rows are made of."""

import dataclasses
import json
from pathlib import Path
from typing import Any

from engine.cli.options import build_config
from engine.config import require
from engine.errors import ConfigError
from engine.pipeline.heads_settings import Mixture


_FIELDS = {field.name: field for field in dataclasses.fields(Mixture)}
_NEEDED = {name for name, field in _FIELDS.items() if field.default is dataclasses.MISSING}


def read_mixtures(path: Path) -> list[Mixture]:
    """Mixtures of a JSON file: a list of objects with the fields of `Mixture`.

    Raises:
        ConfigError: the file cannot be read so.
    """
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} is no JSON file that can be read ({error}).") from error
    whole = isinstance(entries, list) and all(_is_whole(entry) for entry in entries)
    require(
        whole,
        f"{path} holds no list of mixtures; each is an object with name, domain_weights and "
        "repeat_share, and seeds where there is more than one.",
    )
    found = [_mixture(path, number, entry) for number, entry in enumerate(entries, 1)]
    names = [mixture.name for mixture in found]
    require(len(names) > 0, f"{path} names no mixture.")
    require(len(set(names)) == len(names), f"{path} names a mixture twice; names must differ.")
    return found


def _is_whole(entry: Any) -> bool:
    """Whether an entry has every field it needs and no other."""
    return isinstance(entry, dict) and entry.keys() >= _NEEDED and entry.keys() <= _FIELDS.keys()


def _mixture(path: Path, number: int, entry: dict[str, Any]) -> Mixture:
    try:
        return build_config(Mixture, entry)
    except ConfigError as error:
        raise ConfigError(f"{path}, mixture {number}: {error}") from error
