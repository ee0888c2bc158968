"""Run folders: where they are, what their manifest says, which of them are broken."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.config import assets_root, cache_root
from engine.errors import CacheMissing, CacheStale, ConfigError, EngineError, SchemaMismatch
from engine.provenance import fingerprint
from engine.schema import SCHEMA_VERSION, TABLES
from engine.store.commands import ABOUT, PREFIXES, command_of, command_of_stage, first_stage
from engine.store.files import read_json


MANIFEST = "run.json"
DRAFT = "run.partial.json"
"""What an unfinished stage has written so far; readers never look at it."""

RESERVED = ("corpus", "packages", "models", "attribution", "control", "retraining")
"""Folders of the cache that hold no run."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True)
class Run:
    """A finished run folder, opened: every table its manifest names was written whole."""

    name: str
    path: Path
    manifest: dict[str, Any] = field(hash=False, repr=False)

    @property
    def kind(self) -> str:
        """prism, dense, retrofit, heads or models."""
        return self.manifest["kind"]

    @property
    def tables(self) -> dict[str, dict[str, Any]]:
        """Rows and files of each table by name."""
        return self.manifest["tables"]

    @property
    def arrays(self) -> dict[str, dict[str, Any]]:
        """Stage and files of each group of numeric arrays by name."""
        return self.manifest.get("arrays", {})

    @property
    def stamp(self) -> str:
        """Fingerprint of the manifest; changes whenever any table does, so it is a cache key."""
        return fingerprint(self.manifest)

    @property
    def model_path(self) -> Path:
        """Folder of the model."""
        return self.path / "model"

    def has(self, table: str) -> bool:
        """Whether the run holds `table`."""
        return table in self.tables

    def files(self, table: str) -> list[Path]:
        """Files of a table in order.

        Raises:
            ConfigError: No table has that name.
            CacheMissing: The run does not hold it.
            CacheStale: The manifest names a file outside the run's folder.
        """
        if table not in TABLES:
            raise ConfigError(f"There is no table called {table!r}; there are {', '.join(TABLES)}.")
        if not self.has(table):
            raise CacheMissing(self._why_no(table))
        return [self.inside(entry["path"]) for entry in self.tables[table]["files"]]

    def inside(self, name: str) -> Path:
        """A file of the manifest, which may not lie outside the run's folder."""
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise CacheStale(
                f"The manifest of {self.path} names {name!r}, outside its folder; it is not read."
            )
        return self.path / name

    def _why_no(self, table: str) -> str:
        if self.kind in ABOUT and not table.startswith(PREFIXES[self.kind]):
            return (
                f"Run {self.name} is about {ABOUT[self.kind]} and has no table {table}: it holds "
                "no prototypes. Choose another run; `headwater info --all` lists them."
            )
        return f"Run {self.name} has no table {table}; make it with `{self.command_for(table)}`."

    def command_for(self, table: str) -> str:
        """The command that makes a table of this run."""
        return command_of(self.kind, table, self.name)

    def command_of_stage(self, stage: str) -> str:
        """The command that runs, or resumes, a stage of this run."""
        return command_of_stage(self.kind, stage, self.name)


@dataclass(frozen=True)
class BrokenRun:
    """A folder that looks like a run and cannot be opened."""

    name: str
    path: Path
    reason: str


def valid_name(name: str) -> str:
    """`name`, if it may name a run: letters, digits, dot, dash and underscore, no path.

    Raises:
        ConfigError: It may not.
    """
    if not _NAME.fullmatch(name) or name in RESERVED:
        shown = name[:60].encode("unicode_escape").decode()
        raise ConfigError(
            f"{shown!r} cannot name a run: use up to 100 letters, digits, dots, dashes and "
            f"underscores, and none of {', '.join(RESERVED)}."
        )
    return name


def resolve_run(name_or_path: str | Path) -> Path:
    """The folder of a run, by name (shipped runs first, then the cache) or by path.

    The folder need not exist: a name that is new resolves to its place in the cache.

    Raises:
        ConfigError: A name that is neither a path nor allowed as a name.
    """
    if isinstance(name_or_path, Path) or _looks_like_path(name_or_path):
        text = str(name_or_path)
        if not text or "\0" in text:
            raise ConfigError("A run folder cannot have an empty name or a NUL byte in it.")
        return Path(text).expanduser()
    name = valid_name(name_or_path)
    shipped = assets_root() / name
    return shipped if (shipped / MANIFEST).is_file() else cache_root() / name


def open_run(name_or_path: str | Path) -> Run:
    """Open a run by name or by path.

    Raises:
        ConfigError: The name is not allowed.
        CacheMissing: There is no such folder, or it is not a run.
        CacheStale: Its manifest is damaged.
        SchemaMismatch: It was written under another schema version.
    """
    path = resolve_run(name_or_path)
    if not (path / MANIFEST).is_file():
        raise CacheMissing(_why_not_a_run(path, str(name_or_path)))
    return _load(path)


def stored_manifest(path: Path) -> dict[str, Any] | None:
    """What the folder of a run says of it, finished or not; None where there is no run.

    For questions about a run that may still be training: its settings, never its tables.

    Raises:
        CacheStale: The manifest is damaged.
    """
    for name in (DRAFT, MANIFEST):
        if (path / name).is_file():
            return read_json(path / name)
    return None


def open_named_run(name: str) -> Run:
    """Open a run by name alone, for names that come from a URL: a path is refused.

    Raises:
        ConfigError: The name is not allowed.
        CacheMissing: There is no such run.
        CacheStale: Its manifest is damaged.
        SchemaMismatch: It was written under another schema version.
    """
    return open_run(valid_name(name))


def resolve_model(name_or_path: str | Path) -> Path:
    """The model folder of a run, or a folder written by `save_pretrained` itself.

    A name that no run has may be that of such a folder in the working directory.

    Raises:
        ConfigError: The name is not allowed.
        CacheMissing: There is neither.
    """
    path = resolve_run(name_or_path)
    here = [] if path.exists() else [Path(name_or_path)]
    for folder in (path / "model", path, *here):
        if (folder / "config.json").is_file():
            return folder
    if not (path / MANIFEST).is_file():
        raise CacheMissing(_why_not_a_run(path, str(name_or_path)))
    raise CacheMissing(
        f"Run {path.name} holds no model; train one with `headwater train --run {path.name}`."
    )


def list_runs() -> list[Run]:
    """Every run that opens: shipped ones first, then those of the cache, by name."""
    return [found for found in _survey() if isinstance(found, Run)]


def list_broken() -> list[BrokenRun]:
    """Every folder that holds a manifest, finished or not, and does not open, with the reason."""
    return [found for found in _survey() if isinstance(found, BrokenRun)]


def _survey() -> list[Run | BrokenRun]:
    found: dict[str, Run | BrokenRun] = {}
    for root in (assets_root(), cache_root()):
        for path in sorted(root.iterdir()) if root.is_dir() else []:
            known = (path / MANIFEST).is_file() or (path / DRAFT).is_file()
            if known and path.name not in found and path.name not in RESERVED:
                found[path.name] = _load_or_reason(path)
    return list(found.values())


def _load_or_reason(path: Path) -> Run | BrokenRun:
    try:
        valid_name(path.name)
        if not (path / MANIFEST).is_file():
            raise CacheMissing(_why_not_a_run(path, path.name))
        return _load(path)
    except EngineError as error:
        return BrokenRun(path.name, path, str(error))


def _load(path: Path) -> Run:
    manifest = read_json(path / MANIFEST)
    whole = isinstance(manifest, dict) and isinstance(manifest.get("tables"), dict)
    if not whole or not isinstance(manifest.get("kind"), str):
        raise CacheStale(
            f"{path / MANIFEST} is not the manifest of a run. Remove the folder {path} and run "
            f"`headwater train --run {path.name}`."
        )
    version = manifest.get("schema_version")
    if version != SCHEMA_VERSION:
        stage = first_stage(manifest["kind"])
        raise SchemaMismatch(
            f"Run {path.name} was written under schema version {version}, and this engine reads "
            f"{SCHEMA_VERSION}. Rebuild it: remove {path}, then "
            f"`headwater {stage} --run {path.name}` and `headwater index --run {path.name}`."
        )
    flaw = _flaw(manifest)
    if flaw:
        raise CacheStale(
            f"{path / MANIFEST} is damaged: {flaw}. Copy the run again, or remove the folder "
            f"{path} and run `headwater {first_stage(manifest['kind'])} --run {path.name}`."
        )
    return Run(path.name, path, manifest)


def _flaw(manifest: dict[str, Any]) -> str:
    """What of the manifest's shape readers rely on and it lacks; empty where it is sound."""
    if not isinstance(manifest.get("created"), str):
        return "its `created` is no date"
    if not _maps_to_objects(manifest.get("stages")):
        return "its `stages` are no objects by name"
    optional = ("config", "corpus", "tokenizer", "model")
    wrong = [name for name in optional if not isinstance(manifest.get(name, {}), dict)]
    if wrong:
        return f"its `{wrong[0]}` is no object"
    groups = manifest.get("arrays", {})
    if not (_maps_to_objects(groups) and all(map(_is_sound_group, groups.values()))):
        return "its `arrays` do not list files"
    tables = manifest["tables"]
    unsound = [name for name, facts in tables.items() if not _is_sound_table(facts)]
    return f"its table {unsound[0]!r} does not list rows and files" if unsound else ""


def _maps_to_objects(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(entry, dict) for entry in value.values())


def _is_sound_table(facts: Any) -> bool:
    """Whether an entry of `tables` has its number of rows and name, size and digest of files."""
    if not (isinstance(facts, dict) and type(facts.get("rows")) is int):
        return False
    return _are_sound_files(facts.get("files"))


def _is_sound_group(entry: dict[str, Any]) -> bool:
    """Whether an entry of `arrays` has its stage and files."""
    return isinstance(entry.get("stage"), str) and _are_sound_files(entry.get("files"))


def _are_sound_files(files: Any) -> bool:
    kinds = {"path": str, "bytes": int, "sha256": str}
    return isinstance(files, list) and all(
        isinstance(file, dict) and all(type(file.get(n)) is kind for n, kind in kinds.items())
        for file in files
    )


def _why_not_a_run(path: Path, asked: str) -> str:
    if (path / DRAFT).is_file():
        return (
            f"Run {path.name} is unfinished; the command that started it resumes it, "
            f"for example `headwater train --run {path.name}`."
        )
    if (path / "config.json").is_file():
        return (
            f"{path} is a model folder and not a run: `headwater decompose` and "
            f"`headwater generate` accept it, and the pages need an index of it."
        )
    if path.is_dir():
        return f"{path} holds no {MANIFEST}: it is no run. `headwater info --all` lists them."
    names = ", ".join(run.name for run in list_runs()) or "none yet"
    return (
        f"There is no run {asked!r}; runs here: {names}. "
        f"`headwater demo` prepares the shipped one and `headwater train` makes a new one."
    )


def _looks_like_path(text: str) -> bool:
    return not text or "/" in text or "\\" in text or text in (".", "..") or text.startswith("~")
