"""Writing a run: tables and shards first, the manifest last; an interrupted stage resumes."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from engine.errors import CacheMissing, CacheStale, ConfigError
from engine.provenance import engine_version, file_sha256, fingerprint, fingerprint_model, now_iso
from engine.schema import SCHEMA_VERSION, TABLES, TableSpec
from engine.store.files import read_json, remove_leftovers, write_json_atomic
from engine.store.runs import DRAFT, MANIFEST, valid_name
from engine.store.tables import Frame, write_parquet


_ADDED = "added"
"""Folder of a run that holds rows added to tables that were finished."""


class RunWriter:
    """The one writer of a run folder.

    What is written goes into a draft of the manifest. `finish_stage` publishes the draft as
    `run.json`, so readers see a stage whole or not at all, and a stage that was killed finds in
    the draft what it need not write again.
    """

    def __init__(self, path: Path, draft: dict[str, Any]) -> None:
        self.path = path
        self._draft = draft
        self._stage: str | None = None
        self._withdrawn: set[str] = set()

    @classmethod
    def create(
        cls, path: Path, *, name: str, kind: str, identity: Mapping[str, Any]
    ) -> "RunWriter":
        """Start a run, or go on with one of the same identity.

        Args:
            path: Folder of the run; its last part is the run's id.
            name: Name shown to people.
            kind: prism, dense or retrofit.
            identity: What determines the run (config, corpus, tokenizer, ...); becomes top-level
                values of the manifest.

        Raises:
            CacheStale: The folder holds a run of another identity, which is never overwritten.
            ConfigError: The folder is a model's own.
        """
        valid_name(path.name)
        if (path / "config.json").is_file():
            raise ConfigError(
                f"{path} holds a model, and a run needs a folder of its own. Name another with "
                "--run."
            )
        identity_fingerprint = fingerprint({"kind": kind, **identity})
        if (path / MANIFEST).is_file() or (path / DRAFT).is_file():
            writer = cls.resume(path)
            if writer._draft.get("identity") != identity_fingerprint:
                raise CacheStale(
                    f"Run {path.name} exists and was made with other settings or another corpus. "
                    f"Choose another name with --run, or remove {path} first."
                )
            return writer
        manifest = {
            "schema_version": SCHEMA_VERSION,
            "engine_version": engine_version(),
            "run_id": path.name,
            "name": name,
            "kind": kind,
            "created": now_iso(),
            "identity": identity_fingerprint,
            **identity,
            "stages": {},
            "tables": {},
        }
        writer = cls(path, manifest)
        writer._save_draft()
        return writer

    @classmethod
    def resume(cls, path: Path) -> "RunWriter":
        """Go on with the run in `path`; files an interrupted write left behind are removed.

        Raises:
            CacheMissing: The folder holds no run.
            CacheStale: The run was written under another schema version.
        """
        source = path / (DRAFT if (path / DRAFT).is_file() else MANIFEST)
        if not source.is_file():
            raise CacheMissing(
                f"{path} holds no {MANIFEST}: it is no run. `headwater info --all` lists them."
            )
        draft = read_json(source)
        if draft.get("schema_version") != SCHEMA_VERSION:
            raise CacheStale(
                f"Run {path.name} was written under schema version {draft.get('schema_version')}, "
                f"and this engine writes {SCHEMA_VERSION}. Remove {path} and run it again."
            )
        remove_leftovers(path)
        return cls(path, draft)

    @property
    def manifest(self) -> Mapping[str, Any]:
        """The manifest as it would be published now; read it, never change it."""
        return self._draft

    def begin_stage(self, stage: str, identity: Any) -> bool:
        """Enter a stage; tables written from now on belong to it.

        What an earlier call with another identity wrote is gone for this writer at once, and for
        readers when the first table is written: a stage that fails before it has a result leaves
        the run as it was.

        Args:
            stage: Name of the stage.
            identity: What determines its result. When an earlier, unfinished call had another
                identity, what that call wrote is forgotten and will be written again.

        Returns:
            True if the stage is finished with this identity and need not run.
        """
        mark = fingerprint(identity)
        entry = self._draft["stages"].get(stage)
        self._stage = stage
        if entry is not None and entry.get("identity") == mark:
            return "finished" in entry
        own = [n for n, t in self._draft["tables"].items() if t.get("stage") == stage]
        for table in own:
            del self._draft["tables"][table]
        _drop_arrays(self._draft, stage)
        self._withdrawn.add(stage)
        self._draft["stages"][stage] = {"identity": mark, "started": now_iso()}
        return False

    def write_table(self, table: str, frame: Frame) -> None:
        """Write a whole table.

        Raises:
            SchemaMismatch: The frame breaks the contract; nothing is written.
            StorageError: The disk is full or closed to us; nothing is written.
        """
        spec = _spec(table, sharded=False)
        self._withdraw(table)
        entry = self._write(f"{table}.parquet", frame, spec)
        self._draft["tables"][table] = {
            "stage": self._stage,
            "rows": entry["rows"],
            "files": [entry],
        }
        self._save_draft()

    def append_rows(self, table: str, part: str, frame: Frame) -> None:
        """Add rows to a table that is there, in a file of their own; its other files stay.

        The table goes on belonging to the stage that wrote it. Rows whose key is there already
        must not be added; `check_run` finds them.

        Args:
            table: The table.
            part: Names the file; a file of that name is replaced.
            frame: The rows.

        Raises:
            CacheMissing: The run does not hold the table.
            SchemaMismatch: The frame breaks the contract; nothing is written.
            StorageError: The disk is full or closed to us; nothing is written.
        """
        spec = _spec(table, sharded=False)
        known = self._draft["tables"].get(table)
        if known is None:
            raise CacheMissing(f"Run {self.path.name} has no table {table} to add rows to.")
        entry = self._write(f"{_ADDED}/{part}/{table}.parquet", frame, spec)
        files = [f for f in known["files"] if f["path"] != entry["path"]] + [entry]
        rows = sum(file["rows"] for file in files)
        self._draft["tables"][table] = {**known, "rows": rows, "files": files}
        self._save_draft()

    def write_shard(self, table: str, index: int, frame: Frame) -> None:
        """Write shard `index` of a sharded table; keys rise from shard to shard.

        Raises:
            SchemaMismatch: The frame breaks the contract; nothing is written.
            StorageError: The disk is full or closed to us; nothing is written.
        """
        spec = _spec(table, sharded=True)
        entry = self._write(_shard_path(table, index), frame, spec)
        known = self._draft["tables"].get(table, {}).get("files", [])
        files = [f for f in known if f["path"] != entry["path"]] + [entry]
        self._draft["tables"][table] = {
            "stage": self._stage,
            "rows": sum(f["rows"] for f in files),
            "files": sorted(files, key=lambda f: f["path"]),
        }
        self._save_draft()

    def shard_done(self, table: str, index: int) -> bool:
        """Whether a shard was written by this or an earlier call and is as it was written."""
        name = _shard_path(table, index)
        entries = self._draft["tables"].get(table, {}).get("files", [])
        entry = next((f for f in entries if f["path"] == name), None)
        path = self.path / name
        return entry is not None and path.is_file() and path.stat().st_size == entry["bytes"]

    def array_folder(self, group: str) -> Path:
        """Folder in which the stage fills the array files of a group."""
        self._make_way()
        return self.path / group

    def register_arrays(self, group: str, names: Iterable[str]) -> None:
        """Name the finished array files of a group, published with the stage."""
        entries = []
        for name in names:
            path = self.array_folder(group) / f"{name}.npy"
            entries.append(
                {
                    "path": path.relative_to(self.path).as_posix(),
                    "bytes": path.stat().st_size,
                    "sha256": file_sha256(path),
                }
            )
        arrays = self._draft.setdefault("arrays", {})
        arrays[group] = {"stage": self._stage, "files": sorted(entries, key=lambda e: e["path"])}
        self._save_draft()

    def update(self, key: str, value: Any) -> None:
        """Set a top-level value of the manifest, published with the next finished stage."""
        if key in ("tables", "arrays", "stages", "schema_version", "identity"):
            raise ConfigError(f"{key} of a manifest is written by the store alone.")
        self._draft[key] = value
        self._save_draft()

    def finish_stage(self, stage: str, facts: Mapping[str, Any]) -> None:
        """Publish everything written so far; `run.json` is replaced in one step, last of all.

        Args:
            stage: Name of the stage.
            facts: What is worth keeping of it: seconds, sizes, resolved settings.
        """
        entry = self._draft["stages"].get(stage, {})
        self._draft["stages"][stage] = {**entry, **facts, "finished": now_iso()}
        self._draft["engine_version"] = engine_version()
        model = self.path / "model"
        if (model / "config.json").is_file():
            facts_of_model = self._draft.get("model") or {}
            self._draft["model"] = {**facts_of_model, "fingerprint": fingerprint_model(model)}
        self._withdrawn.clear()
        write_json_atomic(self.path / MANIFEST, self._draft)
        (self.path / DRAFT).unlink(missing_ok=True)
        self._remove_orphans()

    def _remove_orphans(self) -> None:
        """Remove shards and added rows that an earlier call wrote and no table names."""
        tables = self._draft["tables"].values()
        named = {file["path"] for table in tables for file in table["files"]}
        for pattern in ("*/part-*.parquet", f"{_ADDED}/*/*.parquet"):
            for path in self.path.glob(pattern):
                if path.relative_to(self.path).as_posix() not in named:
                    path.unlink(missing_ok=True)

    def _write(self, name: str, frame: Frame, spec: TableSpec) -> dict[str, Any]:
        self._make_way()
        path = self.path / name
        rows = write_parquet(path, frame, spec)
        size = path.stat().st_size
        return {"path": name, "rows": rows, "bytes": size, "sha256": file_sha256(path)}

    def _withdraw(self, table: str) -> None:
        """Forget a table, in the published manifest too, before its file is replaced."""
        self._draft["tables"].pop(table, None)
        if not (self.path / MANIFEST).is_file():
            return
        published = read_json(self.path / MANIFEST)
        if published["tables"].pop(table, None) is not None:
            write_json_atomic(self.path / MANIFEST, published)

    def _make_way(self) -> None:
        """Take what begun stages wrote earlier out of the published manifest too."""
        stages, self._withdrawn = self._withdrawn, set()
        if not stages or not (self.path / MANIFEST).is_file():
            return
        published = read_json(self.path / MANIFEST)
        gone = [n for n, t in published["tables"].items() if t.get("stage") in stages]
        for table in gone:
            del published["tables"][table]
        dropped = [_drop_arrays(published, stage) for stage in sorted(stages)]
        if gone or any(dropped):
            write_json_atomic(self.path / MANIFEST, published)

    def _save_draft(self) -> None:
        self._make_way()
        write_json_atomic(self.path / DRAFT, self._draft)


def _drop_arrays(manifest: dict[str, Any], stage: str) -> bool:
    """Take a stage's groups of arrays out of a manifest; whether there were any."""
    groups = manifest.get("arrays", {})
    own = [name for name, entry in groups.items() if entry["stage"] == stage]
    for name in own:
        del groups[name]
    return bool(own)


def _spec(table: str, *, sharded: bool) -> TableSpec:
    spec = TABLES.get(table)
    if spec is None:
        raise ConfigError(f"There is no table called {table!r}; there are {', '.join(TABLES)}.")
    if spec.sharded != sharded:
        raise ConfigError(f"Table {table} is written with write_{'table' if sharded else 'shard'}.")
    return spec


def _shard_path(table: str, index: int) -> str:
    """`activations/part-00007.parquet` for the activations, the table's name for others."""
    return f"{table.removeprefix('prototype_')}/part-{index:05d}.parquet"
