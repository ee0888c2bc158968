"""One intervention on a study's seed: samples of a head deleted, copied or replaced."""

from typing import Any

import numpy as np

from engine.config import require
from engine.corpus.documents import Progress, no_progress
from engine.mda.arms import (
    Arm,
    Sample,
    augment,
    delete,
    random_samples,
    replace,
    sample_rows,
    top_samples,
)
from engine.mda.curves import StudyFrames
from engine.mda.effects import seed_effects
from engine.mda.units import UNITS
from engine.pipeline.heads_seed import SeedStudy
from engine.pipeline.heads_settings import HeadStudy, Intervention
from engine.pipeline.heads_tables import arm_tables, baseline_arm, choice_rows
from engine.pipeline.heads_workspace import open_workspace


def intervene(
    study: HeadStudy,
    seed: int,
    intervention: Intervention,
    *,
    device: str = "auto",
    progress: Progress = no_progress,
) -> dict[str, Any]:
    """Train one arm of a seed and compare it with the seed's baseline.

    Baseline and influence are taken from the study's folder, or made there first. The arm itself
    is not kept.

    Returns:
        seed, window, n (samples changed), and for the head of every kind that was asked the
        effects by measure, as in `head_effects`.

    Raises:
        CacheMissing: no head formed in this seed.
        ConfigError: there is no such head, or kind of head.
    """
    require(
        intervention.unit in UNITS,
        f"There is no kind of head {intervention.unit!r}; choose from {', '.join(UNITS)}.",
    )
    work = open_workspace(study, device, progress).seed(seed)
    work.baseline()
    work.influence(UNITS[intervention.unit])
    arm = _arm(work, intervention)
    arms = [baseline_arm(work), work.arm_result(arm, intervention.unit)]
    tables = arm_tables(work, arms)
    choices = choice_rows(work, [intervention.unit])
    if intervention.head:
        choices["layer"], choices["head"] = intervention.head
    metrics = {name: unit.metric for name, unit in UNITS.items()}
    frames = StudyFrames(
        tables["head_scores"], tables["head_losses"], tables["head_arms"], choices, metrics
    )
    effects = seed_effects(frames)
    return {
        "seed": seed,
        "window": [work.window.start, work.window.stop],
        "head": f"{choices['layer'].iloc[0]}.{choices['head'].iloc[0]}",
        "n": len(arm.changed),
        "effects": dict(zip(effects["measure"], effects["effect"], strict=True)),
    }


def _arm(seed: SeedStudy, wanted: Intervention) -> Arm:
    samples = _samples(seed, wanted)
    if wanted.action == "augment":
        return augment("augment", seed.stream, samples, seed.study.insertion_steps(seed.branch))
    arm = delete("delete", samples)
    if wanted.action == "delete":
        return arm
    later = range(seed.window.stop, seed.window.stop + len(seed.window))
    drawn = random_samples(later, seed.study.batch_size, len(samples), seed.seed)
    return replace(arm, "replace", sample_rows(seed.stream, drawn))


def _samples(seed: SeedStudy, wanted: Intervention) -> list[Sample]:
    count = max(1, round(wanted.share * len(seed.window) * seed.study.batch_size))
    if wanted.side == "random":
        return random_samples(seed.window, seed.study.batch_size, count, seed.seed)
    scores = seed.influence_on(wanted.unit, wanted.head)
    return top_samples(
        np.negative(scores) if wanted.side == "bottom" else scores, seed.window, count
    )
