"""Routes, forecasts and candidates of a synthetic map: random numbers, no result."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from engine.pipeline.synthetic_models import DOMAINS, SyntheticMap
from engine.pipeline.synthetic_tables import Columns


ROUTERS = ("able", "embedllm", "knn")
METHODS = ("able", "paper", "probe_accuracy", "log_parameters", "relatives")
_FOLDS = 10
_OUTCOMES = ("after", "gain")
_REGIMES = ("one_model_out", "one_root_out", "one_family_out")
_SELECTION_REGIMES = _REGIMES[1:]
_ADDED = (
    *(("able", how) for how in ("k=0", "retrained")),
    *(("embedllm", how) for how in ("k=0", "k=20", "k=100", "retrained")),
)
"""Ways of adding a model, by router."""


def routing_tables(generator: np.random.Generator, shape: SyntheticMap) -> dict[str, Columns]:
    """Tables of routing, forecasts and selection.

    Args:
        generator: Source of every random number.
        shape: Models and questions.
    """
    frames = {
        "model_routes": _routes(generator, shape),
        "model_routing_results": pd.DataFrame(list(_routing_results(generator))),
        "model_forecasts": pd.DataFrame(list(_forecasts(generator, shape))),
        "model_forecast_results": pd.DataFrame(list(_forecast_results(generator, shape))),
        "model_adaptations": pd.DataFrame(list(_adaptations(generator, shape))),
        "model_candidates": pd.DataFrame(list(_candidates(generator, shape))),
        "model_selection_results": pd.DataFrame(list(_selection_results(generator, shape))),
    }
    return {name: {str(c): frame[c] for c in frame} for name, frame in frames.items()}


def _roots(shape: SyntheticMap) -> list[str]:
    return [model.name for model in shape.models if model.relation == "root"]


def _routes(generator: np.random.Generator, shape: SyntheticMap) -> pd.DataFrame:
    correct = generator.random((shape.n_questions, len(shape.names))) < 0.5
    rows = list(product(ROUTERS, range(shape.n_questions), shape.names))
    frame = pd.DataFrame(rows, columns=pd.Index(["router", "question", "model"]))
    right = np.tile(correct.ravel(), len(ROUTERS))
    noise = generator.normal(0.0, 1.0, len(rows))
    frame["predicted"] = 1 / (1 + np.exp(-(2.0 * right - 1.0 + noise)))
    frame["correct"] = right
    frame["fold"] = frame["question"] % _FOLDS
    return frame


def _row(generator: np.random.Generator, value: float, n: int, **key: str) -> dict[str, Any]:
    half = float(generator.uniform(0.01, 0.05))
    return {**key, "value": value, "low": value - half, "high": value + half, "n": n}


def _routing_results(generator: np.random.Generator) -> Iterator[dict[str, Any]]:
    groups = ["all", "probe", "held_out", "unseen", *(f"domain:{d}" for d in DOMAINS)]
    groups += [f"budget:{n}" for n in (1_200, 1_900, 2_900)]
    for group, router in product(groups, (*ROUTERS, "single_best", "random", "oracle")):
        value = float(generator.uniform(0.5, 0.8)) if router != "oracle" else 0.98
        yield _row(generator, value, 23, router=router, group=group, metric="accuracy")
    for router, metric in product(ROUTERS, ("correctness", "auc", "usage_random")):
        value = float(generator.uniform(0.55, 0.85))
        yield _row(generator, value, 460, router=router, group="all", metric=metric)
    for router in ROUTERS:
        yield _row(generator, 7.0, 23, router=router, group="all", metric="models_used")
    for metric in ("over_embedllm", "correctness_over_embedllm", "over_single_best"):
        yield _row(generator, 0.01, 23, router="able", group="all", metric=metric)
    for kind, (router, how) in product(("new_models", "new_lineages"), _ADDED):
        group, value = f"{kind}:{how}", float(generator.uniform(0.55, 0.75))
        for metric in ("correctness", "accuracy", "choice_among_new"):
            yield _row(generator, value, 92, router=router, group=group, metric=metric)


def _forecasts(generator: np.random.Generator, shape: SyntheticMap) -> Iterator[dict[str, Any]]:
    for target in DOMAINS:
        scores = generator.uniform(0.2, 1.0, len(shape.names))
        for regime, method in product(_REGIMES, METHODS):
            told = np.clip(scores + generator.normal(0.0, 0.1, len(scores)), 0, 1)
            for name, true, predicted in zip(shape.names, scores, told, strict=True):
                key = {"target": target, "regime": regime, "method": method, "model": name}
                yield {**key, "true": true, "predicted": predicted}


def _forecast_results(
    generator: np.random.Generator, shape: SyntheticMap
) -> Iterator[dict[str, Any]]:
    values = {"spearman": 0.7, "pearson": 0.75, "mae": 0.1, "best_rank": 3.0, "best_in_top5": 1.0}
    n = len(shape.names)
    for target, regime, method in product((*DOMAINS, "mean"), _REGIMES, METHODS):
        for metric, value in values.items():
            key = {"target": target, "regime": regime, "method": method, "metric": metric}
            yield _row(generator, value, n, **key)


def _adaptations(generator: np.random.Generator, shape: SyntheticMap) -> Iterator[dict[str, Any]]:
    for name, target in product(_roots(shape), DOMAINS):
        before = float(generator.uniform(0.2, 0.5))
        after = float(generator.uniform(before, 1.0))
        yield {"model": name, "target": target, "seed": 0, "before": before, "after": after}


def _candidates(generator: np.random.Generator, shape: SyntheticMap) -> Iterator[dict[str, Any]]:
    for target, outcome, regime in product(DOMAINS, _OUTCOMES, _SELECTION_REGIMES):
        for method, name in product(("able", "before"), _roots(shape)):
            true = float(generator.uniform(0.2, 1.0))
            key = {"target": target, "outcome": outcome, "regime": regime, "method": method}
            told = true + float(generator.normal(0, 0.1))
            yield {**key, "model": name, "true": true, "predicted": told}


def _selection_results(
    generator: np.random.Generator, shape: SyntheticMap
) -> Iterator[dict[str, Any]]:
    values = {"ndcg@10": 0.9, "regret@1": 0.1, "regret@5": 0.02, "trainings_saved": 0.6}
    n = len(_roots(shape))
    for target, outcome, regime in product((*DOMAINS, "mean"), _OUTCOMES, _SELECTION_REGIMES):
        for method, metric in product(("able", "before", "random"), values):
            key = {"target": target, "outcome": outcome, "regime": regime, "method": method}
            yield _row(generator, values[metric], n, **key, metric=metric)
