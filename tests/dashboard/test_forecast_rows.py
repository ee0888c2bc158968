"""Forecasts with groups and residuals, candidates in predicted order; by hand."""

import pandas as pd
import pytest

from dashboard import forecast_rows


CARDS = pd.DataFrame(
    {"model": ["a", "b", "c"], "family": ["f", "f", ""], "roots": [["a"], ["a", "z"], []]}
)


def forecasts() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "model": ["a", "b", "c", "d"],
            "true": [0.5, 0.2, 0.9, 0.1],
            "predicted": [0.6, 0.2, 0.4, 0],
        }
    )


def test_models_are_grouped_by_family_or_root():
    """What is not documented says so; a merge has both its roots."""
    by_family = forecast_rows.with_groups(forecasts(), CARDS, "family")
    unknown = forecast_rows.UNKNOWN
    assert by_family["group"].tolist() == ["f", "f", unknown, unknown]
    assert by_family["residual"].tolist() == pytest.approx([0.1, 0, -0.5, -0.1])
    by_root = forecast_rows.with_groups(forecasts(), CARDS, "root")
    assert by_root["group"].tolist() == ["a", "a + z", unknown, unknown]


def test_groups_stand_by_size_with_unknown_last():
    """However many are unknown."""
    groups = pd.Series(["b", "a", forecast_rows.UNKNOWN, forecast_rows.UNKNOWN, "b", "c"])
    assert forecast_rows.largest_first(groups) == ["b", "a", "c", forecast_rows.UNKNOWN]


def results() -> pd.DataFrame:
    rows = [
        ("t", "one_model_out", "able", "spearman", 0.9, 0.8, 0.95),
        ("t", "one_root_out", "able", "spearman", 0.4, 0.1, 0.6),
        ("t", "one_root_out", "mean", "spearman", None, None, None),
        ("t", "one_root_out", "log_parameters", "spearman", 0.2, None, None),
        ("u", "one_root_out", "able", "mae", 0.1, 0.0, 0.2),
    ]
    columns = ["target", "regime", "method", "metric", "value", "low", "high"]
    return pd.DataFrame(rows, columns=columns)


def test_one_figure_is_found_or_none():
    """A figure without a value is none."""
    found = forecast_rows.figure_of(results(), "t", "one_root_out", "able", "spearman")
    assert found is not None
    assert found["value"] == 0.4
    for regime, method in (("one_root_out", "mean"), ("one_family_out", "able")):
        assert forecast_rows.figure_of(results(), "t", regime, method, "spearman") is None


def test_a_method_without_spearman_that_was_judged_says_the_same_of_every_model():
    """One that was not judged says nothing."""
    found = {
        (regime, method): forecast_rows.says_the_same(results(), "t", regime, method)
        for regime, method in (
            ("one_root_out", "mean"),
            ("one_root_out", "able"),
            ("one_family_out", "able"),
        )
    }
    assert list(found.values()) == [True, False, False]


def test_methods_are_compared_panel_by_panel():
    """Without an interval the ends are the value; without a value there is no row."""
    regimes = ("one_model_out", "one_root_out")
    found = forecast_rows.method_rows(
        results(), {"target": "t", "metric": "spearman"}, regimes, "regime"
    )
    assert found["method"].tolist() == ["able", "able", "log_parameters"]
    assert found["panel"].tolist() == ["one_model_out", "one_root_out", "one_root_out"]
    assert found.iloc[2][["low", "high"]].tolist() == [0.2, 0.2]


def test_candidates_stand_in_predicted_order_with_their_true_place():
    """Equal outcomes share the better place."""
    rows = pd.DataFrame(
        {"model": ["x", "y", "z"], "predicted": [0.1, 0.9, 0.5], "true": [0.7, 0.3, 0.7]}
    )
    found = forecast_rows.ranked(rows)
    assert found["model"].tolist() == ["y", "z", "x"]
    assert found["place"].tolist() == [1, 2, 3]
    assert found["true_place"].tolist() == [3, 1, 1]
