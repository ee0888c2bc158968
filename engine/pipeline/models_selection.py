"""Choose which root to adapt to a target by its embedding, held against having adapted all."""

import dataclasses
import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from engine.atlas.forecasts import NEIGHBOURS, neighbours_mean, told_of
from engine.atlas.resampling import t_mean
from engine.atlas.ridge import ridge_left_out
from engine.atlas.selection import random_figures, selection_figures
from engine.atlas.similarity import cosines
from engine.config import require
from engine.corpus.documents import Progress, no_progress
from engine.errors import CacheMissing
from engine.jobs import Fan
from engine.pipeline.models_adapting import FOLDER, AdaptSettings, adapt_roots, reopened_zoo
from engine.pipeline.models_forecast_reading import ForecastMap, Scores, lineage_groups
from engine.pipeline.models_relations_reading import MapData, open_map_data
from engine.pipeline.models_routing_reading import table_marks
from engine.pipeline.models_zoo_folder import ZooFolder
from engine.provenance import fingerprint
from engine.schema.model_selection_tables import (
    MODEL_ADAPTATIONS,
    MODEL_CANDIDATES,
    MODEL_SELECTION_RESULTS,
)
from engine.store import Run, RunWriter, open_run, read_table


logger = logging.getLogger(__name__)
STAGE = "selection"
AFTER, GAIN = "after", "gain"
BEFORE, RANDOM, MEAN_TARGET = "before", "random", "mean"
_METHODS = (
    *("able", "paper", "square_root", "contrast", "able_whole", "contrast_whole"),
    *("options", "probe_accuracy", "log_parameters"),
)
_INPUTS = (
    "model_cards",
    "model_catalogue",
    "model_embeddings",
    "model_options",
    "model_probes",
    "model_words",
)
_LEAST = 5
_VERSION = 2
"""Goes up when something is computed otherwise."""


@dataclass(frozen=True)
class Adapted:
    """Roots with what adapting them gave: means over seeds."""

    names: tuple[str, ...]
    targets: tuple[str, ...]
    before: Float[np.ndarray, "models targets"]
    after: Float[np.ndarray, "models targets"]

    def outcome(self, name: str) -> Float[np.ndarray, "models targets"]:
        """Scores after, or what was gained."""
        return self.after if name == AFTER else self.after - self.before


def select_models(
    run_name: str | Path,
    zoo: ZooFolder | Path | None = None,
    settings: AdaptSettings | None = None,
    fan: Fan | None = None,
    progress: Progress = no_progress,
) -> Run:
    """Adapt the roots of a map's zoo, and write how well candidates are told beforehand.

    Args:
        run_name: Name or folder of the map.
        zoo: Folder of the zoo; where the catalogue says the roots lie unless given.
        settings: Targets, seeds and training.
        fan: Where adaptations run.
        progress: Wraps adaptations.

    Raises:
        ConfigError: The run is no map, or a target is unknown.
        CacheMissing: It holds no embeddings or cards, or the zoo is not here or not finished.
    """
    settings = settings or AdaptSettings()
    data = open_map_data(run_name)
    run = data.run
    found = zoo if isinstance(zoo, ZooFolder) else reopened_zoo(zoo or _zoo_path(run))
    rows = adapt_roots(found, run.path / FOLDER, settings, fan, progress)
    writer = RunWriter.resume(run.path)
    identity = {
        "inputs": table_marks(run, _INPUTS),
        "adaptations": fingerprint(rows.to_dict("records")),
        "settings": dataclasses.asdict(settings),
        "version": _VERSION,
    }
    if writer.begin_stage(STAGE, identity):
        return run
    started = time.perf_counter()
    adapted = adapted_of(rows, data.names)
    predicted = dict(told_candidates(data, adapted))
    writer.write_table(MODEL_ADAPTATIONS.name, rows)
    writer.write_table(MODEL_CANDIDATES.name, pd.concat(list(_candidates(adapted, predicted))))
    writer.write_table(MODEL_SELECTION_RESULTS.name, result_frame(adapted, predicted))
    facts = {
        "seconds": time.perf_counter() - started,
        "schedule": dataclasses.asdict(settings.schedule),
        "seeds": settings.seeds,
        "targets": list(adapted.targets),
        "n_models": len(adapted.names),
    }
    writer.finish_stage(STAGE, facts)
    return open_run(run.path)


def _zoo_path(run: Run) -> Path:
    """Folder of the zoo whose models the catalogue names: each lies in its folder `models`."""
    rows = read_table(run, "model_cards", columns=["place"])
    parents = {Path(place).parent for place in rows["place"]}
    folders = {parent.parent for parent in parents if parent.name == "models"}
    if len(folders) != 1:
        raise CacheMissing(
            f"Run {run.name} is no map of one zoo on this machine, whose roots could be adapted; "
            "name the zoo's folder with --zoo."
        )
    return folders.pop()


def adapted_of(rows: pd.DataFrame, embedded: tuple[str, ...]) -> Adapted:
    """Means over seeds of the roots that are embedded.

    Raises:
        ConfigError: Fewer than five roots are embedded.
    """
    means = rows.groupby(["model", "target"])[["before", "after"]].mean().unstack("target")
    names = tuple(name for name in embedded if name in means.index)
    require(
        len(names) >= _LEAST,
        f"{len(names)} adapted roots are embedded in the map, and {_LEAST} are needed; embed the "
        "zoo's roots with `headwater models embed`.",
    )
    before, after = (means.loc[list(names), score] for score in ("before", "after"))
    targets = tuple(map(str, before.columns))
    return Adapted(names, targets, before.to_numpy(np.float64), after.to_numpy(np.float64))


Key = tuple[str, str, str]
"""Outcome, regime and method."""


def told_candidates(
    data: MapData, adapted: Adapted
) -> Iterator[tuple[Key, Float[np.ndarray, "models targets"]]]:
    """What every method expects of adapting each root, told without it.

    The score before stands for itself; of gains for its negative, as what is known is not gained.
    """
    scores = Scores(adapted.names, adapted.targets, adapted.after, "", "")
    view = ForecastMap(data, scores)
    features = {name: own for name, own in view.features().items() if name in _METHODS}
    near = cosines(view.embeddings)
    regimes = lineage_groups(data, adapted.names)
    for outcome, (regime, groups) in product((AFTER, GAIN), regimes.items()):
        values = adapted.outcome(outcome)
        if not _enough(groups):
            logger.info("%s is left out: the roots are of fewer than three groups", regime)
            continue
        for method, own in features.items():
            told = ridge_left_out(own, values, groups)
            yield (outcome, regime, method), _ranked(told, values, groups)
        told = neighbours_mean(near, values, groups)
        yield (outcome, regime, NEIGHBOURS), _ranked(told, values, groups)
        sign = 1.0 if outcome == AFTER else -1.0
        yield (outcome, regime, BEFORE), sign * adapted.before


def _ranked(
    told: Float[np.ndarray, "models targets"],
    values: Float[np.ndarray, "models targets"],
    groups: Int[np.ndarray, " models"],
) -> Float[np.ndarray, "models targets"]:
    """What is told beyond the mean of the roots fitted on, laid on the mean of all.

    The former mean falls as the outcome left out rises; ranked by it, roots would stand backwards.
    """
    return told_of(told, values, groups).beyond + values.mean(0)


def _enough(groups: Int[np.ndarray, " models"]) -> bool:
    return len(np.unique(groups)) >= 3


def _candidates(
    adapted: Adapted, predicted: dict[Key, Float[np.ndarray, "models targets"]]
) -> Iterator[pd.DataFrame]:
    for (outcome, regime, method), told in predicted.items():
        for place, target in enumerate(adapted.targets):
            yield pd.DataFrame(
                {
                    "target": target,
                    "outcome": outcome,
                    "regime": regime,
                    "method": method,
                    "model": list(adapted.names),
                    "true": adapted.outcome(outcome)[:, place],
                    "predicted": told[:, place],
                }
            )


def result_frame(
    adapted: Adapted, predicted: dict[Key, Float[np.ndarray, "models targets"]]
) -> pd.DataFrame:
    """Rows of `model_selection_results`; means over targets with their t-interval."""
    rows: list[dict[str, Any]] = []
    for (outcome, regime, method), told in predicted.items():
        values = adapted.outcome(outcome)
        by_target = [selection_figures(a, b) for a, b in zip(values.T, told.T, strict=True)]
        rows += _rows(adapted, (outcome, regime, method), by_target)
    for outcome, regime in dict.fromkeys((outcome, regime) for outcome, regime, _ in predicted):
        by_target = [random_figures(values) for values in adapted.outcome(outcome).T]
        rows += _rows(adapted, (outcome, regime, RANDOM), by_target)
    return pd.DataFrame(rows)


def _rows(
    adapted: Adapted, key: Key, by_target: list[dict[str, float]]
) -> Iterator[dict[str, Any]]:
    names = dict(zip(("outcome", "regime", "method"), key, strict=True))
    for metric in by_target[0]:
        values = np.array([figures[metric] for figures in by_target])
        for target, value in zip(adapted.targets, values, strict=True):
            known = float(value) if np.isfinite(value) else None
            single = {"value": known, "low": None, "high": None, "n": len(adapted.names)}
            yield {"target": target, **names, "metric": metric, **single}
        mean = None if metric == "random_p" else t_mean(values)
        if mean is not None:
            yield {"target": MEAN_TARGET, **names, "metric": metric, **mean._asdict()}
