"""Single Parquet tables: cast to the contract, checked, written atomically, read back."""

import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from engine.errors import CacheMissing, CacheStale, CorpusError, SchemaMismatch
from engine.schema import ROUNDING, SCHEMA_VERSION, ColumnSpec, TableSpec
from engine.store.files import atomic_file


ROW_GROUP_ROWS = 20_000
"""Rows a row group holds: small enough that a lookup by key reads little."""

Frame = pd.DataFrame | pa.Table | Mapping[str, Any]
"""What a table may be written from: a frame, an Arrow table or columns by name."""


def conform(spec: TableSpec, frame: Frame) -> pa.Table:
    """Cast `frame` to the table's Arrow schema, check it and sort it by its key.

    Raises:
        SchemaMismatch: A column is missing, unknown or of another type, or a value breaks the
            contract: null, not finite, out of range or a key that repeats.
    """
    columnar = isinstance(frame, pd.DataFrame | Mapping)
    names = list(frame.keys()) if columnar else frame.column_names
    wanted = [column.name for column in spec.columns]
    missing, unknown = set(wanted) - set(names), set(names) - set(wanted)
    if missing or unknown:
        raise SchemaMismatch(
            f"Table {spec.name} needs the columns {', '.join(wanted)}; "
            f"missing: {', '.join(sorted(missing)) or 'none'}; "
            f"unknown: {', '.join(sorted(unknown)) or 'none'}."
        )
    arrays = [_cast(spec, column, frame[column.name]) for column in spec.columns]
    if len({len(array) for array in arrays}) > 1:
        raise SchemaMismatch(f"Table {spec.name} has columns of different lengths.")
    table = sort_by_key(spec, pa.Table.from_arrays(arrays, schema=_labelled_schema(spec)))
    problems = table_problems(spec, table)
    if problems:
        raise SchemaMismatch(" ".join(problems))
    return table


def table_problems(spec: TableSpec, table: pa.Table) -> list[str]:
    """What breaks the contract in a table of the right schema, one sentence each.

    Checks nulls, finiteness, bounds, and that keys rise strictly from row to row.
    """
    problems = [text for column in spec.columns for text in _column_problems(spec, column, table)]
    falling, tied = _key_order(spec, table)
    if falling:
        problems.append(f"Table {spec.name} is not sorted by {', '.join(spec.key)}.")
    elif tied:
        problems.append(f"Table {spec.name} repeats a key ({', '.join(spec.key)}).")
    return problems


def sort_by_key(spec: TableSpec, table: pa.Table) -> pa.Table:
    """Rows in the order of the key; a table that already is comes back as it is."""
    if not _key_order(spec, table)[0]:
        return table
    return table.sort_by([(name, "ascending") for name in spec.key])


def write_parquet(path: Path, frame: Frame, spec: TableSpec) -> int:
    """Write one checked table to `path` in one step.

    Returns:
        Rows written.

    Raises:
        SchemaMismatch: The frame breaks the contract; nothing is written.
        StorageError: The disk is full or closed to us.
    """
    table = conform(spec, frame)
    with atomic_file(path) as file:
        pq.write_table(table, file, row_group_size=ROW_GROUP_ROWS, **_encoding(table))
    return table.num_rows


def _encoding(table: pa.Table) -> dict[str, Any]:
    """How columns are stored: numbers that seldom repeat byte by byte, all else in dictionaries.

    Numbers of one size share their first bytes, so these compress once they stand together; a
    dictionary makes small what repeats.
    """
    dictionary, split = [], {}
    for name, values in _leaves(table):
        first = values[:ROW_GROUP_ROWS]
        if _is_wide_number(first.type) and len(first.unique()) > len(first) / 10:
            split[name] = "BYTE_STREAM_SPLIT"
        else:
            dictionary.append(name)
    found: dict[str, Any] = {"compression": "zstd", "use_dictionary": dictionary}
    return found | {"column_encoding": split} if split else found


def _leaves(table: pa.Table) -> Iterator[tuple[str, pa.ChunkedArray]]:
    """Columns as Parquet knows them, lists as their elements."""
    for name in table.column_names:
        values = table[name]
        if pa.types.is_list(values.type):
            parts = [part.flatten() for part in values.chunks]
            yield f"{name}.list.element", pa.chunked_array(parts, values.type.value_type)
        else:
            yield name, values


def _is_wide_number(kind: pa.DataType) -> bool:
    """Whether values take four bytes or eight, which is what Parquet splits."""
    number = pa.types.is_floating(kind) or pa.types.is_integer(kind)
    return bool(number and kind.bit_width >= 32)


def read_parquet(path: Path, spec: TableSpec) -> pd.DataFrame:
    """Read one whole table written by `write_parquet`.

    Raises:
        CacheMissing: The file is not there.
        CacheStale: The file is truncated or no Parquet.
        SchemaMismatch: The file has other columns than the contract.
    """
    file = open_parquet(path, spec)
    try:
        return file.read().to_pandas()
    except (pa.ArrowException, OSError) as error:
        raise _damaged(path) from error


def open_parquet(path: Path, spec: TableSpec) -> pq.ParquetFile:
    """Open a table and compare its schema with the contract, metadata apart.

    Raises:
        CacheMissing: The file is not there.
        CacheStale: The file is truncated or no Parquet.
        SchemaMismatch: The file has other columns, or was written under another schema version.
    """
    try:
        file = pq.ParquetFile(path, memory_map=True)
    except FileNotFoundError as error:
        raise CacheMissing(f"The file {path} does not exist.") from error
    except (pa.ArrowException, OSError) as error:
        raise _damaged(path) from error
    found = file.schema_arrow
    version = (found.metadata or {}).get(b"headwater.schema_version", b"none").decode()
    if version != str(SCHEMA_VERSION):
        raise SchemaMismatch(
            f"{path} was written under schema version {version}; "
            f"this engine reads {SCHEMA_VERSION}."
        )
    if not found.remove_metadata().equals(spec.schema):
        raise SchemaMismatch(f"{path} does not have the columns of table {spec.name}.")
    return file


def iter_foreign_column(path: Path, column: str) -> Iterator[str]:
    """The texts of one column of somebody else's Parquet file, a batch at a time; nulls skipped.

    Raises:
        CorpusError: The file is no Parquet, or has no such column.
    """
    try:
        file = pq.ParquetFile(path)
    except (pa.ArrowException, OSError) as error:
        raise CorpusError(f"{path} cannot be read as Parquet.") from error
    if column not in file.schema_arrow.names:
        raise CorpusError(
            f"{path} has no column {column!r}; it has: {', '.join(file.schema_arrow.names)}. "
            "Name one with --text-column."
        )
    try:
        for batch in file.iter_batches(batch_size=1_000, columns=[column]):
            yield from (str(text) for text in batch.column(0).to_pylist() if text is not None)
    except (pa.ArrowException, OSError) as error:
        raise CorpusError(f"{path} is damaged: not all of its rows can be read.") from error


def parquet_bytes(frame: pd.DataFrame) -> bytes:
    """A frame as the bytes of a Parquet file, for a download."""
    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), buffer, compression="zstd")
    return buffer.getvalue()


def _labelled_schema(spec: TableSpec) -> pa.Schema:
    return spec.schema.with_metadata(
        {"headwater.table": spec.name, "headwater.schema_version": str(SCHEMA_VERSION)}
    )


def _cast(spec: TableSpec, column: ColumnSpec, values: Any) -> pa.Array | pa.ChunkedArray:
    """Values as an Arrow array of the column's type; NaN becomes null."""
    try:
        if isinstance(values, pa.Array | pa.ChunkedArray):
            return values.cast(column.type)
        if len(values) == 0:
            return pa.array([], type=column.type)  # whatever type an empty column was given
        if pa.types.is_floating(column.type):
            floats = pd.Series(values).to_numpy(np.float64, na_value=np.nan)
            with np.errstate(over="ignore"):
                narrowed = floats.astype(column.type.to_pandas_dtype())
            return pa.array(narrowed, type=column.type, from_pandas=True)
        if pa.types.is_string(column.type):
            values = pd.Series(values).astype(object)
        if pa.types.is_integer(column.type):
            numbers = pa.array(pd.Series(values), from_pandas=True)
            return numbers.cast(column.type)  # refuses fractions and overflow
        return pa.array(values, type=column.type, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise SchemaMismatch(
            f"Column {column.name} of table {spec.name} must be {column.type}: {error}."
        ) from error


def _column_problems(spec: TableSpec, column: ColumnSpec, table: pa.Table) -> Iterator[str]:
    values = table.column(column.name)
    where = f"Column {column.name} of table {spec.name}"
    if values.null_count and not column.nullable:
        yield f"{where} has {values.null_count} empty values and allows none."
    if pa.types.is_list(column.type):
        values = pa.chunked_array(
            [part.flatten() for part in values.chunks], column.type.value_type
        )
    if not pa.types.is_floating(values.type) and not pa.types.is_integer(values.type):
        return
    numbers = values.drop_null().to_numpy()
    if len(numbers) == 0:
        return
    if numbers.dtype.kind == "f" and not np.isfinite(numbers).all():
        yield f"{where} holds values that are not finite."
        return
    low, high = column.bounds
    slack = ROUNDING if numbers.dtype.kind == "f" else 0
    smallest, largest = numbers.min().item(), numbers.max().item()
    if low is not None and smallest < low - slack:
        yield f"{where} holds {smallest:g}, below {low:g}."
    if high is not None and largest > high + slack:
        yield f"{where} holds {largest:g}, above {high:g}."


def _key_order(spec: TableSpec, table: pa.Table) -> tuple[bool, bool]:
    """Whether some row has a smaller key than the row before it, and whether one has the same."""
    if table.num_rows < 2:
        return False, False
    tied = np.ones(table.num_rows - 1, dtype=bool)
    falling = np.zeros(table.num_rows - 1, dtype=bool)
    for name in spec.key:
        values = table.column(name)
        before, after = values.slice(0, table.num_rows - 1), values.slice(1)
        falling |= tied & _compare("greater", before, after)
        tied &= _compare("equal", before, after)
    return bool(falling.any()), bool(tied.any())


def _compare(function: str, before: pa.ChunkedArray, after: pa.ChunkedArray) -> np.ndarray:
    return pc.call_function(function, [before, after]).fill_null(False).to_numpy()


def _damaged(path: Path) -> CacheStale:
    return CacheStale(
        f"{path} is damaged or no Parquet file; remove it and run the command that makes it again."
    )
