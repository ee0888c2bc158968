"""Loss against coverage: short arms with different loss weights from one common trunk.

Every arm, the dense one too, starts from the same checkpoint, sees the same rows and anneals over
the same steps; only the loss weights differ.
"""

import dataclasses
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from engine.config import LossWeights, TrainConfig
from engine.corpus.documents import Progress, no_progress
from engine.jobs import map_jobs
from engine.pipeline.training import train_run
from engine.store import Run, RunWriter, open_run


logger = logging.getLogger(__name__)

CLUSTERING_WEIGHTS = (0.03, 0.1, 0.3, 1.0)
"""Weights of L_R1 and L_R2, an arm each."""


def arm_name(run: str, weights: LossWeights | None) -> str:
    """Run name of an arm; None is the dense arm."""
    if weights is None:
        return f"{run}-arm-dense"
    return f"{run}-arm-{weights.reconstruction:g}-{weights.token_to_prototype:g}"


def arm_weights(
    clustering: Sequence[float] = CLUSTERING_WEIGHTS, reconstruction: float = 0.1
) -> list[LossWeights]:
    """One set of loss weights a clustering weight."""
    return [
        LossWeights(
            reconstruction=reconstruction, prototype_to_token=weight, token_to_prototype=weight
        )
        for weight in clustering
    ]


def train_arms(
    trunk: str | Path,
    config: TrainConfig,
    *,
    prefix: str,
    arms: Sequence[LossWeights],
    progress: Progress = no_progress,
) -> list[Run]:
    """Train the dense arm and one arm a set of weights; arms that are finished are kept.

    Args:
        trunk: Run folder with a checkpoint at `config.bank_start`.
        config: Settings of an arm; `weights` and `dense` are set here.
        prefix: Arms are called `<prefix>-arm-...`.
        arms: Loss weights.
        progress: Wraps steps.
    """

    def train_arm(weights: LossWeights | None) -> Run:
        changes: dict[str, Any] = {"dense": True} if weights is None else {"weights": weights}
        settings = dataclasses.replace(config, **changes)
        name = arm_name(prefix, weights)
        run = train_run(settings, name, fork_of=str(trunk), progress=progress)
        logger.info("arm %s: %s", name, run.manifest["stages"]["train"]["final"])
        return run

    return map_jobs(train_arm, (None, *arms))


def tradeoff_table(runs: Sequence[Run]) -> pd.DataFrame:
    """Rows of the `tradeoff` table; the first run is the dense arm."""
    dense = _final(runs[0])
    return pd.DataFrame([_arm_row(run, dense) for run in runs[1:]])


def write_tradeoff(run_name: str | Path, arms: Sequence[Run]) -> Run:
    """Write the `tradeoff` table of a run from finished arms."""
    run = open_run(run_name)
    writer = RunWriter.resume(run.path)
    identity = {"arms": [arm.stamp for arm in arms]}
    if not writer.begin_stage("tradeoff", identity):
        writer.write_table("tradeoff", tradeoff_table(arms))
        config = arms[0].manifest["config"]["train"]
        steps = config["steps"] - config["bank_start"]
        facts = {"fork_step": config["bank_start"], "steps": steps, "arms": len(arms)}
        writer.finish_stage("tradeoff", facts)
    return open_run(run_name)


def _final(run: Run) -> Mapping[str, Any]:
    return run.manifest["stages"]["train"]["final"]


def _arm_row(run: Run, dense: Mapping[str, Any]) -> dict[str, Any]:
    weights, final = run.manifest["config"]["train"]["weights"], _final(run)
    kept = ("coverage_r1", "coverage_r2", "residual_share", "pair_cosine", "participation_ratio")
    return {
        "arm": run.name,
        "reconstruction_weight": weights["reconstruction"],
        "prototype_to_token_weight": weights["prototype_to_token"],
        "token_to_prototype_weight": weights["token_to_prototype"],
        "validation_loss": final["validation_loss"],
        "dense_loss": dense["validation_loss"],
        **{name: final[name] for name in kept},
        "dense_participation_ratio": dense["participation_ratio"],
        "dead_share": final["dead_share"],
        "tokens_scanned": final["tokens_scanned"],
    }
