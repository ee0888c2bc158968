"""Claims on relations follow from the tables, and judge as their sentences say."""

import pytest

from engine.claims import NOT_MEASURED
from engine.pipeline.claims import compute_claims
from engine.pipeline.claims_models_relations import DEFINITIONS
from engine.pipeline.synthetic_map import write_synthetic_models
from engine.store import RunWriter, open_run, read_table


@pytest.fixture
def measured(tmp_path):
    """A synthetic map as the shipped one, and a way to change figures of it."""
    path = write_synthetic_models(tmp_path / "assets" / "zoo")

    def claims(changes=()):
        table = read_table(open_run(path), "model_relation_results")
        for (method, classifier, group, metric), value in changes:
            mine = table["method"].eq(method) & table["classifier"].eq(classifier)
            mine &= table["group"].eq(group) & table["metric"].eq(metric)
            assert mine.sum() == 1
            table.loc[mine, "value"] = value
        writer = RunWriter.resume(path)
        writer.begin_stage("changed", [str(changes)])
        writer.write_table("model_relation_results", table)
        writer.finish_stage("changed", {})
        return {row.id: row for row in compute_claims(DEFINITIONS, tmp_path)}

    return claims


def test_every_claim_is_measured_on_a_map(measured):
    """No name of a method, group or metric is misspelt; the chosen method is the run's."""
    rows = measured()
    assert len(rows) == len(DEFINITIONS)
    for row in rows.values():
        assert row.holds in (True, False), row.id
        assert "20" in row.setting or "21" in row.setting, row.setting
    assert "square_root" in rows["able.relation-twins"].setting
    assert "paper by cosine" in rows["able.relation-accuracy"].setting


def test_verdicts_turn_with_the_figures(measured):
    """The accuracy of the paper's setting at its bound; the twins of the chosen variant below."""
    twins = ("square_root", "threshold", "held_out:twin", "auc")
    paper = ("paper", "threshold", "all", "accuracy")
    good = measured([(paper, 0.83), (twins, 0.81)])
    assert good["able.relation-accuracy"].holds is True
    assert good["able.relation-accuracy"].value == pytest.approx(0.83)
    assert good["able.relation-twins"].holds is True
    bad = measured([(paper, 0.82), (twins, 0.79)])
    assert bad["able.relation-accuracy"].holds is False
    assert bad["able.relation-twins"].holds is False
    interval = bad["able.relation-twins"].interval
    assert interval is not None


def test_a_baseline_that_is_better_decides(measured):
    """One output that tells relatives better is enough."""
    own = ("square_root", "threshold", "all", "accuracy")
    outputs = [(name, "threshold", "all", "accuracy") for name in ("log_likelihoods", "phylolm")]
    also = ("option_probabilities", "threshold", "all", "accuracy")
    low = [(key, 0.6) for key in (*outputs, also)]
    assert measured([(own, 0.7), *low])["able.relation-outputs"].holds is True
    changed = [(own, 0.7), (outputs[0], 0.6), (outputs[1], 0.71), (also, 0.6)]
    assert measured(changed)["able.relation-outputs"].holds is False


def test_without_a_map_nothing_is_measured(tmp_path):
    """The ledger keeps the rows."""
    rows = compute_claims(DEFINITIONS, tmp_path)
    assert {row.holds for row in rows} == {NOT_MEASURED}
