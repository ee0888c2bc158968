"""Trends over arms, their exact null distribution, and what they are held against."""

from itertools import permutations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from engine.claims import NOT_MEASURED
from engine.pipeline.claims import compute_claims
from engine.pipeline.claims_curvature import DEFINITIONS, null_low, null_trends, trend
from engine.pipeline.synthetic import write_synthetic_run
from engine.store import RunWriter, open_run, read_table


def arms(figures: list[list[float]]) -> pd.DataFrame:
    """A seed a list, the weight rising within it."""
    return pd.DataFrame(
        [
            {"seed": seed, "weight": float(weight), "figure": value}
            for seed, values in enumerate(figures)
            for weight, value in enumerate(values)
        ]
    )


def test_a_trend_is_the_mean_over_seeds_of_the_rank_correlation():
    """-1 where it falls throughout; one swap of neighbours among four costs 0.2."""
    assert trend(arms([[9, 5, 2, 1]]), "figure") == pytest.approx(-1)
    assert trend(arms([[9, 5, 2, 1], [9, 2, 5, 1]]), "figure") == pytest.approx(-0.9)
    assert trend(arms([[1, 2, 3, np.nan]]), "figure") == pytest.approx(1)
    assert trend(arms([[2, 2, 2, 2]]), "figure") == 0


def test_the_null_distribution_is_that_of_every_order():
    """Three arms and four arms: all 6 x 24 pairs of orders, counted one by one."""
    expected = []
    for first in permutations(range(3)):
        for second in permutations(range(4)):
            both = arms([list(map(float, first)), list(map(float, second))])
            expected.append(round(trend(both, "figure"), 6))
    values, shares = null_trends([3, 4])
    found = dict(zip(np.round(values, 6).tolist(), shares.tolist(), strict=True))
    for value in set(expected):
        assert found[value] == pytest.approx(expected.count(value) / len(expected))
    assert sum(shares) == pytest.approx(1)


def test_the_bound_is_reached_by_chance_as_rarely_as_said():
    """Five arms of one seed: only a fall at every step is rarer than 1 in 40."""
    assert null_low([5]) == pytest.approx(-1)
    values, shares = null_trends([5, 5])
    bound = null_low([5, 5])
    assert shares[values <= bound].sum() <= 0.025
    assert shares[values <= values[values > bound][0]].sum() > 0.025


def test_the_claims_are_computed_from_the_tables(tmp_path: Path):
    """Names of tables, terms and columns are those of the contract, and both verdicts happen."""
    write_synthetic_run(tmp_path / "assets" / "demo", n_prototypes=97, n_tokens=3_001)
    rows = {row.id: row for row in compute_claims(DEFINITIONS, tmp_path)}
    run = open_run(tmp_path / "assets" / "demo")
    table = read_table(run, "curvature_arms", where={"role": "arm"})
    for name, column in (
        ("prism.curvature-coupling", "coupling"),
        ("prism.curvature-conditioning", "condition_number"),
    ):
        row = rows[name]
        assert row.holds is True  # the synthetic arms fall with the weight
        assert row.control is not None
        strongest = table.loc[table["prototype_to_token_weight"] == 5, "arm"]
        figures = read_table(
            run, "curvature", where={"term": "bank-common", "arm": strongest.tolist()}
        )
        assert row.control["strongest"] == pytest.approx(figures[column].mean())
        assert row.control["strongest_spread_to_dense"] < row.control["weakest_spread_to_dense"]
        assert "10 arms" in row.setting
    rising = read_table(run, "curvature").assign(coupling=lambda f: 1 - f["coupling"])
    writer = RunWriter.resume(run.path)
    writer.begin_stage("curvature", 1)
    writer.write_table("curvature", rising)
    writer.finish_stage("curvature", {})
    again = {row.id: row for row in compute_claims(DEFINITIONS, tmp_path)}
    assert again["prism.curvature-coupling"].holds is False


def test_a_run_without_arms_leaves_the_claims_unmeasured(tmp_path: Path):
    """One bank is no curve."""
    path = tmp_path / "assets" / "demo"
    write_synthetic_run(path, n_prototypes=97, n_tokens=3_001)
    alone = read_table(open_run(path), "curvature_arms", where={"role": "run"})
    writer = RunWriter.resume(path)
    writer.begin_stage("curvature", 1)
    writer.write_table("curvature_arms", alone)
    writer.finish_stage("curvature", {})
    assert [row.holds for row in compute_claims(DEFINITIONS, tmp_path)] == [NOT_MEASURED] * 2
