"""Values of claims, computed from tables whose answers are known."""

import dataclasses

import numpy as np
import pytest

from engine.claims import NOT_COMPARABLE, NOT_MEASURED
from engine.pipeline import claims_prism, claims_suppression
from engine.pipeline.claims import ClaimDefinition, Measured, compute_claim, compute_claims
from engine.pipeline.claims_intervals import (
    bootstrap,
    figure,
    geometric_ratio,
    mean_difference,
    ratio_of_sums,
    relative_drop,
    weighted_ratio,
)
from engine.pipeline.measurements import latest_measurement, record_measurement
from engine.pipeline.synthetic import write_synthetic_run


def definition(measure, **changes):
    plain = ClaimDefinition(
        id="prism.example",
        paper="a paper",
        claim="A sentence.",
        paper_value=None,
        unit="cosine",
        criterion="value >= 0.5",
        evidence="evidence.json",
        command="make it",
        measure=measure,
    )
    return dataclasses.replace(plain, **changes)


def test_a_claim_without_evidence_stays_unmeasured(tmp_path):
    """The row is there, with its criterion, before anything is measured."""
    row = compute_claim(definition(lambda _: Measured(value=1.0, setting="")), tmp_path)
    assert (row.value, row.holds, row.criterion) == (None, NOT_MEASURED, "value >= 0.5")


@pytest.mark.parametrize(("value", "holds"), [(0.5, True), (0.49, False)])
def test_a_verdict_is_computed(tmp_path, value, holds):
    """Both verdicts leave the figure in the row."""
    (tmp_path / "evidence.json").write_text("{}")
    row = compute_claim(definition(lambda _: Measured(value=value, setting="s")), tmp_path)
    assert (row.value, row.holds) == (value, holds)


def test_a_scale_too_far_from_the_papers_gets_no_verdict(tmp_path):
    """The figure stays."""
    (tmp_path / "evidence.json").write_text("{}")
    measured = Measured(value=0.1, setting="s", comparable=False)
    row = compute_claim(definition(lambda _: measured), tmp_path)
    assert (row.value, row.holds) == (0.1, NOT_COMPARABLE)


def test_statistics_equal_hand_worked_figures():
    """Means 4 and 1; sums 8 and 2; logs of (1, 16) and (1, 4): geometric means 4 and 2."""
    pairs = np.array([[2.0, 0.5], [6.0, 1.5]])
    assert figure(pairs, mean_difference) == pytest.approx(3)
    assert figure(pairs, relative_drop) == pytest.approx(0.75)
    assert figure(pairs, ratio_of_sums) == pytest.approx(4)
    assert figure(np.array([[1.0, 1.0], [16.0, 4.0]]), geometric_ratio) == pytest.approx(0.5)
    # (3 * 1 + 1 * 3) / (2 * 1 + 1 * 3) - 1 = 6 / 5 - 1
    assert figure(np.array([[3.0, 2.0, 1.0], [1.0, 1.0, 3.0]]), weighted_ratio) == pytest.approx(
        0.2
    )


def test_a_bootstrap_interval_keeps_pairs_together():
    """Second column = first - 1 in every unit, so the difference has no spread at all."""
    first = np.random.default_rng(3).normal(size=41)
    low, high = bootstrap(np.column_stack([first, first - 1]), mean_difference, resamples=700)
    assert (low, high) == (pytest.approx(1), pytest.approx(1))


def test_a_bootstrap_interval_has_the_width_of_the_standard_error():
    """n = 400 draws of sd 1: the 95 % interval of a mean is about 4 * 1 / 20 wide."""
    first = np.random.default_rng(4).normal(size=400)
    pairs = np.column_stack([first, np.zeros(400)])
    low, high = bootstrap(pairs, mean_difference, resamples=2_000)
    assert high - low == pytest.approx(0.2, rel=0.2)
    assert low < first.mean() < high


def test_a_bootstrap_is_the_same_every_time():
    """A ledger computed twice is the same file."""
    pairs = np.random.default_rng(5).normal(size=(17, 2))
    assert bootstrap(pairs, mean_difference) == bootstrap(pairs, mean_difference)


def test_measurements_are_kept_and_the_latest_counts(tmp_path):
    """Raw rounds are appended, so that an earlier figure is not lost."""
    path = tmp_path / "measurements.json"
    record_measurement("speed", {"device": "cpu"}, [{"seconds": 2.0}], path)
    record_measurement("other", {}, [], path)
    record_measurement("speed", {"device": "cpu"}, [{"seconds": 3.0}], path)
    assert latest_measurement("speed", path)["rounds"] == [{"seconds": 3.0}]


def test_a_speed_ratio_is_paired_by_round(tmp_path):
    """Dense 9 + 1 seconds, PRISM 10 + 2.5: ratio 0.8."""
    path = tmp_path / "measurements.json"
    rounds = [
        {"dense_seconds": 9.0, "prism_seconds": 10.0},
        {"dense_seconds": 1.0, "prism_seconds": 2.5},
    ]
    record_measurement("training-demo", {"device": "cpu", "expected": 0.9}, rounds, path)
    measured = claims_prism.measure_speed(
        path, name="training-demo", over="dense_seconds", under="prism_seconds"
    )
    assert measured.value == pytest.approx(0.8)
    assert measured.interval == (pytest.approx(0.4), pytest.approx(0.9))
    assert measured.control == {"expected": 0.9}


def test_every_claim_that_a_run_can_answer_is_computed_from_its_tables(tmp_path):
    """Names of tables, banks and columns in the claims are those of the contract."""
    write_synthetic_run(tmp_path / "assets" / "demo", n_prototypes=97, n_tokens=3_001)
    definitions = [*claims_prism.DEFINITIONS, *claims_suppression.DEFINITIONS]
    rows = {row.id: row for row in compute_claims(definitions, tmp_path)}
    expected = [d.id for d in definitions if d.evidence.startswith("assets/demo")]
    assert [name for name in expected if rows[name].value is None] == []
    assert all(rows[name].setting for name in expected)
    assert all(rows[d.id].holds == NOT_MEASURED for d in definitions if d.id not in expected)


def test_a_figure_stands_as_the_papers_only_where_the_paper_gives_it():
    """The paper retrofits no model, and names no measure of quality."""
    definitions = [*claims_prism.DEFINITIONS, *claims_suppression.DEFINITIONS]
    given = {d.id: d.paper_value for d in definitions if d.paper_value is not None}
    assert given["prism.coverage"] == 0.94
    assert not [name for name in given if "retrofit" in name or "quality" in name]
    assert all(d.paper != claims_prism.OURS for d in definitions if d.id in given)
