"""Whether heads form, by what the rows are made of: baselines alone, one a mixture and seed."""

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from engine.corpus.documents import Progress, no_progress
from engine.pipeline.heads_seed import SeedStudy
from engine.pipeline.heads_settings import HeadStudy, Mixture
from engine.pipeline.heads_workspace import open_workspace
from engine.store import Run, RunWriter, open_run, resolve_run


STAGE = "mixtures"
"""Stage of a run that holds the table."""


def try_mixtures(
    study: HeadStudy,
    mixtures: Sequence[Mixture],
    run: str | Path,
    *,
    device: str = "auto",
    progress: Progress = no_progress,
) -> Run:
    """Train a baseline on every mixture and write what formed; finished ones are not trained again.

    Each goes on until heads formed and a window passed, or to `study.longest_steps`.

    Args:
        study: settings of everything but the rows.
        mixtures: rows.
        run: a run of kind `heads`, which the table becomes part of.
        device: device name, or auto.
        progress: wraps steps.
    """
    path = resolve_run(run)
    open_run(path)
    frames, names = [], []
    for mixture in mixtures:
        workspace = open_workspace(mixture.of(study), device, progress)
        names.append(workspace.folder.name)
        for number in range(mixture.seeds):
            seed = workspace.seed(number)
            seed.baseline()
            frames.append(_rows(mixture, seed))
    writer = RunWriter.resume(path)
    identity = {"mixtures": [dataclasses.asdict(mixture) for mixture in mixtures], "of": names}
    if not writer.begin_stage(STAGE, identity):
        writer.write_table("head_mixtures", pd.concat(frames, ignore_index=True))
        writer.finish_stage(STAGE, {"mixtures": len(mixtures)})
    return open_run(path)


def _rows(mixture: Mixture, seed: SeedStudy) -> pd.DataFrame:
    """Rows of `head_mixtures`."""
    tokens = seed.study.batch_size * seed.study.context
    named: dict[str, Any] = {
        "mixture": mixture.name,
        "repeat_share": mixture.repeat_share,
        "domains": json.dumps(mixture.domain_weights, sort_keys=True),
        "seed": seed.seed,
    }
    rows = [
        {
            **named,
            "step": row["step"],
            "tokens_seen": row["step"] * tokens,
            "prefix_matching": np.max(row["heads"]["prefix_matching"]),
            "previous_token": np.max(row["heads"]["previous_token"]),
            "copy_loss": row["copy_loss"],
            "loss": row["loss"],
        }
        for row in seed.facts["curve"]
    ]
    return pd.DataFrame(rows)
