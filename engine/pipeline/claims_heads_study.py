"""The claims on attention heads that a study's arms decide."""

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from engine.errors import CacheMissing
from engine.mda.coupling import coupling
from engine.mda.curves import BASELINE, StudyFrames
from engine.mda.effects import loss_changes, paired_difference, relative_gains, seed_effects
from engine.mda.intervals import Interval, t_interval
from engine.mda.transfer import TOP_ARMS, transfer_ratio
from engine.pipeline.claims import Measured
from engine.pipeline.heads_analysis import check_analysed, study_frames
from engine.store import Run, open_run, read_table


RANDOM_ARMS = ("delete_random", "augment_random")
FORMED = 0.5
"""Share of attention where a head of the kind should attend, from which it counts as formed."""


def measure_emergence(evidence: Path, *, kinds: Mapping[str, str]) -> Measured:
    """Share of seeds and kinds in which some head has formed when the baseline ends."""
    run = open_run(evidence.parent)
    scores = read_table(run, "head_scores", where={"arm": BASELINE})
    last = scores.groupby("seed")["step"].transform("max")
    best = scores[scores["step"] == last].groupby("seed")[list(kinds.values())].max()
    formed = best.to_numpy(np.float64) >= FORMED
    control = {f"lowest_{kind}": float(best[metric].min()) for kind, metric in kinds.items()}
    return Measured(
        value=float(formed.mean()),
        control={**control, "bar": FORMED},
        setting=f"{study_setting(run)}; {len(best)} seeds; largest score of any head",
    )


def measure_delay(evidence: Path, *, arm: str, unit: str, random: str) -> Measured:
    """Mean delay of an arm on the head whose samples it changes, with the random arm beside."""
    run = open_run(evidence.parent)
    check_analysed(run)
    own = _effect(run, arm, unit, "delay")
    control = _finite({random: _value(run, random, unit, "delay")})
    control["censored"] = float(_censored(run, arm, unit))
    return Measured(
        value=own.mean,
        interval=(own.low, own.high),
        control=control,
        setting=f"{study_setting(run)}; {own.n} seeds in which half of the head's score came after "
        "the window began; t-interval; censored: seeds in which the head does not form within the "
        "window and counts as forming at its end",
    )


def measure_score(evidence: Path, *, arm: str, unit: str, random: str) -> Measured:
    """Mean change of the score over the window, with the random arm and the window's end beside."""
    run = open_run(evidence.parent)
    check_analysed(run)
    own = _effect(run, arm, unit, "score")
    control = {
        random: _value(run, random, unit, "score"),
        "end_of_window": _value(run, arm, unit, "final_score"),
    }
    return Measured(
        value=own.mean,
        interval=(own.low, own.high),
        control=_finite(control),
        setting=f"{study_setting(run)}; {own.n} seeds; t-interval",
    )


def measure_random(evidence: Path, *, unit: str) -> Measured:
    """Largest mean effect of a random arm on the score, in size, over the smallest of a top arm."""
    run = open_run(evidence.parent)
    check_analysed(run)
    tops = {arm: _effect(run, arm, unit, "score") for arm in TOP_ARMS}
    drawn = {arm: _effect(run, arm, unit, "score") for arm in RANDOM_ARMS}
    control = {
        f"{arm}{end}": value
        for arm, over in {**drawn, **tops}.items()
        for end, value in (("", over.mean), ("_low", over.low), ("_high", over.high))
    }
    weakest = min(abs(over.mean) for over in tops.values())
    if weakest == 0:
        raise CacheMissing(f"The top arms of {run.name} moved nothing to compare with.")
    return Measured(
        value=max(abs(over.mean) for over in drawn.values()) / weakest,
        control=control,
        setting=f"{study_setting(run)}; {min(over.n for over in drawn.values())} seeds; changes "
        "of the score over the window with t-intervals",
    )


def measure_pair(evidence: Path, *, unit: str, arms: tuple[str, str], measure: str) -> Measured:
    """One arm's effect minus another's, paired by seed, with each arm's own beside."""
    run = open_run(evidence.parent)
    effects = _effects(run)
    over = _over_seeds(run, paired_difference(effects, unit, measure, arms))
    shown = dict.fromkeys((*arms, "delete_top"))
    means = {
        arm: t_interval(effects.loc[_rows(effects, arm, unit, measure), "effect"].to_numpy()).mean
        for arm in shown
    }
    return Measured(
        value=over.mean,
        interval=(over.low, over.high),
        control=_finite(means),
        setting=f"{study_setting(run)}; {over.n} seeds, paired; t-interval",
    )


def measure_gain(evidence: Path, *, unit: str) -> Measured:
    """Gain of the score at the window's end by synthetic rows, in percent of the baseline's."""
    run = open_run(evidence.parent)
    frames = _frames(run)
    final, window = relative_gains(frames, unit, "synthetic")
    over = _over_seeds(run, final)
    others = ("synthetic_control", "augment_top", "augment_random")
    beside = {arm: t_interval(relative_gains(frames, unit, arm)[0]).mean for arm in others}
    return Measured(
        value=over.mean,
        interval=(over.low, over.high),
        control={"over_the_window": float(window.mean()), **_finite(beside)},
        setting=f"{study_setting(run)}; {over.n} seeds; t-interval; as many synthetic rows as "
        f"{_study(run)['top_share']:.0%} of the window's samples",
    )


def measure_transfer(evidence: Path, *, unit: str) -> Measured:
    """Mean absolute effect of the top arms on other heads of the kind ÷ on heads of another."""
    run = open_run(evidence.parent)
    frames = _frames(run)
    over = transfer_ratio(frames, unit)
    _require_interval(run, over)
    control = {
        "random_arms": transfer_ratio(frames, unit, RANDOM_ARMS).mean,
        "by_own_metric": transfer_ratio(frames, unit, own_metric=True).mean,
    }
    return Measured(
        value=over.mean,
        interval=(over.low, over.high),
        control=_finite(control),
        setting=f"{study_setting(run)}; {over.n} seeds with another head of the kind; arms "
        f"{', '.join(TOP_ARMS)}; geometric mean with t-interval of its logarithm; by_own_metric: "
        "each head by the score that is highest for it",
    )


def measure_coupling(evidence: Path, *, unit: str) -> Measured:
    """Correlation over arms and seeds of the changes of the score and of the in-context score."""
    run = open_run(evidence.parent)
    found = coupling(_effects(run), unit)
    if not np.isfinite(found.low):
        raise CacheMissing(f"Run {run.name} has too few seeds or arms for a correlation.")
    return Measured(
        value=found.pearson,
        interval=(found.low, found.high),
        control={"spearman": found.spearman},
        setting=f"{study_setting(run)}; {found.n_points} arms of {found.n_seeds} seeds; changes "
        "are means over the window; interval by resampling seeds",
    )


def measure_loss(evidence: Path, *, unit: str) -> Measured:
    """Change of the held-out loss by copies of the top samples, in percent of the baseline's."""
    run = open_run(evidence.parent)
    frames = _frames(run)
    over = _over_seeds(run, loss_changes(frames, unit, "augment_top"))
    others = ("augment_random", "synthetic", "delete_top")
    beside = {arm: t_interval(loss_changes(frames, unit, arm)).mean for arm in others}
    return Measured(
        value=over.mean,
        interval=(over.low, over.high),
        control=_finite(beside),
        setting=f"{study_setting(run)}; {over.n} seeds; held-out natural rows; t-interval",
    )


# --- pieces -----------------------------------------------------------------------------------


def study_setting(run: Run) -> str:
    """A study in one line: decoder, rows, window.

    Raises:
        CacheMissing: the run holds no study.
    """
    study = _study(run)
    domains = ", ".join(f"{name} {share:g}" for name, share in study["domain_weights"].items())
    return (
        f"GPT-NeoX {study['n_layers']} layers d {study['d_model']}, {study['n_heads']} heads, "
        f"vocabulary {study['vocab_size']}, context {study['context']}; "
        f"{study['repeat_share']:.0%} of rows repeat a random segment, the others {domains}; "
        f"window of {study['window_steps']} steps of {study['batch_size']} rows around the onset"
    )


@lru_cache(maxsize=2)
def _frames(run: Run) -> StudyFrames:
    """The study's frames; several claims in a row ask for them."""
    return study_frames(run)


@lru_cache(maxsize=2)
def _effects(run: Run) -> pd.DataFrame:
    """Effects by seed; read them, never change them."""
    return seed_effects(_frames(run))


def _study(run: Run) -> dict[str, Any]:
    facts = run.manifest["stages"].get("study")
    if facts is None or "study" not in facts:
        raise CacheMissing(f"Run {run.name} holds no study of heads.")
    return facts["study"]


def _effect(run: Run, arm: str, unit: str, measure: str) -> Interval:
    """A row of `head_effects` that has an interval."""
    where = {"arm": arm, "unit": unit, "measure": measure}
    rows = read_table(run, "head_effects", where=where).to_dict("records")
    if not rows:
        raise CacheMissing(f"Run {run.name} has no effect of {arm} on {unit} heads.")
    effect, low, high = (float(rows[0][name]) for name in ("effect", "low", "high"))
    over = Interval(effect, low, high, int(rows[0]["n_seeds"]))
    _require_interval(run, over)
    return over


def _value(run: Run, arm: str, unit: str, measure: str) -> float:
    where = {"arm": arm, "unit": unit, "measure": measure}
    found = read_table(run, "head_effects", where=where)["effect"]
    return float(found.iloc[0]) if len(found) else float("nan")


def _censored(run: Run, arm: str, unit: str) -> int:
    effects = _effects(run)
    return int(effects.loc[_rows(effects, arm, unit, "delay"), "censored"].sum())


def _rows(effects: pd.DataFrame, arm: str, unit: str, measure: str) -> "pd.Series[bool]":
    """Rows of an arm that changes samples of the kind it is asked about, or of none."""
    of = effects["arm_unit"].isin(["", unit]) & effects["unit"].eq(unit)
    return of & effects["arm"].eq(arm) & effects["measure"].eq(measure)


def _over_seeds(run: Run, values: Float[np.ndarray, " seeds"]) -> Interval:
    over = t_interval(values)
    _require_interval(run, over)
    return over


def _require_interval(run: Run, over: Interval) -> None:
    if over.n < 2:
        raise CacheMissing(f"{over.n} seeds of run {run.name} have this arm; two are needed.")


def _finite(values: Mapping[str, float]) -> dict[str, float]:
    return {name: float(value) for name, value in values.items() if np.isfinite(value)}
