"""Which model to adapt: rankings held against the outcome of having adapted every one.

NDCG@10 takes outcomes as gains, as they are; where outcomes are of like size it is high for any
order, so its mean over all orders stands beside it, in closed form.
"""

from math import comb

import numpy as np
from jaxtyping import Float
from sklearn.metrics import ndcg_score

from engine.atlas.forecasts import spearmans


TOP = 10
"""Places of a ranking that NDCG counts."""
SHORTLISTS = (1, 5)
"""Candidates adapted, of which the best is kept."""
_ORDERS = 10_000

Values = Float[np.ndarray, " models"]


def ndcg(outcomes: Values, predicted: Values) -> float:
    """Discounted gain of the first ten by prediction, over that of the best order.

    Gains are the outcomes, none below 0; NaN where every gain is 0 or there is one model.
    """
    gains = np.maximum(outcomes, 0)
    if len(gains) < 2 or not gains.any():
        return float("nan")
    return float(ndcg_score(gains[None], predicted[None], k=TOP))


def random_ndcg(outcomes: Values) -> float:
    """Mean of `ndcg` over all orders."""
    gains = np.maximum(outcomes, 0)
    if len(gains) < 2 or not gains.any():
        return float("nan")
    discounts = _discounts(len(gains))
    return float(gains.mean() * discounts.sum() / (np.sort(gains)[::-1] @ discounts))


def random_p(outcomes: Values, predicted: Values, seed: int = 0) -> float:
    """Share of random orders whose `ndcg` is as high, this order counted among them."""
    found = ndcg(outcomes, predicted)
    if np.isnan(found):
        return found
    gains = np.maximum(outcomes, 0)
    discounts = _discounts(len(gains))
    best = np.sort(gains)[::-1] @ discounts
    generator = np.random.default_rng(seed)
    drawn = generator.permuted(np.tile(gains, (_ORDERS, 1)), axis=1) @ discounts / best
    return float((1 + (drawn >= found - 1e-12).sum()) / (1 + _ORDERS))


def regret(outcomes: Values, predicted: Values, k: int) -> float:
    """Best outcome less the best among the first k by prediction; of ties the first come first."""
    return float(outcomes.max() - outcomes[_order(predicted)[:k]].max())


def random_regret(outcomes: Values, k: int) -> float:
    """Mean of `regret` over all orders: the i-th best is the best of k with known probability."""
    falling, n = np.sort(outcomes)[::-1], len(outcomes)
    k = min(k, n)
    chances = [comb(n - i - 1, k - 1) / comb(n, k) for i in range(n)]
    return float(falling[0] - falling @ np.array(chances))


def trainings_saved(outcomes: Values, predicted: Values) -> float:
    """Share of trainings not needed when one goes down the ranking until the best is met."""
    reached = outcomes[_order(predicted)] == outcomes.max()
    return float(1 - (reached.argmax() + 1) / len(outcomes))


def random_saved(outcomes: Values) -> float:
    """Mean of `trainings_saved` over all orders: of b best among n the first comes at n+1 / b+1."""
    n, best = len(outcomes), int((outcomes == outcomes.max()).sum())
    return 1 - (n + 1) / (best + 1) / n


def selection_figures(outcomes: Values, predicted: Values) -> dict[str, float]:
    """Every figure of a ranking, by metric."""
    return {
        f"ndcg@{TOP}": ndcg(outcomes, predicted),
        **{f"regret@{k}": regret(outcomes, predicted, k) for k in SHORTLISTS},
        "spearman": float(spearmans(predicted[:, None], outcomes[:, None])[0]),
        "trainings_saved": trainings_saved(outcomes, predicted),
        "random_p": random_p(outcomes, predicted),
    }


def random_figures(outcomes: Values) -> dict[str, float]:
    """Means of the figures over all orders."""
    return {
        f"ndcg@{TOP}": random_ndcg(outcomes),
        **{f"regret@{k}": random_regret(outcomes, k) for k in SHORTLISTS},
        "trainings_saved": random_saved(outcomes),
    }


def _order(predicted: Values) -> np.ndarray:
    return np.argsort(-predicted, kind="stable")


def _discounts(n: int) -> Values:
    """1 / log2(1 + rank) for the first ten ranks, 0 after."""
    ranks = np.arange(1, n + 1)
    return np.where(ranks <= TOP, 1 / np.log2(1 + ranks), 0.0)
