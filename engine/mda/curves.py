"""Curves of a study's arms: every head's scores and the losses, step by step, within the window."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from engine.config import require
from engine.schema.head_tables import HEAD_SCORES


METRICS = tuple(column.name for column in HEAD_SCORES.columns if column.kind == "share")
"""Pattern scores of a head."""
LOSSES = ("copy_loss", "icl", "loss")
"""Losses that are measured along an arm."""
BASELINE = "baseline"
"""Name of the unchanged arm."""
SAME_KIND_SHARE = 0.5
"""Share of the chosen head's final score from which a head counts as of the same kind."""

Head = tuple[int, int]
"""Layer and head."""
Key = tuple[int, str, str]
"""Seed, arm and the kind of head whose samples the arm changes; empty where it has none."""


@dataclass(frozen=True)
class Curve:
    """One arm of one seed.

    steps: optimiser steps at which it was measured, rising.
    scores: by step, head (in the order of `heads`) and metric (of `METRICS`).
    losses: by step and kind (of `LOSSES`), in nats per token; NaN where it was not measured.
    """

    heads: tuple[Head, ...]
    steps: Int[np.ndarray, " steps"]
    scores: Float[np.ndarray, "steps heads metrics"]
    losses: Float[np.ndarray, "steps kinds"]


@dataclass(frozen=True)
class Choice:
    """The head that a seed's arms are about."""

    seed: int
    unit: str
    head: Head
    metric: str
    """Pattern score that shows heads of its kind."""


@dataclass(frozen=True)
class Compared:
    """An arm and its seed's baseline within the window, at the steps at which both were measured.

    branch, end: steps at which the window begins and ends. before: the baseline's scores at the
    branch, which all arms share.
    """

    heads: tuple[Head, ...]
    branch: int
    end: int
    steps: Int[np.ndarray, " steps"]
    arm: Float[np.ndarray, "steps heads metrics"]
    baseline: Float[np.ndarray, "steps heads metrics"]
    before: Float[np.ndarray, "heads metrics"]
    arm_losses: Float[np.ndarray, "steps kinds"]
    baseline_losses: Float[np.ndarray, "steps kinds"]

    def changes(self, metric: str) -> Float[np.ndarray, " heads"]:
        """Each head's score in the arm minus in the baseline, mean over the window."""
        place = METRICS.index(metric)
        return (self.arm - self.baseline)[:, :, place].mean(axis=0)

    def own_changes(self) -> Float[np.ndarray, " heads"]:
        """The same, each head by the metric that is highest for it when the baseline ends."""
        changes = (self.arm - self.baseline).mean(axis=0)
        own = self.baseline[-1].argmax(axis=1)
        return changes[np.arange(len(own)), own]

    def kinds(
        self, choice: Choice
    ) -> tuple[Bool[np.ndarray, " heads"], Bool[np.ndarray, " heads"]]:
        """Which other heads are of the chosen head's kind, and which are of another.

        Of the same kind are heads whose score on the kind's metric, when the baseline ends, is
        `SAME_KIND_SHARE` of the chosen head's or more. The chosen head is in neither.
        """
        final = self.baseline[-1, :, METRICS.index(choice.metric)]
        chosen = np.array([head == choice.head for head in self.heads])
        same = final >= SAME_KIND_SHARE * final[chosen]
        return same & ~chosen, ~same & ~chosen


@dataclass(frozen=True)
class StudyFrames:
    """The tables of a study that effects are computed from, as frames, and each kind's metric."""

    scores: pd.DataFrame
    losses: pd.DataFrame
    arms: pd.DataFrame
    choices: pd.DataFrame
    metrics: Mapping[str, str]

    @cached_property
    def curves(self) -> dict[Key, Curve]:
        """Every arm by seed, name and kind of head."""
        named = ["seed", "arm", "unit"]
        losses = {_key(key): rows for key, rows in self.losses.groupby(named)}
        return {
            _key(key): _curve(rows, losses[_key(key)]) for key, rows in self.scores.groupby(named)
        }

    @property
    def chosen(self) -> list[Choice]:
        """The head of each kind and seed."""
        columns = self.choices[["seed", "unit", "layer", "head"]]
        return [
            Choice(int(seed), str(unit), (int(layer), int(head)), self.metrics[str(unit)])
            for seed, unit, layer, head in columns.itertuples(index=False)
        ]

    def arms_of(self, seed: int) -> list[tuple[str, str]]:
        """Arms of a seed beside the baseline, each with its kind of head."""
        own = self.arms[(self.arms["seed"] == seed) & (self.arms["arm"] != BASELINE)]
        return [(str(arm), str(unit)) for arm, unit in own[["arm", "unit"]].itertuples(index=False)]

    @cached_property
    def _windows(self) -> dict[Key, tuple[int, int]]:
        """Steps at which each arm's window begins and ends."""
        columns = (self.arms[name].tolist() for name in ("seed", "arm", "unit"))
        ends = (self.arms[name].tolist() for name in ("branch_step", "end_step"))
        return dict(zip(zip(*columns, strict=True), zip(*ends, strict=True), strict=True))

    def compare(self, seed: int, arm: str, unit: str) -> Compared:
        """An arm beside its seed's baseline.

        Raises:
            ConfigError: the two were measured together at no step of the window.
        """
        base, own = self.curves[seed, BASELINE, ""], self.curves[seed, arm, unit]
        branch, end = self._windows[seed, arm, unit]
        steps = np.intersect1d(base.steps, own.steps)
        steps = steps[(steps > branch) & (steps <= end)]
        require(
            len(steps) > 0,
            f"Arm {arm} of seed {seed} was measured at no step between {branch} and {end}; "
            "evaluate more often than once a window.",
        )
        ours, theirs = np.isin(own.steps, steps), np.isin(base.steps, steps)
        earlier = max(0, int(np.searchsorted(base.steps, branch, side="right")) - 1)
        return Compared(
            heads=base.heads,
            branch=branch,
            end=end,
            steps=steps,
            arm=own.scores[ours],
            baseline=base.scores[theirs],
            before=base.scores[earlier],
            arm_losses=own.losses[ours],
            baseline_losses=base.losses[theirs],
        )


def _key(values: Any) -> Key:
    seed, arm, unit = values
    return int(seed), str(arm), str(unit)


def _curve(scores: pd.DataFrame, losses: pd.DataFrame) -> Curve:
    rows = scores.sort_values(["step", "layer", "head"])
    steps = np.unique(rows["step"].to_numpy(np.int64))
    heads = sorted(set(zip(rows["layer"].tolist(), rows["head"].tolist(), strict=True)))
    values = rows[list(METRICS)].to_numpy(np.float64)
    kept = losses.set_index("step")[list(LOSSES)].reindex(steps).to_numpy(np.float64)
    return Curve(tuple(heads), steps, values.reshape(len(steps), len(heads), -1), kept)
