"""Cached table reads. A cached function takes a `RunRef` and small hashable arguments, no more.

Frames returned here are shared between sessions and read-only: copy before changing one.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

from dashboard import text
from engine import store
from engine.config import PROJECT_ROOT
from engine.errors import CacheMissing


Where = tuple[tuple[str, Any], ...]
"""Equality filters as (column, value or tuple of values) pairs."""


@dataclass(frozen=True)
class RunRef:
    """A run, and the state of its manifest: the same reference means the same tables."""

    name: str
    path: str
    stamp: int
    """Modification time of run.json in nanoseconds."""


@st.cache_data(ttl=5, show_spinner=False)
def run_refs() -> list[RunRef]:
    """Every readable run, shipped ones first, then the newest."""
    return [_ref(run) for run in store.list_runs()]


def _ref(run: store.Run) -> RunRef:
    manifest = Path(run.path) / "run.json"
    return RunRef(run.name, str(run.path), manifest.stat().st_mtime_ns)


@st.cache_resource(max_entries=32, show_spinner=False)
def run_of(ref: RunRef) -> store.Run:
    """The opened run; its manifest has been checked against the schema version."""
    return store.open_run(ref.path)


def current() -> RunRef:
    """The run chosen in the sidebar."""
    ref = st.session_state.get("headwater_run")
    if not isinstance(ref, RunRef):
        raise CacheMissing(text.NO_RUNS)
    return ref


@st.cache_resource(max_entries=128, show_spinner=False)
def table(
    ref: RunRef,
    name: str,
    columns: tuple[str, ...] = (),
    where: Where = (),
    order_by: str | None = None,
    descending: bool = False,
    limit: int | None = None,
) -> pd.DataFrame:
    """Rows of a table; read-only, shared between sessions."""
    filters = {k: list(v) if isinstance(v, tuple) else v for k, v in where}
    return store.read_table(
        run_of(ref),
        name,
        columns=list(columns) or None,
        where=filters or None,
        order_by=order_by,
        descending=descending,
        limit=limit,
    )


def has(ref: RunRef, name: str) -> bool:
    """Whether the run holds the table."""
    return run_of(ref).has(name)


@st.cache_data(max_entries=64, show_spinner=False)
def ask(ref: RunRef, sql: str, parameters: tuple[Any, ...] = ()) -> pd.DataFrame:
    """Answer of a read-only query over the run's tables; for sums over sharded tables."""
    return store.query(run_of(ref), sql, parameters)


@st.cache_data(ttl=30, show_spinner=False)
def claims() -> list[dict[str, Any]]:
    """Rows of the claims ledger; empty when nothing has been measured."""
    path = PROJECT_ROOT / "docs" / "claims.json"
    if not path.exists():
        return []
    rows = store.read_json(path)
    return rows if isinstance(rows, list) else list(rows.get("claims", []))
