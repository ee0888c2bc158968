"""Claims on uses of embeddings follow from the tables, and judge as their sentences say."""

import pytest

from engine.claims import NOT_MEASURED
from engine.pipeline.claims import compute_claims
from engine.pipeline.claims_models_routing import DEFINITIONS
from engine.pipeline.synthetic_map import write_synthetic_models
from engine.store import RunWriter, open_run, read_table


@pytest.fixture
def measured(tmp_path):
    """A synthetic map as the shipped one, and a way to change figures of it."""
    path = write_synthetic_models(tmp_path / "assets" / "zoo")

    def claims(table="", changes=()):
        if changes:
            rows = read_table(open_run(path), table)
            for key, values in changes:
                mine = rows[list(key)].eq(list(key.values())).all(axis=1)
                assert mine.sum() == 1, key
                rows.loc[mine, list(values)] = list(values.values())
            writer = RunWriter.resume(path)
            writer.begin_stage("changed", [str(changes)])
            writer.write_table(table, rows)
            writer.finish_stage("changed", {})
        return {row.id: row for row in compute_claims(DEFINITIONS, tmp_path)}

    return claims


def test_every_claim_is_measured_on_a_map(measured):
    """No name of a router, group, method or metric is misspelt."""
    rows = measured()
    assert len(rows) == len(DEFINITIONS)
    for row in rows.values():
        assert row.holds in (True, False), row.id
        assert "synthetic zoo" in row.setting


@pytest.mark.parametrize(("low", "holds"), [(0.001, True), (-0.001, False)])
def test_routing_is_judged_by_the_paired_interval(measured, low, holds):
    """Not by two accuracies that are each uncertain."""
    key = {"router": "able", "group": "all", "metric": "over_embedllm"}
    rows = measured("model_routing_results", [(key, {"low": low})])
    assert rows["able.routing"].holds is holds
    assert rows["able.routing"].control["oracle"] == pytest.approx(0.98)


@pytest.mark.parametrize(
    ("alone", "retrained", "few", "holds"),
    [(0.7, 0.71, 0.6, True), (0.7, 0.73, 0.6, False), (0.7, 0.71, 0.705, False)],
)
def test_new_models_are_held_against_retraining_and_few_answers(
    measured, alone, retrained, few, holds
):
    """Both must hold."""

    def key(router, how):
        return {"router": router, "group": f"new_models:{how}", "metric": "correctness"}

    changes = [
        (key("able", "k=0"), {"value": alone}),
        (key("able", "retrained"), {"value": retrained}),
        (key("embedllm", "k=20"), {"value": few}),
    ]
    rows = measured("model_routing_results", changes)
    assert rows["able.routing-new-models"].holds is holds


def test_forecasts_are_held_against_baselines(measured):
    """The paper's bound under its own regime, probes under the strict one."""

    def key(method, regime):
        named = {"target": "mean", "regime": regime, "method": method}
        return {**named, "metric": "spearman"}

    changes = [
        (key("able", "one_model_out"), {"value": 0.82}),
        (key("relatives", "one_model_out"), {"value": 0.83}),
        (key("able", "one_root_out"), {"value": 0.5, "low": 0.3}),
        (key("probe_accuracy", "one_root_out"), {"value": 0.4}),
    ]
    rows = measured("model_forecast_results", changes)
    assert rows["able.forecast"].holds is True
    assert rows["able.forecast-siblings"].holds is False
    assert rows["able.forecast-lineages"].holds is True


def test_selection_is_held_against_chance(measured):
    """NDCG@10 of 0.9 is nothing where random orders have it too."""

    def key(method, outcome):
        named = {"target": "mean", "outcome": outcome, "regime": "one_root_out"}
        return {**named, "method": method, "metric": "ndcg@10"}

    changes = [
        (key("able", "after"), {"value": 0.93, "low": 0.91}),
        (key("random", "after"), {"value": 0.92}),
        (key("able", "gain"), {"value": 0.8, "low": 0.7}),
        (key("random", "gain"), {"value": 0.5}),
        (key("before", "gain"), {"value": 0.6}),
    ]
    rows = measured("model_selection_results", changes)
    assert rows["able.selection"].holds is False
    assert rows["able.selection-gain"].holds is True


def test_without_a_map_nothing_is_measured(tmp_path):
    """The rows stay, without a value."""
    assert {row.holds for row in compute_claims(DEFINITIONS, tmp_path)} == {NOT_MEASURED}
