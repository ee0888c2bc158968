"""What a study found, in figures small enough to print."""

from typing import Any

import numpy as np
import pandas as pd

from engine.influence import lds
from engine.store import Run, read_table


RECALL_AT = 10
"""Places among which a planted document counts as found."""


def summary(run: Run) -> dict[str, Any]:
    """Subsets, ceilings and, by method, LDS in both scopes and recall of planted documents.

    Raises:
        CacheMissing: The run holds no judged study.
    """
    validity = read_table(run, "attribution_validity")
    first = validity.iloc[0]
    chosen = validity.loc[validity["is_default"], "method"].tolist()
    by_scope = validity.groupby("scope")["ceiling"].first()
    return {
        "run": run.name,
        "model": str(first["model"]),
        "subsets": int(first["n_subsets"]),
        "seeds": int(first["n_seeds"]),
        "queries": int(first["n_queries"]),
        "default": chosen[0] if chosen else None,
        "ceiling": {str(scope): _number(value) for scope, value in by_scope.items()},
        "methods": _methods(run, validity),
        "removal": _removal(run),
    }


def _methods(run: Run, validity: pd.DataFrame) -> list[dict[str, Any]]:
    recall = _recall(run)
    rows = []
    for method, own in validity.groupby("method", sort=False):
        scopes = own.set_index("scope")
        figures = ("lds", "low", "high", "subset_low", "subset_high")
        found: dict[str, Any] = {
            str(scope): {name: _number(scopes.at[scope, name]) for name in figures}
            for scope in scopes.index
        }
        rows.append({"method": str(method), **found, "planted": recall.get(str(method), {})})
    return sorted(rows, key=lambda row: -(row["all"]["lds"] or 0.0))


def _recall(run: Run) -> dict[str, dict[str, Any]]:
    """Recall and mean reciprocal rank of every method, by kind of question."""
    ranks = read_table(run, "planted_recall")
    kinds = read_table(run, "retraining_queries", columns=["query", "kind"])
    found: dict[str, dict[str, Any]] = {}
    for key, own in ranks.merge(kinds, on="query").groupby(["method", "kind"], sort=False):
        method, kind = key
        values = own["rank"].to_numpy(np.int64)
        found.setdefault(str(method), {})[str(kind)] = {
            f"recall_at_{RECALL_AT}": lds.recall_at(values, RECALL_AT),
            "mean_reciprocal_rank": lds.mean_reciprocal_rank(values),
        }
    return found


def _removal(run: Run) -> list[dict[str, Any]]:
    """Mean loss after a removal minus after a random one, over domains and seeds, nats a query."""
    if not run.has("retraining_removal"):
        return []
    changes = removal_changes(read_table(run, "retraining_removal"))
    found = []
    for key, own in changes.groupby(["method", "part"], sort=False):
        method, part = key
        over = lds.mean_over_queries(own["change"].to_numpy(np.float64))
        row = {"method": str(method), "part": str(part), "domains": len(own)}
        found.append({**row, "change": over.mean, "low": over.low, "high": over.high})
    return found


def removal_changes(table: pd.DataFrame) -> pd.DataFrame:
    """For each method, part and domain: mean over seeds of its loss minus the random removals'.

    Args:
        table: Rows of `retraining_removal`.
    """
    pair = ["domain", "seed"]
    random = table[table["part"] == "random"].groupby(pair)["loss"].mean().rename("random")
    ranked = table[table["part"] != "random"].merge(random.reset_index(), on=pair)
    ranked = ranked.assign(change=ranked["loss"] - ranked["random"])
    keys = ["method", "part", "domain"]
    return ranked.groupby(keys, sort=False)["change"].mean().reset_index()


def _number(value: Any) -> float | None:
    return None if pd.isna(value) else float(value)
