"""Route questions to models: every router over ten folds, models it never saw, a router to keep."""

import dataclasses
import logging
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Int

from engine.atlas.factorisation import HeadSettings, TrainedHead
from engine.atlas.folds import connected, grouped_folds
from engine.atlas.new_models import RETRAINED, NewModelFold, added_models
from engine.atlas.routers import (
    ABLE,
    EMBEDLLM,
    KNN,
    KNN_PUBLISHED,
    FoldPart,
    RoutingData,
    choose_neighbours,
    fit_router,
    knn_predicted,
)
from engine.config import require
from engine.corpus.documents import Progress, no_progress
from engine.pipeline.models_routing_keeping import keep_router
from engine.pipeline.models_routing_reading import RoutingMap, open_routing_map
from engine.pipeline.models_routing_tables import result_frame, route_frame
from engine.schema.model_routing_tables import MODEL_ROUTES, MODEL_ROUTING_RESULTS
from engine.store import Run, RunWriter, open_run


logger = logging.getLogger(__name__)
STAGE = "routing"
NEW_MODELS, NEW_LINEAGES = "new_models", "new_lineages"
_TRAINED = (ABLE, EMBEDLLM)
_VERSION = 1
"""Goes up when something is computed otherwise."""


@dataclass(frozen=True, kw_only=True)
class RoutingSettings:
    """How routers are trained and judged."""

    variant: str = ABLE
    """Embeddings that the router `able` reads."""
    seeds: int = 3
    """Trainings of every fold."""
    rates: tuple[float, ...] = (1e-4, 1e-3, 3e-3)
    """Learning rates, of which the first fold's validation questions choose; the first is the
    published one."""
    neighbours: tuple[int, ...] = (5, 11, 31, KNN_PUBLISHED)
    """Numbers of neighbours, chosen from likewise."""
    new_groups: int = 5
    """Parts of the models that are new in turn; each is a fifth of them."""
    head: HeadSettings = field(default_factory=HeadSettings)
    """Training of a head, its rate and seed apart."""

    def __post_init__(self) -> None:
        require(self.seeds >= 1, f"--seeds is {self.seeds}; it must be 1 or more.")
        require(self.new_groups >= 2, f"new_groups is {self.new_groups}; it must be 2 or more.")

    def heads(self, rate: float, seed: int) -> HeadSettings:
        """Training with a rate and a seed."""
        return dataclasses.replace(self.head, learning_rate=rate, seed=seed)


@dataclass(frozen=True)
class Routed:
    """What routers said."""

    predicted: dict[str, np.ndarray]
    """[seeds, models, questions] by router."""
    epochs: tuple[int, ...]
    """Epochs behind the heads over frozen embeddings, by fold."""


def route_models(
    run_name: str | Path,
    settings: RoutingSettings | None = None,
    progress: Progress = no_progress,
) -> Run:
    """Write the tables of routing of a map, and keep a router for questions that are typed.

    Args:
        run_name: Name or folder of the map.
        settings: How.
        progress: Wraps trainings.

    Raises:
        ConfigError: The run is no map, has no such embeddings, or too few questions or models.
        CacheMissing: It holds no embeddings, cards or answers.
    """
    settings = settings or RoutingSettings()
    found = open_routing_map(run_name, settings.variant)
    writer = RunWriter.resume(found.run.path)
    identity = {
        "inputs": found.marks,
        "settings": dataclasses.asdict(settings),
        "version": _VERSION,
    }
    if writer.begin_stage(STAGE, identity):
        return found.run
    started = time.perf_counter()
    data = found.data
    rates, losses = _choose_rates(data, settings)
    routed, n_neighbours = _route(data, rates, settings, progress)
    added = {
        kind: _add(found, kind, rates, routed, settings, progress)
        for kind in (NEW_MODELS, NEW_LINEAGES)
    }
    writer.write_table(MODEL_ROUTES.name, route_frame(found, routed.predicted))
    frame = result_frame(found, routed.predicted, added)
    writer.write_table(MODEL_ROUTING_RESULTS.name, frame)
    epochs = max(1, round(float(np.median(routed.epochs))))
    kept = dataclasses.replace(settings.heads(rates[ABLE], 0), epochs=epochs)
    keep_router(writer, data, kept, progress)
    facts = {
        "seconds": time.perf_counter() - started,
        "variant": settings.variant,
        "rates": rates,
        "validation_losses": losses,
        "n_neighbours": n_neighbours,
        "seeds": settings.seeds,
        "head": dataclasses.asdict(kept),
        "n_models": len(found.names),
        "n_questions": len(data.keys),
    }
    writer.finish_stage(STAGE, facts)
    return open_run(found.run.path)


def _choose_rates(
    data: RoutingData, settings: RoutingSettings
) -> tuple[dict[str, float], dict[str, dict[str, float]]]:
    """Rate of each router with the least validation loss in the first fold, and all losses."""
    part = data.part(0)
    losses = {
        router: {
            f"{rate:g}": fit_router(data, part, router, settings.heads(rate, 0)).loss
            for rate in settings.rates
        }
        for router in _TRAINED
    }
    logger.info("Validation losses by router and learning rate: %s", losses)
    return {
        r: min(settings.rates, key=lambda x: own[f"{x:g}"]) for r, own in losses.items()
    }, losses


def _route(
    data: RoutingData, rates: dict[str, float], settings: RoutingSettings, progress: Progress
) -> tuple[Routed, int]:
    """Every router over every fold and seed, and the neighbours that were chosen."""
    shape = data.correct.shape
    told = {router: np.zeros((settings.seeds, *shape), np.float32) for router in _TRAINED}
    told[KNN] = np.zeros((1, *shape), np.float32)
    epochs: list[int] = []
    n_neighbours = choose_neighbours(data, data.part(0), settings.neighbours)
    for number in progress(range(data.n_folds), label="Routing by fold", total=data.n_folds):
        part = data.part(number)
        known = part.encoded[part.known], data.correct[:, part.known]
        told[KNN][0][:, part.test] = knn_predicted(*known, part.tested, n_neighbours)
        for seed in range(settings.seeds):
            for router in _TRAINED:
                head = fit_router(data, part, router, settings.heads(rates[router], seed))
                told[router][seed][:, part.test] = head.predict(part.tested)
                epochs += [head.epoch] if router == ABLE else []
    return Routed(told, tuple(epochs)), n_neighbours


def _add(
    found: RoutingMap,
    kind: str,
    rates: dict[str, float],
    routed: Routed,
    settings: RoutingSettings,
    progress: Progress,
) -> list[NewModelFold]:
    """Models that are new in turn, each part of them in a fold of questions of its own."""
    data = found.data
    groups: list[Any] = list(range(len(found.names)))
    if kind == NEW_LINEAGES:
        groups = list(connected(found.names, found.links))
    n_parts = min(settings.new_groups, len(set(groups)), data.n_folds)
    part_of = grouped_folds(groups, n_parts, data.seed)
    folds: list[NewModelFold] = []
    for number in progress(range(n_parts), label=kind.replace("_", " "), total=n_parts):
        part, new = data.part(number), part_of == number
        told = added_models(data, part, new, _heads(data, part, ~new, rates, settings))
        for router in _TRAINED:
            told[router, RETRAINED] = routed.predicted[router][0][:, part.test]
        folds.append(NewModelFold(new, part.test, told))
    return folds


def _heads(
    data: RoutingData,
    part: FoldPart,
    old: Bool[np.ndarray, " models"],
    rates: dict[str, float],
    settings: RoutingSettings,
) -> dict[str, TrainedHead]:
    seen: Int[np.ndarray, " old"] = np.flatnonzero(old)
    return {
        router: fit_router(data, part, router, settings.heads(rates[router], 0), seen)
        for router in _TRAINED
    }
