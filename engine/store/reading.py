"""Lazy reads: DuckDB answers questions over a run's Parquet files, a few rows at a time."""

import re
import threading
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd

from engine.errors import CacheMissing, CacheStale, ConfigError, SchemaMismatch
from engine.schema import TABLES
from engine.store.runs import Run
from engine.store.tables import open_parquet


_MANY = 64
"""From this many values on, a list filter joins instead of spelling out its values."""
_lock = threading.Lock()


@lru_cache(maxsize=1)
def _connection() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(":memory:")
    connection.execute("SET parquet_metadata_cache = true")
    return connection


def read_table(
    run: Run,
    table: str,
    *,
    columns: Sequence[str] | None = None,
    where: Mapping[str, Any] | None = None,
    order_by: str | None = None,
    descending: bool = False,
    limit: int | None = None,
) -> pd.DataFrame:
    """Rows of a table that match, read without loading the rest of it.

    Empty values come back as NaN, also inside a list of numbers.

    Args:
        run: An opened run.
        table: Table of `engine.schema`.
        columns: Columns in the order wanted; None reads all.
        where: Per column a value it must equal, a collection it must lie in, or None for empty.
        order_by: Column to sort by; ties, and everything when None, follow the table's key.
        descending: Sort `order_by` from high to low.
        limit: Rows at most.

    Raises:
        ConfigError: A table or column name is unknown.
        CacheMissing: The run does not hold the table.
        CacheStale: A file is truncated, foreign or missing.
        SchemaMismatch: A file has other columns than the contract.
    """
    wanted = [_column(table, name) for name in columns] if columns is not None else ["*"]
    conditions, parameters = _conditions(table, where or {})
    order = [_column(table, name) for name in TABLES[table].key] if table in TABLES else []
    if order_by is not None:
        direction = " DESC NULLS LAST" if descending else " NULLS LAST"
        order.insert(0, _column(table, order_by) + direction)
    sql = f"SELECT {', '.join(wanted)} FROM {_source(run, table, where)}"
    sql += f" WHERE {' AND '.join(conditions)}" if conditions else ""
    sql += f" ORDER BY {', '.join(order)}"
    if limit is not None:
        sql += " LIMIT ?"
        parameters.append(int(limit))
    return _run_sql(run, sql, parameters)


def query(run: Run, sql: str, parameters: Sequence[Any] = ()) -> pd.DataFrame:
    """Answer one SELECT in which each table of the run has its own name.

    Values belong in `parameters` (`?` in the text), never in the text itself.

    Raises:
        ConfigError: The text is not a single SELECT.
        CacheMissing: A table of the contract is named that the run does not hold.
        CacheStale: A file is truncated, foreign or missing.
    """
    statements = duckdb.extract_statements(sql)
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise ConfigError("A query of a run is one SELECT.")
    named = [name for name in TABLES if re.search(rf"\b{name}\b", sql)]
    views = [f"CREATE TEMP VIEW {name} AS SELECT * FROM {_source(run, name)}" for name in named]
    return _run_sql(run, sql, list(parameters), views)


def _run_sql(run: Run, sql: str, parameters: list[Any], views: Iterable[str] = ()) -> pd.DataFrame:
    with _lock:
        cursor = _connection().cursor()
    try:
        for view in views:
            cursor.execute(view)
        return _unmasked(cursor.execute(sql, [_plain(value) for value in parameters]).df())
    except (duckdb.IOException, duckdb.InvalidInputException) as error:
        raise CacheStale(
            f"A table of run {run.name} could not be read; `headwater check --run {run.name}` "
            f"says which file is damaged."
        ) from error
    finally:
        cursor.close()


def _unmasked(frame: pd.DataFrame) -> pd.DataFrame:
    """Empty numbers inside lists as NaN: DuckDB masks them, and `np.stack` would read them as 0."""
    for name, values in frame.items():
        if len(values) and isinstance(values.iloc[0], np.ndarray):
            masked = values.map(lambda value: isinstance(value, np.ma.MaskedArray))
            filled = [np.ma.filled(value.astype(float), np.nan) for value in values[masked]]
            frame.loc[masked, name] = pd.Series(filled, index=frame.index[masked], dtype=object)
    return frame


def _source(run: Run, table: str, where: Mapping[str, Any] | None = None) -> str:
    """`read_parquet([...])` over the files of a table that may hold rows of `where`."""
    files = run.files(table)
    entries = run.tables[table]["files"]
    value = (where or {}).get(TABLES[table].key[0])
    if len(files) > 1 and isinstance(value, int | np.integer):
        bounds = [
            _check_file(run, table, path, entry["bytes"])
            for path, entry in zip(files, entries, strict=True)
        ]
        holding = [f for f, (low, high) in zip(files, bounds, strict=True) if low <= value <= high]
        files = holding or files[:1]
    else:
        for path, entry in zip(files, entries, strict=True):
            _check_file(run, table, path, entry["bytes"])
    quoted = ", ".join("'" + _literal(path).replace("'", "''") + "'" for path in files)
    return f"read_parquet([{quoted}])"


def _check_file(run: Run, table: str, path: Path, size: int) -> tuple[Any, Any]:
    """Refuse a file that is missing, of another size, no Parquet, or of another schema.

    Returns:
        Smallest and largest value of the first key column.
    """
    again = f"Make it again with `{run.command_for(table)}`."
    try:
        status = path.stat()
        if status.st_size != size:
            raise CacheStale(f"{path} has {status.st_size} bytes instead of {size}. {again}")
        return _checked_bounds(path, table, status.st_mtime_ns)
    except (FileNotFoundError, CacheMissing) as error:
        raise CacheStale(f"{path} is named in the run's manifest and missing. {again}") from error
    except SchemaMismatch as error:
        raise SchemaMismatch(f"{error} {again}") from error


@lru_cache(maxsize=4096)
def _checked_bounds(path: Path, table: str, modified: int) -> tuple[Any, Any]:
    """Compare a file's schema with the contract, once for every time it was written.

    Returns:
        Smallest and largest value of the first key column, by which the rows are sorted.
    """
    del modified
    spec = TABLES[table]
    with open_parquet(path, spec) as file:
        groups = file.metadata.num_row_groups
        if file.metadata.num_rows == 0:
            return (0, -1)
        column = [c.name for c in spec.columns].index(spec.key[0])
        ends = [file.metadata.row_group(g).column(column).statistics for g in (0, groups - 1)]
        return (ends[0].min, ends[1].max)


def _conditions(table: str, where: Mapping[str, Any]) -> tuple[list[str], list[Any]]:
    conditions: list[str] = []
    parameters: list[Any] = []
    for name, value in where.items():
        column = _column(table, name)
        if value is None:
            conditions.append(f"{column} IS NULL")
        elif isinstance(value, str | bytes) or not isinstance(value, Iterable):
            conditions.append(f"{column} = ?")
            parameters.append(value)
        else:
            values = [_plain(item) for item in value]
            if len(values) >= _MANY:
                conditions.append(f"{column} IN (SELECT unnest(?))")
                parameters.append(values)
            else:
                marks = ", ".join("?" * len(values))
                conditions.append(f"{column} IN ({marks})" if values else "false")
                parameters.extend(values)
    return conditions, parameters


def _column(table: str, name: str) -> str:
    """A column's name, quoted, if the contract has it."""
    spec = TABLES.get(table)
    if spec is None:
        raise ConfigError(f"There is no table called {table!r}; there are {', '.join(TABLES)}.")
    if name not in [column.name for column in spec.columns]:
        known = ", ".join(column.name for column in spec.columns)
        raise ConfigError(f"Table {table} has no column {name!r}; it has {known}.")
    return f'"{name}"'


def _plain(value: Any) -> Any:
    """NumPy scalars as Python values; DuckDB binds those."""
    return value.item() if hasattr(value, "item") and getattr(value, "ndim", 0) == 0 else value


def _literal(path: Path) -> str:
    """A path in which no character stands for others in DuckDB's file patterns."""
    return re.sub(r"[\[*?]", lambda match: f"[{match.group()}]", path.as_posix())
