"""Tables of routing as the rows that figures draw; pure."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy.special import ndtri


CONFIDENCE = 0.95
BINS = 10
"""Bins of predictions, of equal numbers of rows."""


def of_group(results: pd.DataFrame, group: str, metric: str = "accuracy") -> pd.DataFrame:
    """Rows of one group of questions and one measure, an own index."""
    kept = (results["group"] == group) & (results["metric"] == metric)
    return results[kept].reset_index(drop=True)


def by_prefix(results: pd.DataFrame, prefix: str, metric: str = "accuracy") -> pd.DataFrame:
    """Rows of the groups `prefix:NAME` with `name`; none where there are no such groups."""
    begins = results["group"].str.startswith(f"{prefix}:") & (results["metric"] == metric)
    rows = results[begins].copy()
    rows["name"] = rows["group"].str.removeprefix(f"{prefix}:")
    return rows.reset_index(drop=True)


def choices(routes: pd.DataFrame) -> pd.DataFrame:
    """The model each router sends each question to: router, question, model, correct.

    Args:
        routes: Rows of `model_routes`; of equal predictions the first model by name is taken.
    """
    ordered = routes.sort_values(
        ["router", "question", "predicted", "model"],
        ascending=[True, True, False, True],
        kind="stable",
    )
    first = ordered.drop_duplicates(["router", "question"])
    return first[["router", "question", "model", "predicted", "correct"]].reset_index(drop=True)


def usage(chosen: pd.DataFrame) -> pd.DataFrame:
    """How often each router calls each model: router, model, n, right; most called first."""
    groups = chosen.groupby(["router", "model"], sort=False)["correct"]
    found = groups.agg(n="size", right="sum").reset_index()
    return found.sort_values(
        ["router", "n", "model"], ascending=[True, False, True], ignore_index=True
    )


def calibration(predicted: np.ndarray, correct: np.ndarray, bins: int = BINS) -> pd.DataFrame:
    """How often predictions came true, in bins of equal numbers of them.

    Args:
        predicted: Predicted chances.
        correct: Whether each came true.
        bins: Bins; fewer where predictions are alike.

    Returns:
        start (least prediction of the bin), share, low and high (95 %, Wilson), n.
    """
    if not len(predicted):
        return pd.DataFrame(columns=["start", "share", "low", "high", "n"])
    edges = np.unique(np.quantile(predicted, np.linspace(0, 1, bins + 1)[:-1]))
    place = np.searchsorted(edges, predicted, side="right") - 1
    n = np.bincount(place, minlength=len(edges))
    right = np.bincount(place, weights=np.asarray(correct, float), minlength=len(edges))
    low, high = wilson(right, n)
    share = right / np.maximum(n, 1)
    return pd.DataFrame({"start": edges, "share": share, "low": low, "high": high, "n": n})


def wilson(right: np.ndarray, n: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Wilson's interval of a share (Wilson 1927), 95 %; [0, 1] where n is 0."""
    z = float(ndtri(0.5 + CONFIDENCE / 2))
    n = np.asarray(n, float)
    share = right / np.maximum(n, 1)
    centre = (share + z * z / (2 * np.maximum(n, 1))) / (1 + z * z / np.maximum(n, 1))
    spread = np.sqrt(share * (1 - share) / np.maximum(n, 1) + (z / (2 * np.maximum(n, 1))) ** 2)
    half = z * spread / (1 + z * z / np.maximum(n, 1))
    low, high = np.clip(centre - half, 0, 1), np.clip(centre + half, 0, 1)
    return np.where(n > 0, low, 0.0), np.where(n > 0, high, 1.0)


def came_true(curve: pd.DataFrame, predicted: Sequence[float] | np.ndarray) -> pd.DataFrame:
    """share, low and high of the bin of each prediction."""
    if curve.empty:
        return pd.DataFrame(np.nan, index=range(len(predicted)), columns=["share", "low", "high"])
    place = np.searchsorted(curve["start"].to_numpy(), np.asarray(predicted), side="right") - 1
    rows = curve.iloc[np.clip(place, 0, len(curve) - 1)]
    return rows[["share", "low", "high"]].reset_index(drop=True)


def right_of(answers: pd.DataFrame) -> pd.DataFrame:
    """Which questions each model answers right, a row a model and a column a question."""
    rows = [np.ma.filled(np.ma.asarray(v, dtype=bool), False) for v in answers["correct"]]
    matrix = np.stack(rows) if rows else np.zeros((0, 0), bool)
    return pd.DataFrame(matrix, index=answers["model"].astype(str))


def usage_random(right: pd.Series, calls: pd.Series) -> float:
    """Chance that a model drawn by its calls is right on a question; NaN without calls.

    Args:
        right: Whether each model is right, by model.
        calls: How often the router calls each, by model.
    """
    weights = calls.reindex(right.index).fillna(0.0).to_numpy(float)
    if weights.sum() == 0:
        return float("nan")
    return float(right.to_numpy(float) @ weights / weights.sum())
