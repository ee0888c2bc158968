"""Tables of forecasts and candidates as the rows that figures draw; pure."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd


UNKNOWN = "not known"
"""Group of a model of which none is documented."""


def group_of(card: Mapping[Hashable, Any], by: str) -> str:
    """Family of a model, or its roots.

    Args:
        card: Row of `model_cards`.
        by: family or root.
    """
    if by == "family":
        return str(card.get("family") or "") or UNKNOWN
    roots = card.get("roots")
    names = [str(root) for root in roots] if isinstance(roots, list | tuple | np.ndarray) else []
    return " + ".join(names) or UNKNOWN


def with_groups(rows: pd.DataFrame, cards: pd.DataFrame, by: str) -> pd.DataFrame:
    """Forecasts with `group` of their model and `residual`, predicted less true."""
    groups = {str(card["model"]): group_of(card, by) for card in cards.to_dict("records")}
    return rows.assign(
        group=[groups.get(str(model), UNKNOWN) for model in rows["model"]],
        residual=rows["predicted"] - rows["true"],
    )


def largest_first(groups: pd.Series) -> list[str]:
    """Groups by falling number of models, unknown last; equal ones by name."""
    counts = groups.value_counts()
    return sorted(counts.index, key=lambda g: (g == UNKNOWN, -int(counts[g]), str(g)))


def figure_of(
    results: pd.DataFrame, target: str, regime: str, method: str, metric: str
) -> pd.Series | None:
    """One row of `model_forecast_results`; None where it is not there or not known."""
    kept = (
        (results["target"] == target)
        & (results["regime"] == regime)
        & (results["method"] == method)
        & (results["metric"] == metric)
    )
    rows = results[kept & results["value"].notna()]
    return rows.iloc[0] if len(rows) else None


def says_the_same(results: pd.DataFrame, target: str, regime: str, method: str) -> bool:
    """Whether a method was judged and has no Spearman: it says the same of every model."""
    kept = (
        (results["target"] == target)
        & (results["regime"] == regime)
        & (results["method"] == method)
    )
    return bool(kept.any()) and figure_of(results, target, regime, method, "spearman") is None


def method_rows(
    results: pd.DataFrame, keys: dict[str, str], panels: Sequence[str], along: str
) -> pd.DataFrame:
    """Rows of a table of results as a comparison of methods over panels.

    Args:
        results: method, value, low, high and the columns named below.
        keys: Value that columns have.
        panels: Values of the column `along`, a panel each.
        along: Column that tells panels apart.

    Returns:
        method, panel, value, low, high.
    """
    kept = results[along].isin(list(panels))
    for column, value in keys.items():
        kept &= results[column] == value
    rows = results[kept & results["value"].notna()]
    found = rows[["method", "value", "low", "high"]].assign(panel=rows[along])
    for end in ("low", "high"):
        found[end] = found[end].fillna(found["value"])
    return found.reset_index(drop=True)


def ranked(candidates: pd.DataFrame) -> pd.DataFrame:
    """Candidates in predicted order with `place`, 1 first, and `true_place`.

    Args:
        candidates: model, true and predicted of one target, outcome, regime and method.
    """
    rows = candidates.sort_values(
        ["predicted", "model"], ascending=[False, True], kind="stable", ignore_index=True
    )
    rows["place"] = np.arange(1, len(rows) + 1)
    rows["true_place"] = rows["true"].rank(ascending=False, method="min").astype(int)
    return rows
