"""Is a run whole? Every difference between manifest, files and contract, as sentences."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from engine.errors import CacheStale, EngineError
from engine.provenance import file_sha256, fingerprint_model
from engine.schema import TABLES, TableSpec
from engine.store.files import read_json
from engine.store.reading import query
from engine.store.runs import DRAFT, Run
from engine.store.tables import open_parquet, table_problems


_REFERENCES = {"document": "documents", "prototype": "prototypes", "neighbour": "prototypes"}
"""Columns that count rows of another table."""


def check_run(run: Run, *, deep: bool = True) -> list[str]:
    """Compare a run with its manifest and the contract.

    Args:
        run: An opened run.
        deep: Also read every byte: file hashes, values, keys, references and the model.

    Returns:
        Problems, one sentence each; an empty list means the run is whole.
    """
    problems = [*_draft_problems(run), *_array_problems(run, deep=deep)]
    for table, entry in run.tables.items():
        if table not in TABLES:
            problems.append(f"The manifest names a table {table} that the contract does not have.")
        else:
            found = list(_table_problems(run, TABLES[table], entry, deep=deep))
            hint = f"Make it again with `{run.command_for(table)}`."
            problems += [f"{problem} {hint}" for problem in found]
    if deep and not problems:
        problems += _reference_problems(run)
    if deep:
        problems += _model_problems(run)
    return problems


def _draft_problems(run: Run) -> Iterator[str]:
    if not (run.path / DRAFT).is_file():
        return
    stages = read_json(run.path / DRAFT).get("stages", {})
    for stage, entry in stages.items():
        if "finished" not in entry:
            yield f"Stage {stage} is unfinished; `{run.command_of_stage(stage)}` resumes it."


def _array_problems(run: Run, *, deep: bool) -> Iterator[str]:
    for entry in run.arrays.values():
        hint = f"Make it again with `{run.command_of_stage(entry['stage'])}`."
        for file in entry["files"]:
            try:
                path = run.inside(file["path"])
            except CacheStale as error:
                yield str(error)
                continue
            size = path.stat().st_size if path.is_file() else None
            if size is None:
                yield f"{file['path']} is missing. {hint}"
            elif size != file["bytes"]:
                yield f"{file['path']} has {size} bytes instead of {file['bytes']}. {hint}"
            elif deep and file_sha256(path) != file["sha256"]:
                yield f"{file['path']} is not the file that was written: its hash differs. {hint}"


def _table_problems(
    run: Run, spec: TableSpec, entry: dict[str, Any], *, deep: bool
) -> Iterator[str]:
    try:
        paths = run.files(spec.name)
    except CacheStale as error:
        yield str(error)
        return
    rows = 0
    last_key: tuple[Any, ...] | None = None
    overlapping = False
    for path, file in zip(paths, entry["files"], strict=True):
        size = path.stat().st_size if path.is_file() else None
        if size is None:
            yield f"{file['path']} is missing."
            return
        if size != file["bytes"]:
            yield f"{file['path']} has {size} bytes instead of {file['bytes']}."
            return
        try:
            rows += open_parquet(path, spec).metadata.num_rows
            if deep:
                table = open_parquet(path, spec).read()
                yield from _file_problems(path, file, spec, table)
                first, last = _end_keys(spec, table)
                overlapping |= last_key is not None and first is not None and first <= last_key
                last_key = last or last_key
        except (EngineError, pa.ArrowException, OSError) as error:
            yield f"{file['path']} cannot be read: {error}"
            return
    if rows != entry["rows"]:
        yield f"Table {spec.name} has {rows} rows instead of {entry['rows']}."
    if overlapping and _repeats_key(run, spec):
        yield f"Table {spec.name} repeats a key across its files."


def _file_problems(
    path: Path, file: dict[str, Any], spec: TableSpec, table: pa.Table
) -> Iterator[str]:
    if file_sha256(path) != file["sha256"]:
        yield f"{file['path']} is not the file that was written: its hash differs."
    yield from table_problems(spec, table)


def _end_keys(
    spec: TableSpec, table: pa.Table
) -> tuple[tuple[Any, ...] | None, tuple[Any, ...] | None]:
    if table.num_rows == 0:
        return None, None
    keys = table.select(list(spec.key))
    first, last = keys.slice(0, 1).to_pylist()[0], keys.slice(table.num_rows - 1).to_pylist()[0]
    return tuple(first.values()), tuple(last.values())


def _repeats_key(run: Run, spec: TableSpec) -> bool:
    """Whether two rows of a table whose files overlap have one key; DuckDB spills if it must."""
    keys = ", ".join(f'"{name}"' for name in spec.key)
    counted = f"SELECT 1 FROM {spec.name} GROUP BY {keys} HAVING count(*) > 1 LIMIT 1"
    return len(query(run, counted)) > 0


def _reference_problems(run: Run) -> Iterator[str]:
    for table in run.tables:
        for column in TABLES[table].columns:
            target = None if pa.types.is_string(column.type) else _REFERENCES.get(column.name)
            if target is None or target == table or not run.has(target):
                continue
            largest = query(run, f'SELECT max("{column.name}") AS largest FROM {table}')
            value = largest["largest"].iloc[0]
            if not pd.isna(value) and value >= run.tables[target]["rows"]:
                yield (
                    f"Table {table} names {column.name} {int(value)}, and {target} has "
                    f"{run.tables[target]['rows']} rows."
                )


def _model_problems(run: Run) -> Iterator[str]:
    expected = (run.manifest.get("model") or {}).get("fingerprint")
    if expected is None or run.manifest.get("model", {}).get("elsewhere"):
        return
    if not (run.model_path / "config.json").is_file():
        yield f"The model folder {run.model_path} is missing."
    elif fingerprint_model(run.model_path) != expected:
        yield f"The model in {run.model_path} is not the one the tables were made with."
