"""Cached table reads. A cached function takes a `RunRef` and small hashable arguments, no more.

Frames returned here are shared between sessions and read-only: copy before changing one.
"""

from dataclasses import dataclass
from typing import Any

import pandas as pd
import streamlit as st

from dashboard import documents, filters, text
from dashboard.figures.tokens import glyphs
from engine import schema, store
from engine.config import PROJECT_ROOT, assets_root, cache_root
from engine.errors import CacheMissing


SENSITIVE_SHARE = 0.3
"""Share of active tokens in unwanted text from which on a prototype's snippets are masked, if it is
also twice what all prototypes together have."""
LOOKED_AT = 5
"""Seconds after which runs are looked at again."""
Where = tuple[tuple[str, Any], ...]
"""Equality filters as (column, value or tuple of values) pairs."""


@dataclass(frozen=True)
class RunRef:
    """A run, and the state of its manifest: the same reference means the same tables."""

    name: str
    path: str
    stamp: str
    """Fingerprint of the manifest."""


def run_refs() -> list[RunRef]:
    """Every readable run: those with an index first, shipped ones before the newest."""
    return _run_refs(str(assets_root()), str(cache_root()))


@st.cache_data(ttl=LOOKED_AT, max_entries=4, show_spinner=False)
def _run_refs(assets: str, cache: str) -> list[RunRef]:
    """`run_refs` of these two folders, looked at again every five seconds."""
    del assets, cache  # the key of the answer; the store reads them from the environment
    runs = sorted(store.list_runs(), key=lambda run: not run.has("prototypes"))
    return [RunRef(run.name, str(run.path), run.stamp) for run in runs]


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


@st.cache_resource(max_entries=8, show_spinner="Reading prototypes …")
def prototypes(ref: RunRef) -> pd.DataFrame:
    """The `prototypes` table, a one-line `label`, and whether a card is `sensitive`; read-only."""
    frame = table(ref, "prototypes").copy()
    pairs = zip(frame["category"], frame["role"], strict=True)
    frame["label"] = [filters.label(c, r) for c, r in pairs]
    fired = frame["n_active_tokens"].sum()
    base = float((frame["unwanted_share"] * frame["n_active_tokens"]).sum() / max(1, fired))
    frame["sensitive"] = frame["unwanted_share"] >= max(SENSITIVE_SHARE, min(0.9, 2 * base))
    return frame


@st.cache_resource(max_entries=4, show_spinner="Preparing the search …")
def search_texts(ref: RunRef) -> pd.Series:
    """Lower-case text searched for each row of `prototypes`: number, label and raised tokens."""
    frame = prototypes(ref)
    found = frame["prototype"].map("#{}".format) + " " + frame["label"].str.lower()
    if not has(ref, "prototype_signatures"):
        return found
    rows = table(
        ref,
        "prototype_signatures",
        ("prototype", "rank", "token_id"),
        (("side", "top"),),
        "prototype",
    )
    texts = documents.token_texts(ref.path)
    tokens = rows.groupby("prototype")["token_id"].agg(
        lambda ids: " ".join(documents.token_text(texts, i) for i in ids)
    )
    return found + " " + frame["prototype"].map(tokens).fillna("").str.lower()


def one(ref: RunRef, name: str, prototype: int) -> pd.DataFrame:
    """Rows of one prototype in a table keyed by prototype; empty when the run lacks the table."""
    if not has(ref, name):
        return pd.DataFrame(columns=[c.name for c in schema.TABLES[name].columns])
    return table(ref, name, where=(("prototype", prototype),))


@st.cache_resource(max_entries=256, show_spinner=False)
def signature(ref: RunRef, prototype: int) -> pd.DataFrame:
    """`prototype_signatures` of one prototype with the tokens' text as `token`; read-only."""
    frame = one(ref, "prototype_signatures", prototype).copy()
    texts = documents.token_texts(ref.path)
    frame["token"] = [glyphs(documents.token_text(texts, i)) for i in frame["token_id"]]
    return frame


@st.cache_resource(max_entries=256, show_spinner=False)
def examples(ref: RunRef, prototype: int) -> pd.DataFrame:
    """`prototype_examples` of one prototype with its documents' id, domain, source and split."""
    frame = one(ref, "prototype_examples", prototype)
    if frame.empty or not has(ref, "documents"):
        return frame
    wanted = tuple(sorted({int(d) for d in frame["document"]}))
    found = table(ref, "documents", where=(("document", wanted),))
    return frame.merge(found, on="document", how="left", validate="many_to_one")
