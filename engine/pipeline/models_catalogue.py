"""A catalogue of models: one line a model, with its folder or its hub id."""

import csv
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from engine.errors import ConfigError


@dataclass(frozen=True)
class CatalogueEntry:
    """One model of a catalogue."""

    name: str
    """What it is called in tables."""
    source: str
    """Folder, hub id or packaged model."""
    documented: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)
    """The other columns of its line."""


@dataclass(frozen=True)
class Catalogue:
    """The models of a file, and what of it was left out."""

    entries: tuple[CatalogueEntry, ...]
    problems: tuple[str, ...] = ()
    """One sentence for each line that was left out."""


def read_catalogue(path: Path) -> Catalogue:
    """Read a CSV file with a header.

    A line has a `path`, relative to the file, or a `hub_id`, which may also be the name of a
    packaged model. Its name is its `name` or `id` where there is such a column, otherwise the hub
    id or the folder's name. Other columns are kept as what is documented of it. A line without
    either, or whose name was there before, is left out.

    Raises:
        ConfigError: The file cannot be read, has neither column, or no line names a model.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            columns = reader.fieldnames or []
            rows = list(reader)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ConfigError(f"The catalogue {path} cannot be read as CSV ({error}).") from error
    if not {"path", "hub_id"} & set(columns):
        raise ConfigError(
            f"The catalogue {path} has neither a column `path` nor `hub_id`; it has "
            f"{', '.join(columns) or 'no header'}."
        )
    found: dict[str, CatalogueEntry] = {}
    problems: list[str] = []
    for number, row in enumerate(rows, start=2):
        entry = _entry(path, row)
        if entry is None:
            problems.append(f"Line {number} of {path.name} names neither a path nor a hub id.")
        elif entry.name in found:
            problems.append(
                f"Line {number} of {path.name} repeats the name {entry.name}, so it is left out; "
                "a column `name` tells models apart."
            )
        else:
            found[entry.name] = entry
    if not found:
        raise ConfigError(f"The catalogue {path} names no model.")
    return Catalogue(tuple(found.values()), tuple(problems))


def _entry(path: Path, row: dict[str, str | None]) -> CatalogueEntry | None:
    values = {key: (value or "").strip() for key, value in row.items() if isinstance(value, str)}
    named = values.get("name") or values.get("id")
    if values.get("path"):
        folder = Path(values["path"]).expanduser()
        folder = folder if folder.is_absolute() else path.parent / folder
        return CatalogueEntry(named or folder.resolve().name, str(folder), values)
    if values.get("hub_id"):
        return CatalogueEntry(named or values["hub_id"], values["hub_id"], values)
    return None
