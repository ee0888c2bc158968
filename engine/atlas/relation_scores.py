"""How well a score or a learned classifier tells related pairs from unrelated ones."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.stats import rankdata
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from engine.atlas.pairs import Pairs, balanced


PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1)
"""Inverse strengths of the L2 penalty, one of which is chosen on units kept from training."""
_INNER_SHARE = 1 / 3
_RESAMPLES, _BLOCK = 1000, 50


@dataclass(frozen=True)
class Classifier:
    """Scores of all pairs, and the threshold from which on one counts as related."""

    scores: Float[np.ndarray, " pairs"]
    threshold: float


def fit_threshold(
    scores: Float[np.ndarray, " pairs"], related: Bool[np.ndarray, " pairs"]
) -> float:
    """The threshold of best accuracy, midway between two scores; of equal ones the middle one.

    Scores from it on count as related.
    """
    order = np.argsort(scores)
    ranked, right = scores[order], related[order]
    ends = np.flatnonzero(np.diff(ranked) > 0)
    below = np.cumsum(~right)[ends] if len(ends) else np.zeros(0)
    above = right.sum() - np.cumsum(right)[ends] if len(ends) else np.zeros(0)
    between = (ranked[ends] + ranked[ends + 1]) / 2
    hits = np.concatenate([[right.sum()], below + above, [(~right).sum()]])
    cuts = np.concatenate([[ranked[0] - 1], between, [ranked[-1] + 1]])
    best = np.flatnonzero(hits == hits.max())
    return float(cuts[best[len(best) // 2]])


def fit_logistic(
    features: Float[np.ndarray, "pairs features"],
    pairs: Pairs,
    units: Int[np.ndarray, " train"],
    generator: np.random.Generator,
) -> Float[np.ndarray, " pairs"]:
    """Decision values of all pairs by a logistic regression that saw pairs of some units alone.

    The penalty is the one of best AUC on a third of the units, with the rest to learn from.

    Args:
        features: Features of every pair.
        pairs: The pairs.
        units: Units to learn from.
        generator: Draws units and unrelated pairs.
    """
    order = generator.permutation(units)
    cut = max(1, round(len(order) * _INNER_SHARE))
    inner, outer = (
        balanced(pairs, pairs.inside(part), generator) for part in (order[cut:], order[:cut])
    )
    penalty = PENALTIES[1]
    if _has_both(pairs, inner) and _has_both(pairs, outer):
        areas = [
            auc(_decide(features, pairs, inner, each, outer), pairs.related[outer])
            for each in PENALTIES
        ]
        penalty = PENALTIES[int(np.argmax(areas))]
    drawn = balanced(pairs, pairs.inside(units), generator)
    return _decide(features, pairs, drawn, penalty, np.arange(len(features)))


def _has_both(pairs: Pairs, drawn: Int[np.ndarray, " drawn"]) -> bool:
    return len(set(pairs.related[drawn].tolist())) == 2


def _decide(
    features: Float[np.ndarray, "pairs features"],
    pairs: Pairs,
    learned: Int[np.ndarray, " learned"],
    penalty: float,
    asked: Int[np.ndarray, " asked"],
) -> Float[np.ndarray, " asked"]:
    model = make_pipeline(StandardScaler(), LogisticRegression(C=penalty, max_iter=2000))
    model.fit(features[learned], pairs.related[learned])
    return np.asarray(model.decision_function(features[asked]), dtype=np.float64)


def auc(scores: Float[np.ndarray, " pairs"], related: Bool[np.ndarray, " pairs"]) -> float:
    """Chance that a related pair scores higher than an unrelated one; NaN where one is missing."""
    if related.all() or not related.any():
        return float("nan")
    return _area(rankdata(scores), related)


def classified(
    found: Classifier, pairs: Pairs, places: Int[np.ndarray, " drawn"]
) -> dict[str, float]:
    """Accuracy, precision, recall, F1 and AUC on some pairs; precision is 0 where none is found."""
    related, scores = pairs.related[places], found.scores[places]
    predicted = scores >= found.threshold
    found_right = int((predicted & related).sum())
    precision = found_right / max(1, int(predicted.sum()))
    recall = found_right / max(1, int(related.sum()))
    f1 = 2 * precision * recall / (precision + recall) if found_right else 0.0
    return {
        "accuracy": float((predicted == related).mean()),
        "precision": precision,
        "recall": recall,
        "f1": f1,
        "auc": auc(scores, related),
    }


def resampled_auc(
    scores: Float[np.ndarray, " pairs"],
    related: Bool[np.ndarray, " pairs"],
    units: Int[np.ndarray, "pairs 2"],
    seed: int = 0,
) -> tuple[float, float] | None:
    """95 % interval of the AUC over draws of units with replacement.

    A pair counts as often as its unit was drawn, one of two units as often as the product.

    Returns:
        Its ends; None where hardly a draw holds pairs of both kinds.
    """
    generator = np.random.default_rng([seed, 4])
    _, own = np.unique(units, return_inverse=True)
    own = own.reshape(units.shape)
    n_units = int(own.max()) + 1
    drawn = generator.multinomial(n_units, np.full(n_units, 1 / n_units), size=_RESAMPLES)
    order = np.argsort(scores, kind="stable")
    first, second = own[order].T
    starts = np.flatnonzero(np.r_[True, np.diff(scores[order]) > 0])
    found: list[np.ndarray] = []
    for counts in np.array_split(drawn.astype(np.float64), _RESAMPLES // _BLOCK):
        both = np.where(first == second, 1.0, counts[:, second])
        weight = counts[:, first] * both
        up = np.add.reduceat(weight * related[order], starts, axis=1)
        down = np.add.reduceat(weight * ~related[order], starts, axis=1)
        lower = np.cumsum(down, axis=1) - down / 2
        total = up.sum(1) * down.sum(1)
        found.append((up * lower).sum(1)[total > 0] / total[total > 0])
    areas = np.concatenate(found)
    if len(areas) < _RESAMPLES // 2:
        return None
    low, high = np.quantile(areas, [0.025, 0.975])
    return float(low), float(high)


def permutation_p(
    scores: Float[np.ndarray, " pairs"],
    pairs: Pairs,
    roots: Int[np.ndarray, " models"],
    within: Int[np.ndarray, " models"],
    n: int = 999,
    seed: int = 0,
) -> float:
    """Chance of an AUC as high when models are given each other's roots.

    Args:
        scores: Score of each pair.
        pairs: The pairs.
        roots: Root of each model.
        within: Class of each model; roots are shuffled within classes.
        n: Shuffles.
        seed: Seed of the shuffles.

    Returns:
        (1 + shuffles with an AUC at least as high) / (1 + n).
    """
    generator = np.random.default_rng([seed, 5])
    ranks = rankdata(scores)
    real = _area(ranks, roots[pairs.a] == roots[pairs.b])
    classes = [np.flatnonzero(within == each) for each in np.unique(within)]
    shuffled = np.tile(roots, (n, 1))
    for members in classes:
        order = generator.permuted(np.tile(members, (n, 1)), axis=1)
        shuffled[:, members] = roots[order]
    higher = 0
    for start in range(0, n, _BLOCK):
        drawn = shuffled[start : start + _BLOCK]
        related = drawn[:, pairs.a] == drawn[:, pairs.b]
        count = related.sum(1)
        above = related @ ranks - count * (count + 1) / 2
        areas = above / np.maximum(1, count * (len(ranks) - count))
        higher += int((areas >= real - 1e-12).sum())
    return (1 + higher) / (1 + n)


def _area(ranks: Float[np.ndarray, " pairs"], related: Bool[np.ndarray, " pairs"]) -> float:
    """AUC by the sum of ranks (Mann and Whitney); ranks of equal scores are their mean."""
    count = int(related.sum())
    rest = len(related) - count
    return float((ranks[related].sum() - count * (count + 1) / 2) / max(1, count * rest))
