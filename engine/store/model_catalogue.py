"""The shipped catalogue of public models: what is documented of each, and what was published."""

import csv
from pathlib import Path

import pandas as pd

from engine.config import assets_root
from engine.errors import CacheMissing, CacheStale


CATALOGUE, LEADERBOARD = "able239.csv", "able239_leaderboard.csv"
"""Files of the folder `models` of the assets."""
CHECKED, UNCHECKED, MISSING = "checked", "unchecked", "missing"
"""What speaks for a stated ancestor: a named source, general knowledge alone, or none stated."""
SCORES = ("ifeval", "bbh", "math_lvl5", "gpqa", "musr", "mmlu_pro")
"""Published scores, shares in [0, 1]."""
_UNCHECKED_SOURCE = "general knowledge"
_NEEDED = ("hub_id", "family", "params_b", "parent_hub_id", "relation", "source")
_PUBLISHED = {
    "architecture": "architecture",
    "base_model": "declared_base",
    "type": "type",
    "uploaded": "uploaded",
    "precision": "precision",
    "source": "score_source",
}
"""Columns of the leaderboard that are read as text, and their names here."""
_BILLION = 1e9


def catalogue_path() -> Path:
    """The shipped catalogue of public models."""
    return assets_root() / "models" / CATALOGUE


def read_model_catalogue() -> pd.DataFrame:
    """The shipped catalogue, a row a model in the order of the file.

    Columns: `model` (hub id), `family` (verbatim), `n_parameters` (0: unknown), `parent` (empty:
    none stated, which says nothing of whether there is one), `relation`, `source`, `evidence`
    (checked, unchecked, missing: of the parent), then of the leaderboard `architecture`,
    `declared_base`, `type`, `uploaded`, `precision`, `score_source` (empty where not listed) and
    `SCORES` (shares; NaN where not published).

    Raises:
        CacheMissing: The catalogue is not among the assets.
        CacheStale: It cannot be read or lacks a column.
    """
    path = catalogue_path()
    if not path.is_file():
        raise CacheMissing(
            f"The catalogue of public models is not at {path}; it ships with the project, so copy "
            "the folder assets/models again."
        )
    rows = pd.DataFrame([_row(line) for line in _lines(path, _NEEDED)])
    published = _published(path.with_name(LEADERBOARD))
    found = rows.merge(published, on="model", how="left", validate="one_to_one")
    texts = list(_PUBLISHED.values())
    found[texts] = found[texts].fillna("")
    return found


def _row(line: dict[str, str]) -> dict[str, object]:
    parent = line["parent_hub_id"]
    named = CHECKED if line["source"] not in ("", _UNCHECKED_SOURCE) else UNCHECKED
    return {
        "model": line["hub_id"],
        "family": line["family"],
        "n_parameters": round((_number(line["params_b"]) or 0.0) * _BILLION),
        "parent": parent,
        "relation": line["relation"] or "unknown",
        "source": line["source"],
        "evidence": named if parent else MISSING,
    }


def _published(path: Path) -> pd.DataFrame:
    """What the leaderboard says of models; no row where its file is not there."""
    columns = ["model", *_PUBLISHED.values(), *SCORES]
    if not path.is_file():
        return pd.DataFrame(columns=columns)
    rows = [
        {
            "model": line["hub_id"],
            **{ours: line.get(theirs, "") for theirs, ours in _PUBLISHED.items()},
            **{score: _number(line.get(score, "")) for score in SCORES},
        }
        for line in _lines(path, ("hub_id",))
    ]
    found = pd.DataFrame(rows, columns=columns).drop_duplicates("model")
    return found.astype(dict.fromkeys(SCORES, "float64"))


def _lines(path: Path, needed: tuple[str, ...]) -> list[dict[str, str]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            columns = reader.fieldnames or []
            lines = [{k: (v or "").strip() for k, v in row.items() if k} for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise CacheStale(
            f"{path} cannot be read as CSV ({error}); copy the folder assets/models again."
        ) from error
    lacking = [name for name in needed if name not in columns]
    if lacking or not lines:
        why = f"has no column {lacking[0]!r}" if lacking else "names no model"
        raise CacheStale(f"{path} {why}; copy the folder assets/models again.")
    return lines


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
