"""The stage `curvature`: the Hessian of a run's bank, and of arms over clustering strength.

Every arm is measured in a stage of its own run, so what is done stays done; the run that asked
keeps their figures beside its own.
"""

import logging
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from engine.corpus.documents import Progress, no_progress
from engine.pipeline.curvature_arms import Series
from engine.pipeline.curvature_run import (
    CurvatureStudy,
    Tables,
    check_tokens,
    measure_run,
    require_bank,
)
from engine.provenance import fingerprint
from engine.store import Run, RunWriter, open_run, read_table


logger = logging.getLogger(__name__)

STAGE = "curvature"
_GATHERED = ("curvature_arms", "curvature", "curvature_spectrum")
"""Tables to which arms add rows."""


def study_curvature(
    run_name: str | Path,
    arms: Sequence[str] = (),
    study: CurvatureStudy | None = None,
    *,
    progress: Progress = no_progress,
) -> Run:
    """Measure a run, and with `arms` a series that differs in clustering weight and seed alone.

    Asked again without arms, a run that was measured with them is kept as it is.

    Args:
        run_name: A run with a bank.
        arms: Runs by name, or patterns of names; dense ones among them are what the others'
            loss and participation ratio are held against.
        study: Tokens, damping and seed.
        progress: Wraps batches.

    Raises:
        ConfigError: Too few tokens, fewer than two arms, or arms that differ in more than that.
        UnsupportedModel: The run has no bank.
    """
    study = study or CurvatureStudy()
    run = open_run(run_name)
    require_bank(run)
    check_tokens(run, study.tokens)
    series = Series.of(arms, leave_out=run.name) if arms else Series()
    for arm in series.arms:
        check_tokens(arm, study.tokens)
    if _is_measured(run, study, series):
        logger.info("curvature of %s was measured; kept", run.name)
        return run
    started = time.perf_counter()
    beside = [series.beside(_measured_arm(arm, study, progress), arm) for arm in series.arms]
    tables = measure_run(run, study, progress)
    gathered = {
        name: pd.concat([tables[name], *(found[name] for found in beside)], ignore_index=True)
        for name in _GATHERED
    }
    return _write(run, tables | gathered, study, series, started)


def _measured_arm(arm: Run, study: CurvatureStudy, progress: Progress) -> Tables:
    """Tables of an arm, from its own stage where that was done before."""
    done = study_curvature(arm.path, study=study, progress=progress)
    own = {"arm": arm.name}
    return {name: read_table(done, name, where=own) for name in _GATHERED}


def _write(run: Run, tables: Tables, study: CurvatureStudy, series: Series, started: float) -> Run:
    """Write everything in one stage; it is begun only when all is measured."""
    writer = RunWriter.resume(run.path)
    marks = _marks(run, study, series)
    if not writer.begin_stage(STAGE, marks):
        for name, table in tables.items():
            writer.write_table(name, table)
        facts = {"tokens": int(tables["curvature_arms"]["tokens"].iloc[0]), **marks}
        writer.finish_stage(STAGE, {"seconds": time.perf_counter() - started, **facts})
    return open_run(run.path)


def _marks(run: Run, study: CurvatureStudy, series: Series) -> dict[str, Any]:
    """What the stage's result depends on: the run's model, the settings, the arms' models."""
    return {
        "measured": fingerprint([_model(run), study]),
        "arms": [[arm.name, _model(arm)] for arm in (*series.arms, *series.dense.values())],
    }


def _model(run: Run) -> str | None:
    return (run.manifest.get("model") or {}).get("fingerprint")


def _is_measured(run: Run, study: CurvatureStudy, series: Series) -> bool:
    """Whether the stage was finished with this model, these settings and, if any, these arms."""
    entry = run.manifest["stages"].get(STAGE, {})
    marks = _marks(run, study, series)
    same = "finished" in entry and entry.get("measured") == marks["measured"]
    return same and (not series.arms or entry.get("arms") == marks["arms"])
