"""Scores of models told from others: which methods there are, and how well they tell.

Protocol: ABLE (arXiv 2606.07524) leaves one model out at a time; PhyloLM (arXiv 2404.04671) a whole
family. Where siblings of a model stay in, most of what looks like forecasting is their score.

Correlations and ranks are taken of predictions less the mean score of the models fitted on. That
mean falls as the score left out rises, so where features tell little it alone would order models
backwards: with one model left out at a time, a method that tells the mean has a correlation of -1.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.stats import rankdata

from engine.atlas.resampling import Estimate, group_draws
from engine.atlas.ridge import Targets, ridge_left_out
from engine.atlas.similarity import cosines


RELATIVES, NEIGHBOURS, MEAN = "relatives", "neighbours", "mean"
N_NEIGHBOURS = 5
"""Nearest embeddings whose scores are averaged."""
RESAMPLES = 300
_TOP = 5
_ONE = 1e-12
"""Predictions that differ by less are one; what rounding leaves of a difference of means."""
_LEVELS = (0.025, 0.975)


@dataclass(frozen=True)
class Told:
    """What a method says of every model."""

    predicted: Float[np.ndarray, "models targets"]
    """The score."""
    beyond: Float[np.ndarray, "models targets"]
    """The same less the mean of the models fitted on: what models are ranked by."""


def tell_all(
    features: Mapping[str, Float[np.ndarray, "models _"]],
    targets: Targets,
    groups: Int[np.ndarray, " models"],
    embeddings: Float[np.ndarray, "models dimensions"],
    edges: Float[np.ndarray, "models models"] | None = None,
) -> dict[str, Told]:
    """Every method but those whose features differ by target.

    Args:
        features: Features of ridge regressions by method.
        targets: Scores.
        groups: Models of one group are left out together.
        embeddings: By which neighbours are found.
        edges: Documented edges between models, infinite where none connect them; without them no
            relatives are asked.
    """
    found = {name: ridge_left_out(own, targets, groups) for name, own in features.items()}
    if edges is not None:
        found[RELATIVES] = relatives_mean(edges, targets, groups)
    found[NEIGHBOURS] = neighbours_mean(cosines(embeddings), targets, groups)
    found[MEAN] = training_means(targets, groups)
    return {name: told_of(values, targets, groups) for name, values in found.items()}


def told_of(predicted: Targets, targets: Targets, groups: Int[np.ndarray, " models"]) -> Told:
    """Predictions with what they say beyond the mean of the models fitted on."""
    return Told(predicted, predicted - training_means(targets, groups))


def relatives_mean(
    edges: Float[np.ndarray, "models models"], targets: Targets, groups: Int[np.ndarray, " models"]
) -> Targets:
    """Mean score of the documented relatives fewest edges away; of none, of all models."""
    told = training_means(targets, groups)
    for model, group in enumerate(groups):
        away = np.where(groups == group, np.inf, edges[model])
        if np.isfinite(away.min()):
            told[model] = targets[away == away.min()].mean(0)
    return told


def neighbours_mean(
    similarity: Float[np.ndarray, "models models"],
    targets: Targets,
    groups: Int[np.ndarray, " models"],
    n: int = N_NEIGHBOURS,
) -> Targets:
    """Mean score of the nearest embeddings that are not left out."""
    told = np.zeros_like(targets)
    for model, group in enumerate(groups):
        near = np.where(groups == group, -np.inf, similarity[model])
        nearest = np.argsort(-near, kind="stable")[: min(n, int(np.isfinite(near).sum()))]
        told[model] = targets[nearest].mean(0)
    return told


def training_means(targets: Targets, groups: Int[np.ndarray, " models"]) -> Targets:
    """Mean score of the models of all other groups."""
    told = np.zeros_like(targets)
    for group in np.unique(groups):
        told[groups == group] = targets[groups != group].mean(0)
    return told


def forecast_figures(
    told: Told, targets: Targets, units: Int[np.ndarray, " models"]
) -> dict[str, list[Estimate]]:
    """How well scores were told, by metric: one estimate a target, then the mean over targets.

    Intervals draw whole units again, such as all that goes back to one root.

    Args:
        told: What a method says.
        targets: The scores.
        units: Unit of each model.
    """
    draws = group_draws(units, RESAMPLES)
    n_models, n_targets = targets.shape
    found: dict[str, list[Estimate]] = {}
    for name, metric in _METRICS.items():
        predicted = told.predicted if name == "mae" else told.beyond
        values = metric(predicted, targets)
        drawn = np.array([metric(predicted[d], targets[d]) for d in draws])
        columns = [_estimate(values[t], drawn[:, t], n_models) for t in range(n_targets)]
        found[name] = [*columns, _estimate(*_means(values, drawn), n_targets)]
    ranks = best_ranks(told.beyond, targets)
    for name, values in (("best_rank", ranks), ("best_in_top5", _top(ranks))):
        columns = [Estimate(float(value), None, None, n_models) for value in values]
        mean, _ = _means(values, values[None])
        found[name] = [*columns, Estimate(mean, None, None, n_targets)]
    return found


def _top(ranks: Float[np.ndarray, " targets"]) -> Float[np.ndarray, " targets"]:
    return np.where(np.isnan(ranks), np.nan, ranks <= _TOP)


def _means(
    values: Float[np.ndarray, " targets"], drawn: Float[np.ndarray, "resamples targets"]
) -> tuple[float, Float[np.ndarray, " resamples"]]:
    """Means over the targets for which the figure is defined."""
    defined = np.isfinite(values)
    if not defined.any():
        return float("nan"), drawn[:, 0]
    return float(values[defined].mean()), drawn[:, defined].mean(1)


def _estimate(value: float, drawn: Float[np.ndarray, " resamples"], n: int) -> Estimate:
    """A figure with its interval; NaN where it is not defined, as of constant predictions."""
    known = drawn[np.isfinite(drawn)]
    if not np.isfinite(value) or len(known) == 0:
        return Estimate(float(value), None, None, n)
    low, high = np.quantile(known, _LEVELS)
    return Estimate(float(value), float(low), float(high), n)


def pearsons(predicted: Targets, targets: Targets) -> Float[np.ndarray, " targets"]:
    """Pearson correlation of each target; NaN of a constant column."""
    a, b = predicted - predicted.mean(0), targets - targets.mean(0)
    lengths = np.linalg.norm(a, axis=0) * np.linalg.norm(b, axis=0)
    products = (a * b).sum(0)
    return np.divide(products, lengths, out=np.full(len(lengths), np.nan), where=lengths > _ONE)


def spearmans(predicted: Targets, targets: Targets) -> Float[np.ndarray, " targets"]:
    """Spearman correlation of each target; NaN of a constant column."""
    return pearsons(rankdata(predicted, axis=0), rankdata(targets, axis=0))


def mean_absolute_errors(predicted: Targets, targets: Targets) -> Float[np.ndarray, " targets"]:
    """Mean absolute error of each target."""
    return np.abs(predicted - targets).mean(0)


def best_ranks(predicted: Targets, targets: Targets) -> Float[np.ndarray, " targets"]:
    """Rank among predictions, 1 first, of the model that is truly best; of several the first.

    NaN where all predictions are one.
    """
    best: Bool[np.ndarray, "models targets"] = targets == targets.max(0)
    ranks = rankdata(-predicted, axis=0, method="ordinal")
    found = np.where(best, ranks, np.inf).min(0)
    return np.where(np.ptp(predicted, axis=0) > _ONE, found, np.nan)


_METRICS = {"spearman": spearmans, "pearson": pearsons, "mae": mean_absolute_errors}
