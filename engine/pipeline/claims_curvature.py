"""The curvature claims: trends over arms that differ in clustering weight alone."""

from collections.abc import Sequence
from functools import partial
from itertools import permutations
from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy.stats import rankdata

from engine.errors import CacheMissing
from engine.pipeline.claims import ClaimDefinition, Measured
from engine.pipeline.claims_prism import DEMO, PAPER
from engine.prism.curvature.terms import BANK, BANK_COMMON, COUSAGE
from engine.store import open_run, read_table


TAIL = 0.025
"""Probability of a trend as low as the criterion's bound if the weights were shuffled."""
FEWEST, MOST = 3, 8
"""Arms of a seed: fewer have no order to speak of, more have too many orders to list."""


def trend(arms: pd.DataFrame, figure: str) -> float:
    """Spearman's rank correlation of clustering weight and a figure, mean over seeds.

    Args:
        arms: One row an arm: seed, weight and the figure.
        figure: Column; where it is empty it counts as worse than any number. A figure that never
            moves has no trend: 0.

    Returns:
        In [-1, 1]; -1: the figure falls with every step of the weight, at every seed.
    """
    found = []
    for _, rows in arms.groupby("seed"):
        ranks = rankdata(rows[["weight", figure]].fillna(np.inf), axis=0)
        still = (ranks == ranks[0]).all(axis=0).any()
        found.append(0.0 if still else float(np.corrcoef(ranks.T)[0, 1]))
    return float(np.mean(found))


def null_trends(
    sizes: Sequence[int],
) -> tuple[Float[np.ndarray, " trends"], Float[np.ndarray, " trends"]]:
    """Every trend that shuffled weights can give, rising, and its exact probability.

    Args:
        sizes: Arms of each seed; the trend is the mean over seeds.
    """
    sums = {0.0: 1.0}
    for size in sizes:
        own = np.arange(size)
        squares = [float(((own - np.array(order)) ** 2).sum()) for order in permutations(own)]
        values, counts = np.unique(squares, return_counts=True)
        shares = counts / counts.sum()
        combined: dict[float, float] = {}
        for total, share in sums.items():
            for value, part in zip(1 - 6 * values / (size**3 - size), shares, strict=True):
                key = round(total + float(value), 9)
                combined[key] = combined.get(key, 0.0) + share * float(part)
        sums = combined
    ordered = sorted(sums)
    return np.array(ordered) / len(sizes), np.array([sums[key] for key in ordered])


def null_low(sizes: Sequence[int]) -> float:
    """The largest trend whose probability, or a lower one's, is at most `TAIL` by chance.

    Raises:
        CacheMissing: There are too few arms for any trend to be that unlikely.
    """
    values, shares = null_trends(sizes)
    unlikely = np.cumsum(shares) <= TAIL + 1e-12
    if not unlikely.any():
        raise CacheMissing(f"{sum(sizes)} arms are too few for a trend to be told from chance.")
    return float(values[unlikely][-1])


def measure_trend(evidence: Path, *, figure: str) -> Measured:
    """Trend of a figure of the bank's Hessian at common weights over clustering weight.

    The control holds the same of the Hessian at each arm's own weights and of co-usage alone, the
    figure at both ends, and what was paid: states' spread and loss over those of the dense run.
    """
    run = open_run(evidence.parent)
    facts = read_table(run, "curvature_arms", where={"role": "arm"})
    facts["weight"] = facts[["prototype_to_token_weight", "token_to_prototype_weight"]].mean(axis=1)
    sizes = facts.groupby("seed")["weight"].nunique()
    if facts.empty or sizes.min() < FEWEST or sizes.max() > MOST:
        raise CacheMissing(f"{evidence} holds no series of {FEWEST} to {MOST} arms a seed.")
    figures = read_table(run, evidence.stem, columns=["arm", "term", figure])
    by_term = {
        term: facts.merge(rows, on="arm", validate="one_to_one")
        for term, rows in figures.groupby("term")
    }
    common = by_term[BANK_COMMON]
    value, low = trend(common, figure), null_low(sizes.tolist())
    control = {
        "null_low": low,
        "own_weights": trend(by_term[BANK], figure),
        "cousage_alone": trend(by_term[COUSAGE], figure),
        **_ends(common, figure),
    }
    first = facts.iloc[0]
    setting = (
        f"{len(facts)} arms, clustering weights "
        f"{', '.join(f'{w:g}' for w in sorted(facts['weight'].unique()))}, "
        f"{len(sizes)} seeds; d {first['d_model']}, K {first['n_prototypes']}, "
        f"k {first['n_active_most']}; {first['tokens']:,} training tokens; Hessian at weights "
        f"1, 1, 1 reduced to K x K; null_low: reached by chance with probability {TAIL:g} at most"
    )
    return Measured(value=value, control=control, setting=setting)


def _ends(arms: pd.DataFrame, figure: str) -> dict[str, float]:
    """The figure and its price at the weakest and the strongest clustering, means over seeds."""
    found = {}
    for name, weight in (("weakest", arms["weight"].min()), ("strongest", arms["weight"].max())):
        rows = arms[arms["weight"] == weight]
        found[name] = float(rows[figure].mean())
        spread = rows["participation_ratio"] / rows["dense_participation_ratio"]
        loss = rows["validation_loss"] / rows["dense_loss"]
        if spread.notna().all() and loss.notna().all():
            found[f"{name}_spread_to_dense"] = float(spread.mean())
            found[f"{name}_loss_to_dense"] = float(loss.mean())
    return found


_claim = partial(
    ClaimDefinition,
    paper=PAPER,
    paper_value=None,
    unit="rank correlation with clustering weight, mean over seeds",
    criterion="value <= control.null_low",
    evidence=f"{DEMO}/curvature.parquet",
    command="headwater curvature --run demo --arms 'curvature-?-arm-*'",
)

DEFINITIONS: list[ClaimDefinition] = [
    _claim(
        id="prism.curvature-coupling",
        claim="Stronger clustering lowers the coupling between prototypes: over arms that differ "
        "in clustering weight alone, the off-diagonal share of the bank's Hessian, taken at the "
        "same loss weights for all, falls as the weight rises.",
        measure=partial(measure_trend, figure="coupling"),
    ),
    _claim(
        id="prism.curvature-conditioning",
        claim="Stronger clustering improves conditioning: over the same arms the damped condition "
        "number of that Hessian falls as the weight rises.",
        measure=partial(measure_trend, figure="condition_number"),
    ),
]
"""The claims on curvature, in the order of the ledger."""
