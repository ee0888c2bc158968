"""Head tables as the rows that figures draw: chosen heads, curves over arms, bands; pure."""

from collections.abc import Collection, Sequence

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from dashboard import text_heads as text


CONFIDENCE = 0.95
"""Confidence of every interval."""
CURVE = ["panel", "seed", "arm", "step", "x", "value"]
"""Columns of a curve: row of the figure, seed, arm, step, step since the branch, value."""


def head_name(layer: int, head: int) -> str:
    """A head as LAYER.HEAD."""
    return f"{layer}.{head}"


def with_names(frame: pd.DataFrame) -> pd.DataFrame:
    """A frame with `name`, LAYER.HEAD of each row."""
    pairs = zip(frame["layer"], frame["head"], strict=True)
    return frame.assign(name=[head_name(int(layer), int(head)) for layer, head in pairs])


def influence_matrix(frame: pd.DataFrame, heads: Sequence[str]) -> pd.DataFrame:
    """Influence by sample: step, row, and a column a head; NaN where it could not be computed.

    Args:
        frame: Rows of `head_influence` of one seed and kind.
        heads: Heads in the order of its lists.
    """
    lists = [np.ma.filled(np.ma.asarray(v, dtype=np.float64), np.nan) for v in frame["influence"]]
    values = np.stack(lists) if lists else np.empty((0, len(heads)))
    found = pd.DataFrame(values, columns=list(heads))
    found.insert(0, "row", frame["row"].to_numpy())
    found.insert(0, "step", frame["step"].to_numpy())
    return found


def nearest_step(steps: Sequence[int], wanted: int | None) -> int:
    """The step measured that lies nearest to the one asked for; the last where none is."""
    if wanted is None:
        return steps[-1]
    return min(steps, key=lambda step: abs(step - wanted))


def chosen_heads(
    scores: pd.DataFrame, choices: pd.DataFrame, units: Collection[str]
) -> pd.DataFrame:
    """The head of each seed and kind that curves are about: seed, unit, layer, head.

    Where a study chose none, it is the head that scores highest at the end of the baseline, which
    is the rule of a study too.

    Args:
        scores: Rows of `head_scores` of the baseline.
        choices: Rows of `head_choices`, or none.
        units: Kinds.
    """
    known = {
        (int(row["seed"]), str(row["unit"])): (int(row["layer"]), int(row["head"]))
        for row in choices.to_dict("records")
    }
    rows = []
    for seed, own in scores.groupby("seed"):
        last = own[own["step"] == own["step"].max()]
        for unit in units:
            best = last.iloc[int(last[text.metric_of(unit)].to_numpy().argmax())]
            place = known.get((int(str(seed)), unit), (int(best["layer"]), int(best["head"])))
            rows.append({"seed": seed, "unit": unit, "layer": place[0], "head": place[1]})
    return pd.DataFrame(rows, columns=["seed", "unit", "layer", "head"])


def branches(arms: pd.DataFrame) -> pd.DataFrame:
    """First step and last step of each seed's window, with `seed` as index."""
    if arms.empty:
        return pd.DataFrame(columns=["branch_step", "end_step"], index=pd.Index([], name="seed"))
    return arms.groupby("seed")[["branch_step", "end_step"]].max()


def score_curves(
    scores: pd.DataFrame, chosen: pd.DataFrame, unit: str, windows: pd.DataFrame
) -> pd.DataFrame:
    """Score of the chosen head of a kind along every arm: the columns of `CURVE`.

    Args:
        scores: Rows of `head_scores` of the arms wanted.
        chosen: What `chosen_heads` gives.
        unit: Kind.
        windows: What `branches` gives.
    """
    own = chosen[chosen["unit"] == unit]
    rows = scores.merge(own[["seed", "layer", "head"]], on=["seed", "layer", "head"])
    return _curve(rows, unit, text.metric_of(unit), windows)


def loss_curves(losses: pd.DataFrame, measure: str, windows: pd.DataFrame) -> pd.DataFrame:
    """A loss along every arm: the columns of `CURVE`; steps without it are left out."""
    return _curve(losses.dropna(subset=[measure]), measure, measure, windows)


def _curve(rows: pd.DataFrame, panel: str, column: str, windows: pd.DataFrame) -> pd.DataFrame:
    starts = rows["seed"].map(windows["branch_step"]).fillna(0).astype(int)
    found = rows.assign(panel=panel, value=rows[column].astype(float), x=rows["step"] - starts)
    return found[CURVE].sort_values(["arm", "seed", "step"], ignore_index=True)


def from_the_branch(curves: pd.DataFrame) -> pd.DataFrame:
    """Curves of which each arm begins with the baseline's value at the branch, which it shares."""
    start = curves[(curves["arm"] == "baseline") & (curves["x"] == 0)]
    arms = curves.loc[curves["arm"] != "baseline", ["panel", "seed", "arm"]].drop_duplicates()
    begun = curves[curves["x"] == 0]
    known = arms.merge(begun[["panel", "seed", "arm"]], how="left", indicator=True)
    missing = known[known["_merge"] == "left_only"].drop(columns="_merge")
    first = missing.merge(start.drop(columns="arm"), on=["panel", "seed"])
    whole = pd.concat([curves, first[CURVE]], ignore_index=True)
    return whole.sort_values(["panel", "arm", "seed", "step"], ignore_index=True)


def of_kind(frame: pd.DataFrame, unit: str, arms: Collection[str]) -> pd.DataFrame:
    """Rows of the arms named that belong to a kind of head or to none."""
    return frame[frame["arm"].isin(arms) & frame["unit"].isin(["", unit])]


def bands(curves: pd.DataFrame, along: str = "x") -> pd.DataFrame:
    """Mean over seeds with its t-interval: panel, arm, `along`, mean, low, high, n.

    Only places that every seed of the arm has are kept: a mean whose seeds change along the axis
    would jump by itself. low and high are NaN for one seed.
    """
    seeds = curves.groupby(["panel", "arm"])["seed"].nunique().rename("seeds").reset_index()
    groups = curves.groupby(["panel", "arm", along])["value"]
    found = groups.agg(mean="mean", spread="std", n="count").reset_index()
    found = found.merge(seeds, on=["panel", "arm"])
    found = found[found["n"] == found["seeds"]].drop(columns="seeds")
    half = interval_half(found["spread"].to_numpy(float), found["n"].to_numpy(int))
    return found.assign(low=found["mean"] - half, high=found["mean"] + half).drop(columns="spread")


def interval_half(spread: np.ndarray, n: np.ndarray) -> np.ndarray:
    """Half of a mean's t-interval from the standard deviation over n seeds; NaN for one seed."""
    quantile = stdtrit(np.maximum(n - 1, 1), 0.5 + CONFIDENCE / 2)
    return np.where(n > 1, quantile * spread / np.sqrt(n), np.nan)


def top_mask(values: np.ndarray, share: float) -> np.ndarray:
    """Which samples are among the most positive `share` of all; none without a finite value."""
    known = np.isfinite(values)
    count = max(1, round(share * int(known.sum())))
    order = np.argsort(-np.where(known, values, -np.inf), kind="stable")[:count]
    mask = np.zeros(len(values), bool)
    mask[order] = True
    return mask & known


def timing(
    influence: pd.DataFrame, head: str, branch: int, share: float, parts: int
) -> pd.DataFrame:
    """Where along the window the top samples and the positive influence lie.

    Args:
        influence: What `influence_matrix` gives.
        head: Column.
        branch: First step of the window.
        share: Share of the samples that counts as top.
        parts: Parts that the window is cut into.

    Returns:
        x (middle of a part, steps since the branch), density (share of the top samples in it over
        its share of all samples; 1 is even) and mass (the same of the sum of positive influence).
    """
    values = influence[head].to_numpy(np.float64)
    since = influence["step"].to_numpy() - branch
    edges = np.linspace(0, since.max() + 1, parts + 1)
    part = np.clip(np.searchsorted(edges, since, side="right") - 1, 0, parts - 1)
    even = np.bincount(part, minlength=parts) / len(values)
    top = np.bincount(part[top_mask(values, share)], minlength=parts)
    mass = np.bincount(part, np.where(values > 0, values, 0.0), parts)
    with np.errstate(invalid="ignore", divide="ignore"):
        return pd.DataFrame(
            {
                "x": (edges[:-1] + edges[1:]) / 2,
                "density": top / top.sum() / even,
                "mass": mass / mass.sum() / even,
            }
        )


def ratio_of_kinds(effects: pd.DataFrame, arm: str) -> float | None:
    """|effect on other heads of the same kind| ÷ |effect on heads of the other kind| of an arm."""
    own = effects[effects["arm"] == arm].set_index("measure")["effect"]
    if not {"same_kind", "other_kind"} <= set(own.index) or own["other_kind"] == 0:
        return None
    value = abs(float(own["same_kind"])) / abs(float(own["other_kind"]))
    return value if np.isfinite(value) else None
