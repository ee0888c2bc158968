"""What the study by retraining says of attribution methods, as rows that figures draw; pure.

Rows have method, panel, value, low and high: a 95 % interval, NaN where nothing was measured.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd


RESAMPLES = 2000
"""Bootstrap resamples behind an interval."""
RECALL_AT = 10
"""Places among which a planted document counts as found."""
Z95 = 1.959964
MAIN = (
    *("path", "errors", "activations", "path@4", "path+diagonal", "path+coupled", "errors~16"),
    *("full", "ekfac", "gradient-dot", "projected", "knn", "tfidf", "bm25", "random"),
)
"""Methods shown until a reader asks for every one; the chosen variant is among them always."""
SCOPES = ("all", "domain")
"""Over all sequences of the pool, and over those of the query's own domain."""


@dataclass(frozen=True)
class Badge:
    """What is known of one method: its LDS, where it was measured, and whether that is here."""

    method: str
    here: bool
    """Whether the model measured is the one on the page."""
    rows: pd.DataFrame
    """Rows of `attribution_validity` of the method, one a scope."""
    facts: dict[str, Any]
    """model, pool, measured, n_subsets, n_seeds, n_queries of the study."""

    def row(self, scope: str) -> dict[str, Any] | None:
        """The method's row in a scope."""
        found = self.rows[self.rows["scope"] == scope]
        return None if found.empty else {str(k): v for k, v in found.iloc[0].items()}


def badge(validity: pd.DataFrame, method: str, fingerprint: str) -> Badge | None:
    """The badge of a method; None where the study holds nothing.

    Args:
        validity: Rows of `attribution_validity`.
        method: Name of the method.
        fingerprint: Of the model on the page.
    """
    if validity.empty:
        return None
    rows = validity[validity["method"] == method]
    any_row = (rows if len(rows) else validity).iloc[0]
    names = ("model", "pool", "measured", "n_subsets", "n_seeds", "n_queries")
    here = bool(fingerprint) and any_row["model"] == fingerprint
    return Badge(method, here, rows, {name: any_row[name] for name in names})


def lds_rows(validity: pd.DataFrame) -> pd.DataFrame:
    """LDS of every method in both scopes; the interval is the wider of queries and subsets."""
    low = validity[["low", "subset_low"]].min(axis=1)
    high = validity[["high", "subset_high"]].max(axis=1)
    rows = validity[["method", "scope", "lds"]].assign(low=low, high=high)
    return rows.rename(columns={"scope": "panel", "lds": "value"}).reset_index(drop=True)


def ceilings(
    validity: pd.DataFrame, lds: pd.DataFrame, queries: pd.DataFrame
) -> dict[str, tuple[float, float, float]]:
    """Noise ceiling of each scope with its interval over queries of the reported half.

    Args:
        validity: Rows of `attribution_validity`.
        lds: Rows of `retraining_lds`; without its method `ceiling` the interval is the value.
        queries: Rows of `retraining_queries`.
    """
    found: dict[str, tuple[float, float, float]] = {}
    reported = set(queries.loc[queries["half"] == "report", "query"]) if len(queries) else set()
    for scope in SCOPES:
        own = validity[validity["scope"] == scope]
        if own.empty:
            continue
        value = float(own["ceiling"].iloc[0])
        if np.isnan(value):  # one seed alone
            continue
        each = lds[(lds["method"] == "ceiling") & (lds["scope"] == scope)] if len(lds) else lds
        values = each.loc[each["query"].isin(reported), "spearman"].dropna() if len(each) else []
        low, high = bootstrap(np.asarray(values, np.float64)) if len(values) else (value, value)
        found[scope] = (value, low, high)
    return found


def reachable(ceiling: float, n_seeds: int) -> float:
    """Correlation that full knowledge of a subset would reach with the mean of so many seeds.

    sqrt(m r / (1 + (m - 1) r)) for the correlation r of one seed with another: more than r itself.
    """
    return float(np.sqrt(n_seeds * ceiling / (1 + (n_seeds - 1) * ceiling)))


def shown(rows: pd.DataFrame, chosen: str, *, everything: bool) -> pd.DataFrame:
    """Rows of the main methods and of the chosen variant; of every method if asked for."""
    if everything:
        return rows
    return rows[rows["method"].isin((*MAIN, chosen))].reset_index(drop=True)


def best(validity: pd.DataFrame) -> tuple[str, float] | None:
    """The method of largest LDS over all sequences, with it."""
    own = validity[validity["scope"] == "all"].dropna(subset=["lds"])
    if own.empty:
        return None
    row = own.iloc[int(own["lds"].to_numpy().argmax())]
    return str(row["method"]), float(row["lds"])


def bootstrap(values: np.ndarray) -> tuple[float, float]:
    """95 % interval of the mean, by resampling the values."""
    if len(values) < 2:
        return float("nan"), float("nan")
    rng = np.random.default_rng(0)
    means = values[rng.integers(0, len(values), (RESAMPLES, len(values)))].mean(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


def recall_rows(recall: pd.DataFrame, queries: pd.DataFrame, n: int = RECALL_AT) -> pd.DataFrame:
    """Share of questions whose planted document is among the first n, by kind of question.

    The interval is Wilson's, which does not shrink to nothing where all are found.

    Args:
        recall: Rows of `planted_recall`.
        queries: Rows of `retraining_queries`.
        n: Places that count.
    """
    kinds = recall.merge(queries[["query", "kind"]], on="query")
    rows: list[dict[str, Any]] = []
    for key, own in kinds.groupby(["method", "kind"], sort=False):
        method, kind = key
        hits, total = int((own["rank"] <= n).sum()), len(own)
        low, high = wilson(hits, total)
        value = hits / total
        rows.append({"method": method, "panel": kind, "value": value, "low": low, "high": high})
    return pd.DataFrame(rows, columns=["method", "panel", "value", "low", "high"])


def wilson(hits: int, total: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share."""
    share, square = hits / total, Z95**2
    middle = share + square / (2 * total)
    half = Z95 * np.sqrt(share * (1 - share) / total + square / (4 * total**2))
    return float((middle - half) / (1 + square / total)), float(
        (middle + half) / (1 + square / total)
    )


def removal_rows(removal: pd.DataFrame) -> pd.DataFrame:
    """Loss after removing what a method ranks at either end, minus after as many random texts.

    Both are trained with the same seed and measured on the same group of queries; the mean of a
    group over seeds counts once, and the interval is over groups. Panels: top and bottom.

    Args:
        removal: Rows of `retraining_removal`.
    """
    pairs = ["domain", "seed"]
    control = removal[removal["part"] == "random"].groupby(pairs)["loss"].mean().rename("control")
    rows: list[dict[str, Any]] = []
    for part in ("top", "bottom"):
        own = removal[removal["part"] == part].merge(control.reset_index(), on=pairs)
        own = own.assign(change=own["loss"] - own["control"])
        for method, group in own.groupby("method", sort=False):
            each = group.groupby("domain")["change"].mean().to_numpy(dtype=np.float64)
            low, high = bootstrap(each)
            row = {"method": method, "panel": part, "value": float(each.mean())}
            rows.append({**row, "low": low, "high": high})
    return pd.DataFrame(rows, columns=["method", "panel", "value", "low", "high"])


def agreement_rows(agreement: pd.DataFrame) -> pd.DataFrame:
    """Overlap of each method's first ones with a reference's, mean over queries with its interval.

    Panels: `full`, the full gradient under the same curvature as the method, and `ekfac`; a method
    is not held against itself.

    Args:
        agreement: Rows of `attribution_agreement`.
    """
    rows: list[dict[str, Any]] = []
    for panel in ("full", "ekfac"):
        for method in dict.fromkeys(agreement["method"]):
            wanted = _matched(str(method)) if panel == "full" else panel
            own = agreement[(agreement["method"] == method) & (agreement["reference"] == wanted)]
            if own.empty or method == wanted:
                continue
            values = own["overlap_top"].to_numpy(dtype=np.float64)
            low, high = bootstrap(values)
            row = {"method": method, "panel": panel, "value": float(values.mean())}
            rows.append({**row, "low": low, "high": high})
    return pd.DataFrame(rows, columns=["method", "panel", "value", "low", "high"])


def _matched(method: str) -> str:
    """The full gradient with the curvature that a method uses, if any."""
    options = method.partition("@")[0].split("+")[1:]
    used = [name for name in ("diagonal", "coupled") if name in options]
    return "+".join(["full", *used])
