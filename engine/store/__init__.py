"""The only reader and writer of Parquet tables, run manifests and cached files."""

from engine.store.arrays import ArrayFiles, ArraySpec, open_array
from engine.store.checking import check_run
from engine.store.files import (
    atomic_file,
    atomic_folder,
    one_at_a_time,
    read_json,
    remove_leftovers,
    write_array_atomic,
    write_bytes_atomic,
    write_json_atomic,
)
from engine.store.reading import query, read_table
from engine.store.runs import (
    BrokenRun,
    Run,
    list_broken,
    list_runs,
    open_named_run,
    open_run,
    resolve_model,
    resolve_run,
    stored_manifest,
    valid_name,
)
from engine.store.tables import (
    Frame,
    iter_foreign_column,
    parquet_bytes,
    read_parquet,
    write_parquet,
)
from engine.store.writer import RunWriter


__all__ = [
    "ArrayFiles",
    "ArraySpec",
    "BrokenRun",
    "Frame",
    "Run",
    "RunWriter",
    "atomic_file",
    "atomic_folder",
    "check_run",
    "iter_foreign_column",
    "list_broken",
    "list_runs",
    "one_at_a_time",
    "open_array",
    "open_named_run",
    "open_run",
    "parquet_bytes",
    "query",
    "read_json",
    "read_parquet",
    "read_table",
    "remove_leftovers",
    "resolve_model",
    "resolve_run",
    "stored_manifest",
    "valid_name",
    "write_array_atomic",
    "write_bytes_atomic",
    "write_json_atomic",
    "write_parquet",
]
