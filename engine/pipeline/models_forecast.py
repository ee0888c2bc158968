"""Tell scores of models from their embeddings, under three regimes and beside baselines."""

import logging
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Int

from engine.atlas.forecasts import Told, forecast_figures, tell_all, told_of
from engine.atlas.ridge import ridge_left_out
from engine.corpus.documents import Progress, no_progress
from engine.pipeline.models_forecast_reading import ForecastMap, open_forecast_map
from engine.pipeline.models_routing_reading import table_marks
from engine.schema.model_forecast_tables import MODEL_FORECAST_RESULTS, MODEL_FORECASTS
from engine.store import Run, RunWriter, open_run


logger = logging.getLogger(__name__)
STAGE = "forecasts"
OTHER_DOMAINS, MEAN_TARGET = "other_domains", "mean"
_INPUTS = (
    *("model_cards", "model_catalogue", "model_embeddings", "model_options", "model_probes"),
    "model_words",
)
_VERSION = 2
"""Goes up when something is computed otherwise."""


def forecast_scores(
    run_name: str | Path,
    scores: Path | None = None,
    columns: Sequence[str] = (),
    progress: Progress = no_progress,
) -> Run:
    """Write the tables of forecasts of a map.

    Args:
        run_name: Name or folder of the map.
        scores: CSV file of scores; accuracies on held-out questions, by domain, without it.
        columns: Columns of the file.
        progress: Wraps regimes.

    Raises:
        ConfigError: The run is no map, or the scores cannot be read.
        CacheMissing: It holds no embeddings, cards or answers.
    """
    found = open_forecast_map(run_name, scores, columns)
    run = found.data.run
    writer = RunWriter.resume(run.path)
    targets = {"names": found.scores.targets, "mark": found.scores.mark}
    identity = {"inputs": table_marks(run, _INPUTS), "targets": targets, "version": _VERSION}
    if writer.begin_stage(STAGE, identity):
        return run
    started = time.perf_counter()
    told = _told(found, progress)
    writer.write_table(MODEL_FORECASTS.name, pd.concat(list(_forecasts(found, told))))
    rows = list(_results(found, told))
    writer.write_table(MODEL_FORECAST_RESULTS.name, pd.DataFrame(rows))
    facts = {
        "seconds": time.perf_counter() - started,
        "scores": found.scores.source,
        "targets": list(found.scores.targets),
        "n_models": len(found.scores.names),
    }
    writer.finish_stage(STAGE, facts)
    return open_run(run.path)


Key = tuple[str, str]
"""Regime and method."""


def _told(found: ForecastMap, progress: Progress) -> dict[Key, Told]:
    """What every method says under every regime."""
    features, values = found.features(), found.scores.values
    others = {target: found.without_domain(target) for target in found.scores.targets}
    regimes = found.regimes()
    told: dict[Key, Told] = {}
    for regime, groups in progress(regimes.items(), label="Forecasts", total=len(regimes)):
        if len(np.unique(groups)) < 3:
            logger.info("%s is left out: the models are of fewer than three groups", regime)
            continue
        said = tell_all(features, values, groups, found.embeddings, found.edges)
        told |= {(regime, method): own for method, own in said.items()}
        if all(own is not None for own in others.values()):
            told[regime, OTHER_DOMAINS] = _other_domains(found, others, groups)
    return told


def _other_domains(
    found: ForecastMap, others: dict[str, Any], groups: Int[np.ndarray, " models"]
) -> Told:
    """Each domain's score from embeddings that no probe of it went into."""
    columns = [
        ridge_left_out(others[target], found.scores.values[:, [place]], groups)[:, 0]
        for place, target in enumerate(found.scores.targets)
    ]
    return told_of(np.stack(columns, axis=1), found.scores.values, groups)


def _forecasts(found: ForecastMap, told: dict[Key, Told]) -> Iterator[pd.DataFrame]:
    for (regime, method), said in told.items():
        for place, target in enumerate(found.scores.targets):
            yield pd.DataFrame(
                {
                    "target": target,
                    "regime": regime,
                    "method": method,
                    "model": list(found.scores.names),
                    "true": found.scores.values[:, place],
                    "predicted": said.predicted[:, place],
                }
            )


def _results(found: ForecastMap, told: dict[Key, Told]) -> Iterator[dict[str, Any]]:
    units = found.regimes()["one_root_out"]
    names = (*found.scores.targets, MEAN_TARGET)
    for (regime, method), said in told.items():
        figures = forecast_figures(said, found.scores.values, units)
        for metric, estimates in figures.items():
            for target, estimate in zip(names, estimates, strict=True):
                key = {"target": target, "regime": regime, "method": method, "metric": metric}
                if np.isfinite(estimate.value):
                    yield {**key, **estimate._asdict()}
