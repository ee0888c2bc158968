"""Claims on control: figures of tables whose answers are known, verdicts by the rule in code."""

import shutil

import pytest

from engine.claims import NOT_COMPARABLE, NOT_MEASURED
from engine.cli.claims import computed_claims
from engine.errors import CacheMissing
from engine.pipeline import claims_control
from engine.pipeline.claims import compute_claim
from engine.store import RunWriter, open_run, read_table


@pytest.fixture
def evidence(synthetic_path, house):
    """The synthetic run in the place of the shipped demo."""
    return shutil.copytree(synthetic_path, house / "assets" / "demo")


def _claim(name: str, root):
    definition = next(d for d in claims_control.DEFINITIONS if d.id == name)
    return compute_claim(definition, root)


def test_every_claim_is_registered_once(monkeypatch):
    """The ledger takes what stands here."""
    monkeypatch.setattr("engine.pipeline.claims.compute_claims", list)
    ids = [row.id for row in computed_claims()]
    for definition in claims_control.DEFINITIONS:
        assert ids.count(definition.id) == 1


def test_a_gain_is_the_mean_over_sets_with_its_interval(evidence, house):
    """The other comparisons and the sets stand beside it."""
    gains = read_table(open_run(evidence), "control_gains").set_index(["set", "comparison"])
    row = _claim("prism.controller-gain", house)
    mean = gains.loc[("mean", "prototypes-none")]
    assert row.value == pytest.approx(mean["gain"])
    assert row.interval == (pytest.approx(mean["low"]), pytest.approx(mean["high"]))
    assert row.holds == (mean["low"] > 0)
    assert row.control["sae_none"] == pytest.approx(gains.loc[("mean", "sae-none"), "gain"])
    assert row.control["mmlu"] == pytest.approx(gains.loc[("mmlu", "prototypes-none"), "gain"])
    assert row.paper_value == 2.72


def test_the_gain_over_the_autoencoder_has_its_own_row(evidence, house):
    """2.72 minus 0.32 in the paper."""
    gains = read_table(open_run(evidence), "control_gains").set_index(["set", "comparison"])
    row = _claim("prism.controller-vs-sae", house)
    assert row.value == pytest.approx(gains.loc[("mean", "prototypes-sae"), "gain"])
    assert row.paper_value == 2.40


def test_a_run_of_another_comparison_alone_is_no_evidence(evidence, house):
    """Without an autoencoder there is no row to judge."""
    run = open_run(evidence)
    gains = read_table(run, "control_gains")
    writer = RunWriter.resume(run.path)
    writer.begin_stage("control", {"alone": True})
    writer.write_table("control_gains", gains[gains["comparison"] == "prototypes-none"])
    writer.finish_stage("control", {})
    with pytest.raises(CacheMissing, match="prototypes-sae"):
        claims_control.measure_gain(run.path / "control_gains.parquet", comparison="prototypes-sae")
    assert _claim("prism.controller-vs-sae", house).holds == NOT_MEASURED


@pytest.mark.parametrize(("low", "comparable"), [(0.2, False), (0.4, True)])
def test_downstream_is_judged_only_where_the_twin_is_above_chance(evidence, house, low, comparable):
    """At chance two models agree whatever they learned; the figures stay."""
    run = open_run(evidence)
    table = read_table(run, "downstream")
    own = table["model"] == "dense"
    table.loc[own, "low"] = low
    table.loc[own, "chance"] = 0.3
    writer = RunWriter.resume(run.path)
    writer.begin_stage("downstream", {"low": low})
    writer.write_table("downstream", table)
    writer.finish_stage("downstream", {})
    row = _claim("prism.downstream", house)
    mean = table[(table["set"] == "mean") & (table["model"] == "prism")].iloc[0]
    assert row.value == pytest.approx(mean["difference"])
    assert row.holds == ((mean["difference_low"] >= -2.5) if comparable else NOT_COMPARABLE)
