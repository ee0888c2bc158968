"""What the arms of a study did: each against the baseline of the same seed, then over seeds.

Positive means more of the measure in the arm than in the baseline. A **delay** is in optimiser
steps: how much later the chosen head reaches half of the score it has when the baseline ends,
positive where the arm is later. A head that does not get there before the window ends is counted
as getting there at its end, so such a delay is a lower bound (censored). Where a head has half of
its score before the window begins, nothing can be delayed and the seed has no delay.
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from engine.mda.curves import LOSSES, METRICS, Choice, Compared, StudyFrames
from engine.mda.intervals import t_interval


MEASURES = ("score", "final_score", "same_kind", "other_kind", "delay", *LOSSES)
"""What is measured of an arm; `head_effects.measure` says each in words."""
HALF = 0.5
"""Share of the baseline's final score at which a head counts as formed, for delays."""


def seed_effects(frames: StudyFrames) -> pd.DataFrame:
    """Effect of every arm in every seed, on the chosen head of every kind.

    Returns:
        One row per seed, arm, arm_unit (the kind of head whose samples the arm changes, empty in
        random arms), unit (the kind of head asked about) and measure; effect, NaN where it is not
        defined; censored, whether a delay is a lower bound.
    """
    rows = [
        {"seed": choice.seed, "arm": arm, "arm_unit": unit, "unit": choice.unit, **row}
        for choice in frames.chosen
        for arm, unit in frames.arms_of(choice.seed)
        for row in _measures(frames.compare(choice.seed, arm, unit), choice)
    ]
    columns = ["seed", "arm", "arm_unit", "unit", "measure", "effect", "censored"]
    return pd.DataFrame(rows, columns=columns)


def _measures(compared: Compared, choice: Choice) -> Iterator[dict[str, Any]]:
    """Rows of one arm: measure, effect, censored."""
    place, metric = compared.heads.index(choice.head), METRICS.index(choice.metric)
    changes = compared.changes(choice.metric)
    same, other = compared.kinds(choice)
    late, censored = delay(compared, place, metric)
    losses = (compared.arm_losses - compared.baseline_losses).mean(axis=0)
    found = {
        "score": changes[place],
        "final_score": compared.arm[-1, place, metric] - compared.baseline[-1, place, metric],
        "same_kind": changes[same].mean() if same.any() else math.nan,
        "other_kind": changes[other].mean() if other.any() else math.nan,
        "delay": late,
        **dict(zip(LOSSES, losses, strict=True)),
    }
    for measure, effect in found.items():
        yield {
            "measure": measure,
            "effect": float(effect),
            "censored": measure == "delay" and censored,
        }


def delay(compared: Compared, head: int, metric: int) -> tuple[float, bool]:
    """Steps by which a head forms later than in the baseline, and whether they are a lower bound.

    Args:
        compared: arm and baseline.
        head: place of the head.
        metric: place of the metric.

    Returns:
        NaN where the head had formed before the window.
    """
    base, arm = compared.baseline[:, head, metric], compared.arm[:, head, metric]
    level, start = HALF * base[-1], compared.before[head, metric]
    if level <= 0 or start >= level:
        return math.nan, False
    steps = np.concatenate([[compared.branch], compared.steps])
    usual = crossing(steps, np.concatenate([[start], base]), level)
    found = crossing(steps, np.concatenate([[start], arm]), level)
    censored = math.isnan(found)
    return (compared.end if censored else found) - usual, censored


def crossing(steps: Int[np.ndarray, " n"], values: Float[np.ndarray, " n"], level: float) -> float:
    """Step at which values first reach a level, straight lines between them; NaN if never."""
    above = np.flatnonzero(values >= level)
    if len(above) == 0:
        return math.nan
    at = int(above[0])
    if at == 0:
        return float(steps[0])
    part = (level - values[at - 1]) / (values[at] - values[at - 1])
    return float(steps[at - 1] + part * (steps[at] - steps[at - 1]))


def effect_rows(effects: pd.DataFrame) -> pd.DataFrame:
    """Rows of `head_effects`: means over seeds with t-intervals.

    Random arms have rows for every kind of head, other arms for the kind whose samples they
    change. A single seed gives a mean without an interval.

    Args:
        effects: what `seed_effects` gives.
    """
    own = effects[effects["arm_unit"].eq("") | effects["arm_unit"].eq(effects["unit"])]
    rows = []
    for (arm, unit, measure), part in own.groupby(["arm", "unit", "measure"]):
        over = t_interval(part["effect"].to_numpy(np.float64))
        if over.n:
            key = {"arm": arm, "unit": unit, "measure": measure, "n_seeds": over.n}
            rows.append({**key, "effect": over.mean, "low": over.low, "high": over.high})
    columns = ["arm", "unit", "measure", "n_seeds", "effect", "low", "high"]
    return pd.DataFrame(rows, columns=columns)


def paired_difference(
    effects: pd.DataFrame, unit: str, measure: str, arms: tuple[str, str]
) -> Float[np.ndarray, " seeds"]:
    """One arm's effect minus another's in every seed that has both, seeds in order.

    Args:
        effects: what `seed_effects` gives.
        unit: kind of head that the measure is about and whose samples both arms change.
        measure: of `MEASURES`.
        arms: the one and the other.
    """
    own = effects[(effects["unit"] == unit) & (effects["measure"] == measure)]
    own = own[(own["arm_unit"] == "") | (own["arm_unit"] == unit)]
    wide = own.pivot(index="seed", columns="arm", values="effect").reindex(columns=list(arms))
    differences = wide[arms[0]] - wide[arms[1]]
    return differences.dropna().sort_index().to_numpy(np.float64)


def relative_gains(
    frames: StudyFrames, unit: str, arm: str
) -> tuple[Float[np.ndarray, " seeds"], Float[np.ndarray, " seeds"]]:
    """How much higher an arm's chosen head scores than the baseline's, in percent of it.

    Args:
        frames: the study.
        unit: kind of head, whose samples the arm changes unless it is a random one.
        arm: name.

    Returns:
        At the end of the window, and in the mean over the window; by seed that has the arm.
    """
    found = []
    for choice, compared in _comparisons(frames, unit, arm):
        place, metric = compared.heads.index(choice.head), METRICS.index(choice.metric)
        own, base = compared.arm[:, place, metric], compared.baseline[:, place, metric]
        found.append((own[-1] / base[-1] - 1, own.mean() / base.mean() - 1))
    gains = 100 * np.array(found, np.float64).reshape(-1, 2)
    return gains[:, 0], gains[:, 1]


def loss_changes(frames: StudyFrames, unit: str, arm: str) -> Float[np.ndarray, " seeds"]:
    """How much higher an arm's held-out loss is than the baseline's, in percent of it.

    Args:
        frames: the study.
        unit: kind of head, whose samples the arm changes unless it is a random one.
        arm: name.

    Returns:
        Of the means over the window; by seed that has the arm.
    """
    place = LOSSES.index("loss")
    means = [
        (compared.arm_losses[:, place].mean(), compared.baseline_losses[:, place].mean())
        for _, compared in _comparisons(frames, unit, arm)
    ]
    own, base = np.array(means, np.float64).reshape(-1, 2).T
    return 100 * (own / base - 1)


def _comparisons(frames: StudyFrames, unit: str, arm: str) -> Iterator[tuple[Choice, Compared]]:
    """An arm in every seed that has it, beside the choice of a kind of head."""
    for choice in frames.chosen:
        for name, of in frames.arms_of(choice.seed):
            if choice.unit == unit and name == arm and of in ("", unit):
                yield choice, frames.compare(choice.seed, name, of)
