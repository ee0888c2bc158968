"""Models that a router never saw: placed by their embedding, or by a few of their answers."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from engine.atlas.factorisation import TrainedHead
from engine.atlas.resampling import grouped_mean
from engine.atlas.routers import ABLE, EMBEDLLM, FoldPart, RoutingData, fit_vector
from engine.atlas.routing import Estimate, Figure, auc_of, chosen, right_of


K_ANSWERS = (0, 20, 100)
"""Answers of a new model that EmbedLLM is given."""
RETRAINED = "retrained"
Key = tuple[str, str]
"""Router, and how it came to know the new models."""


@dataclass(frozen=True)
class NewModelFold:
    """Tested questions of one fold, with predictions of all models, some of them new."""

    new: Bool[np.ndarray, " models"]
    """Which models are new."""
    test: Int[np.ndarray, " tested"]
    """Places of the questions."""
    predicted: dict[Key, Float[np.ndarray, "models tested"]]
    """What each way of adding models expects."""


def added_models(
    data: RoutingData,
    part: FoldPart,
    new: Bool[np.ndarray, " models"],
    heads: dict[str, TrainedHead],
    seed: int = 0,
) -> dict[Key, Float[np.ndarray, "models tested"]]:
    """Predictions for all models by heads that were trained without the new ones.

    Args:
        data: Who answers what.
        part: The fold; answers of new models are drawn from its training questions.
        new: Which models are new.
        heads: Head of each router.
        seed: Seed of which questions are answered.
    """
    found = {(ABLE, "k=0"): heads[ABLE].predict(part.tested, heads[ABLE].place(data.embeddings))}
    head, order = heads[EMBEDLLM], np.random.default_rng(seed).permutation(part.train)
    for k in K_ANSWERS:
        answered = order[:k]
        features = head.features(part.encoded[answered])
        vectors = np.zeros((len(new), head.vectors.shape[1]), dtype=np.float32)
        vectors[~new] = head.vectors
        for model in np.flatnonzero(new):
            own = data.correct[model, answered]
            vectors[model] = fit_vector(features, head.bias, own, head.vectors)
        found[EMBEDLLM, f"k={k}"] = head.predict(part.tested, vectors)
    return found


def new_model_figures(data: RoutingData, folds: list[NewModelFold], group: str) -> Iterator[Figure]:
    """Figures over the tested questions of all folds.

    Args:
        data: Who answers what.
        folds: One a group of new models.
        group: Beginning of the groups' names.
    """
    facts = np.concatenate([data.facts[fold.test] for fold in folds])
    pairs = sum(int(fold.new.sum()) * len(fold.test) for fold in folds)
    for router, how in folds[0].predicted:
        parts = [_rights(data, fold, (router, how)) for fold in folds]
        name = f"{group}:{how}"
        for metric in ("correctness", "accuracy", "choice_among_new"):
            estimate = grouped_mean(np.concatenate([part[metric] for part in parts]), facts)
            n = pairs if metric == "correctness" else estimate.n
            yield router, name, metric, estimate._replace(n=n)
        areas = [_area(data, fold, (router, how)) for fold in folds]
        known = [area for area in areas if area is not None]
        if known:
            yield router, name, "auc", Estimate(float(np.mean(known)), None, None, pairs)


def _rights(
    data: RoutingData, fold: NewModelFold, key: Key
) -> dict[str, Float[np.ndarray, " tested"]]:
    """Of each tested question: pairs told right, and whether the model chosen answers right."""
    told, correct = fold.predicted[key], data.correct[:, fold.test]
    everyone = np.ones(len(fold.new), dtype=bool)
    return {
        "correctness": ((told > 0.5) == correct)[fold.new].mean(0),
        "accuracy": right_of(chosen(told, everyone), correct),
        "choice_among_new": right_of(chosen(told, fold.new), correct),
    }


def _area(data: RoutingData, fold: NewModelFold, key: Key) -> float | None:
    return auc_of(fold.predicted[key][fold.new], data.correct[np.ix_(fold.new, fold.test)])
