"""Transfer between heads and coupling with in-context learning, both planted."""

import math

import numpy as np
import pandas as pd
import pytest

from engine.mda.coupling import coupling
from engine.mda.transfer import transfer_ratio
from tests.engine.mda.small_study import LEVELS, rising, small_study


SAME = (1, 2)


def moved(by: dict[bool, float], sign: float = 1.0):
    """The baseline, with heads of the same kind and others moved by fixed amounts."""

    def score(seed, head, steps):
        return rising()(seed, head, steps) + sign * by[LEVELS[head] >= 0.5] * (1 + seed)

    return score


def test_a_planted_ratio_is_found_whatever_the_signs():
    """Deletion lowers, augmentation raises; sizes count. Seeds scale both, the ratio stays."""
    by = {True: 0.05, False: 0.005}
    arms = {
        ("delete_top", "induction"): moved(by, -1),
        ("augment_top", "induction"): moved(by),
        ("delete_random", ""): moved({True: 0.004, False: 0.002}),
    }
    frames = small_study(arms)
    ratio = transfer_ratio(frames, "induction")
    assert ratio.mean == pytest.approx(10)
    assert ratio.low == pytest.approx(ratio.high)
    assert ratio.n == 3
    assert transfer_ratio(frames, "induction", ["delete_random"]).mean == pytest.approx(2)


def test_a_head_may_be_asked_by_its_own_metric():
    """Others match previous tokens best, where they move by 0.05 too: the ratio is then 1."""
    frames = small_study({("delete_top", "induction"): moved({True: 0.05, False: 0.005})}, [0])
    others = ~frames.scores[["layer", "head"]].apply(tuple, axis=1).isin([SAME, (1, 1), (1, 0)])
    arm = frames.scores["arm"] == "delete_top"
    frames.scores.loc[arm & others, "previous_token"] += 0.05
    own = transfer_ratio(frames, "induction", own_metric=True)
    # 1.0 stays on prefix matching, where it moves by 0.005
    assert own.mean == pytest.approx(0.05 / ((3 * 0.05 + 0.005) / 4))


def test_a_seed_without_another_head_of_the_kind_does_not_count():
    """There is nothing to divide."""
    frames = small_study({("delete_top", "induction"): moved({True: 0.05, False: 0.005})}, [0, 1])
    lone = (frames.scores["seed"] == 1) & (frames.scores["layer"] == 1)
    frames.scores.loc[lone & (frames.scores["head"] == 2), "prefix_matching"] = 0.1
    assert transfer_ratio(frames, "induction").n == 1
    assert math.isnan(transfer_ratio(frames, "previous_token").mean)


def points(scores, icl, seeds) -> pd.DataFrame:
    """Effects of one arm a point."""
    rows = []
    for place, (score, change, seed) in enumerate(zip(scores, icl, seeds, strict=True)):
        named = {"seed": seed, "arm": f"arm-{place}", "arm_unit": "", "unit": "induction"}
        rows += [
            {**named, "measure": "score", "effect": score},
            {**named, "measure": "icl", "effect": change},
        ]
    return pd.DataFrame(rows)


def test_coupling_is_a_correlation_over_arms_and_seeds():
    """Against numpy; the interval holds it, and a perfect one has no width."""
    generator = np.random.default_rng(0)
    scores = generator.normal(0, 1, 35)
    icl = -0.5 * scores + generator.normal(0, 0.3, 35)
    seeds = np.repeat(np.arange(5), 7)
    found = coupling(points(scores, icl, seeds), "induction")
    assert found.pearson == pytest.approx(np.corrcoef(scores, icl)[0, 1])
    assert found.low < found.pearson < found.high < 0
    assert (found.n_points, found.n_seeds) == (35, 5)
    exact = coupling(points(scores, -2 * scores, seeds), "induction")
    assert (exact.low, exact.high) == pytest.approx((-1, -1))


def test_coupling_needs_points():
    """Of one seed there is no interval, of two points no correlation."""
    one = coupling(points([1.0, 2.0, 4.0], [3.0, 2.0, 0.0], [0, 0, 0]), "induction")
    assert one.pearson == pytest.approx(-1)
    assert math.isnan(one.low)
    assert math.isnan(coupling(points([1.0, 2.0], [1.0, 2.0], [0, 1]), "induction").pearson)
