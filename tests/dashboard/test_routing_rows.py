"""Choices, calibration and usage of routers, by hand and against slow loops."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest

from dashboard import routing_rows


def routes() -> pd.DataFrame:
    rows = [
        ("able", 0, "b", 0.7, True), ("able", 0, "a", 0.7, False), ("able", 0, "c", 0.1, True),
        ("able", 1, "a", 0.2, False), ("able", 1, "b", 0.1, True), ("able", 1, "c", 0.3, True),
        ("able", 2, "a", 0.9, True), ("able", 2, "b", 0.5, True), ("able", 2, "c", 0.3, True),
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=["router", "question", "model", "predicted", "correct"])


def test_the_likeliest_model_is_chosen_and_ties_go_to_the_first_name():
    """One row a question."""
    found = routing_rows.choices(routes())
    assert found["model"].tolist() == ["a", "c", "a"]
    assert found["correct"].tolist() == [False, True, True]


def test_usage_counts_calls_and_right_answers():
    """Most called first."""
    found = routing_rows.usage(routing_rows.choices(routes()))
    assert found[["model", "n", "right"]].values.tolist() == [["a", 2, 1], ["c", 1, 1]]


def test_usage_weighted_random_is_a_mean_over_calls():
    """Two calls of a model that is right, one of one that is not."""
    right = pd.Series([True, False, True], index=["a", "b", "c"])
    assert routing_rows.usage_random(right, pd.Series({"a": 2, "b": 1})) == pytest.approx(2 / 3)
    assert np.isnan(routing_rows.usage_random(right, pd.Series({"d": 1})))


@pytest.mark.parametrize(("right", "n"), [(0, 7), (7, 7), (3, 11), (41, 97)])
def test_intervals_of_shares_are_wilsons(right: int, n: int):
    """As scipy computes them one by one."""
    low, high = routing_rows.wilson(np.array([right]), np.array([n]))
    wanted = binomtest(right, n).proportion_ci(method="wilson")
    assert low[0] == pytest.approx(wanted.low, abs=1e-9)
    assert high[0] == pytest.approx(wanted.high, abs=1e-9)


def test_nothing_seen_leaves_everything_open():
    """An empty bin says nothing."""
    low, high = routing_rows.wilson(np.array([0]), np.array([0]))
    assert (low[0], high[0]) == (0, 1)


def test_calibration_says_how_often_predictions_came_true():
    """Bins of equal numbers; a prediction is held against its own bin."""
    generator = np.random.default_rng(3)
    predicted = generator.random(2003)
    correct = generator.random(2003) < predicted**2
    curve = routing_rows.calibration(predicted, correct)
    assert curve["n"].sum() == 2003
    assert len(curve) == routing_rows.BINS
    for at, row in enumerate(curve.to_dict("records")):
        end = curve["start"].iloc[at + 1] if at + 1 < len(curve) else np.inf
        own = correct[(predicted >= row["start"]) & (predicted < end)]
        assert row["share"] == pytest.approx(own.mean())
    held = routing_rows.came_true(curve, [0.0, 0.999])
    assert held["share"].tolist() == [curve["share"].iloc[0], curve["share"].iloc[-1]]


def test_predictions_that_are_all_alike_make_one_bin():
    """A router that says the same of everything."""
    curve = routing_rows.calibration(np.full(13, 0.4), np.arange(13) < 5)
    assert curve["n"].tolist() == [13]
    nothing = routing_rows.calibration(np.zeros(0), np.zeros(0))
    assert routing_rows.came_true(nothing, [0.5]).isna().to_numpy().all()


def test_groups_are_taken_apart_by_their_prefix():
    """domain:NAME, budget:PARAMETERS."""
    rows = pd.DataFrame(
        {
            "router": "able",
            "group": ["all", "domain:jobs", "budget:100"],
            "metric": ["accuracy", "accuracy", "auc"],
            "value": [0.1, 0.2, 0.3],
        }
    )
    assert routing_rows.by_prefix(rows, "domain")["name"].tolist() == ["jobs"]
    assert routing_rows.by_prefix(rows, "budget").empty
    assert routing_rows.of_group(rows, "all")["value"].tolist() == [0.1]
