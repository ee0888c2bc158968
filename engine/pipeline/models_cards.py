"""What a catalogue documents of its models: lineage with its evidence, and what they are."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from engine.pipeline.models_catalogue import Catalogue, CatalogueEntry
from engine.schema.model_lineage_tables import MODEL_CARDS


ROOT, BASE, DISTILLED = "root", "base", "distilled"
_LISTS = ";"
_COLUMNS = {
    "family": ("family",),
    "relation": ("derivation", "relation"),
    "parents": ("parents", "parent_hub_id", "parent"),
    "roots": ("root", "roots"),
    "evidence": ("source", "evidence"),
    "architecture": ("architecture",),
    "tokenizer": ("tokenizer",),
    "data": ("data_mix", "data"),
    "size": ("size",),
    "target": ("target",),
    "groups": ("hard_negative_group", "groups"),
}
"""Columns of catalogues that are read, by column of the table; several values are separated by a
semicolon."""
_MADE_HERE = "made here"
_BILLION = 1e9


def card_frame(catalogue: Catalogue) -> pd.DataFrame:
    """The table of cards; a root that is not written follows from the parents where all are known.

    A parent of a real catalogue is named by its hub id, as the model itself is.
    """
    names = {name: e.name for e in catalogue.entries for name in (e.name, e.source)}
    rows = {entry.name: _row(entry, names) for entry in catalogue.entries}
    for name, row in rows.items():
        if not row["roots"]:
            row["roots"] = sorted(_roots(name, rows, set()))
    columns = [column.name for column in MODEL_CARDS.columns]
    return pd.DataFrame(list(rows.values()), columns=columns)


def merged_cards(known: pd.DataFrame, new: pd.DataFrame) -> pd.DataFrame:
    """Cards of a run and of a further call; a model of both has the newer card."""
    kept = known[~known["model"].isin(new["model"])]
    return pd.concat([kept, new], ignore_index=True) if len(kept) else new


def _row(entry: CatalogueEntry, names: Mapping[str, str]) -> dict[str, Any]:
    found = {column: _first(entry.documented, given) for column, given in _COLUMNS.items()}
    lists = {name: _listed(found[name]) for name in ("parents", "roots", "groups")}
    lists["parents"] = [names.get(parent, parent) for parent in lists["parents"]]
    made_here = "sha256" in entry.documented
    relation = found["relation"] or (BASE if not lists["parents"] else "")
    written = entry.documented.get("copies_weights", "")
    copies = written == "1" if written else bool(lists["parents"]) and relation != DISTILLED
    return {
        **found,
        **lists,
        "model": entry.name,
        "place": entry.source,
        "relation": relation,
        "evidence": found["evidence"] or (_MADE_HERE if made_here else ""),
        "copies_weights": copies,
        "n_parameters": _parameters(entry.documented),
    }


def _roots(name: str, rows: Mapping[str, dict[str, Any]], seen: set[str]) -> set[str]:
    """Roots by way of the parents; none where a parent has no card."""
    row = rows.get(name)
    if row is None or name in seen:
        return set()
    if row["roots"]:
        return set(row["roots"])
    if not row["parents"] or not row["copies_weights"]:
        return {name} if row["relation"] in (ROOT, BASE, DISTILLED) else set()
    found = [_roots(parent, rows, seen | {name}) for parent in row["parents"]]
    return set().union(*found) if all(found) else set()


def _first(documented: Mapping[str, str], names: tuple[str, ...]) -> str:
    return next((documented[name] for name in names if documented.get(name)), "")


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(_LISTS) if part.strip()]


def _parameters(documented: Mapping[str, str]) -> int:
    """Parameters as written, or in billions; 0 where neither is a number."""
    for name, unit in (("n_parameters", 1.0), ("params_b", _BILLION)):
        try:
            return round(float(documented[name]) * unit)
        except (KeyError, ValueError, OverflowError):
            continue
    return 0
