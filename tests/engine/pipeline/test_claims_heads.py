"""The claims on heads over a synthetic study whose arms are planted, and over made-up records."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from engine.claims import NOT_MEASURED, Claim
from engine.mda import tails
from engine.mda.intervals import t_interval
from engine.pipeline.claims import compute_claims
from engine.pipeline.claims_heads import DEFINITIONS
from engine.pipeline.claims_heads_speed import (
    ALL_HEADS,
    COST,
    KRONFLUENCE,
    fit_exponent,
    local_slopes,
)
from engine.pipeline.heads_analysis import analyse_heads
from engine.pipeline.measurements import record_measurement
from engine.pipeline.synthetic_heads import Shape, write_synthetic_heads
from engine.store import RunWriter, open_run, read_table


SEEDS = 3


@pytest.fixture(scope="module", autouse=True)
def _short_tails() -> Iterator[None]:
    """Bootstrap and comparison with a log-normal are tested elsewhere."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tails, "RESAMPLES", 3)
        patch.setattr(tails, "CANDIDATES", 14)
        patch.setattr(tails, "lognormal_ratio", lambda tail: (-1.5, 0.25))
        yield


@pytest.fixture(scope="module")
def studied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with an analysed study of three seeds; read it, never write it."""
    root = tmp_path_factory.mktemp("project")
    path = write_synthetic_heads(root / "assets" / "heads", shape=Shape(seeds=SEEDS))
    run, writer = open_run(path), RunWriter.resume(path)
    scores = read_table(run, "head_scores")
    second = (scores["layer"] == 1) & (scores["head"] == 0)
    scores.loc[second, "prefix_matching"] *= 1.5  # so that it is of the chosen head's kind
    writer.begin_stage("more", {})
    writer.write_table("head_scores", scores)
    writer.finish_stage("more", {})
    analyse_heads(str(path))
    return root


@pytest.fixture
def project(studied: Path, tmp_path: Path) -> Path:
    """A copy of it, free to be changed."""
    return Path(shutil.copytree(studied, tmp_path / "project"))


def computed(root: Path) -> dict[str, Claim]:
    return {row.id.removeprefix("mda."): row for row in compute_claims(DEFINITIONS, root)}


def test_planted_arms_decide_their_claims(studied: Path):
    """Deleting delays by 14 steps, copying hastens by 8, random arms do nothing."""
    rows = computed(studied)
    for kind in ("induction", "previous-token"):
        assert rows[f"{kind}-delete"].value == pytest.approx(14, abs=3)
        assert rows[f"{kind}-delete"].holds is True
        assert rows[f"{kind}-augment"].value == pytest.approx(-8, abs=3)
        assert rows[f"{kind}-augment"].holds is True
        assert rows[f"{kind}-replacement"].holds is True
        assert rows[f"{kind}-delete-score"].holds is True
        assert rows[f"{kind}-augment-score"].holds is True
        assert rows[f"{kind}-random"].value == rows[f"{kind}-specific"].value < 0.2
    assert rows["emergence"].value == 1
    assert rows["icl-coupling"].value < -0.9
    assert rows["icl-coupling"].holds is True
    assert abs(rows["general-loss"].value) < 1
    assert rows["transfer"].value > 2
    assert rows["synthetic-control"].holds is True


def test_figures_follow_from_the_tables(studied: Path):
    """Each again by another way."""
    rows = computed(studied)
    run = open_run(studied / "assets" / "heads")
    effect = read_table(
        run, "head_effects", where={"arm": "delete_top", "unit": "induction", "measure": "delay"}
    ).iloc[0]
    assert rows["induction-delete"].interval == pytest.approx((effect["low"], effect["high"]))
    where = {"unit": "induction", "layer": 1, "head": 1, "sign": "positive"}
    own = read_table(run, "head_tails", where=where)
    over = t_interval(own["top10_share"].to_numpy(float))
    assert rows["top-share"].value == pytest.approx(over.mean)
    assert rows["top-share"].interval == pytest.approx((over.low, over.high))
    assert rows["exponent"].value == pytest.approx(own["exponent"].mean())
    shares = rows["top-share"].control
    assert shares["tenth_of_all_samples"] > rows["top-share"].value  # more samples than a tenth
    assert shares["highest_of_any_head"] >= rows["top-share"].value >= shares["lowest_of_any_head"]
    where = {"unit": "induction", "tag": "domain:planted", "sign": "positive"}
    tag = read_table(run, "head_tags", where=where).iloc[0]
    assert rows["planted"].value == pytest.approx(tag["enrichment"])
    assert _gains(run) == pytest.approx(rows["synthetic-gain"].value, rel=1e-4)
    assert f"{SEEDS} seeds" in rows["induction-delete"].setting


def _gains(run) -> float:
    """Gain at each seed's last step of the synthetic arm, from the scores alone."""
    scores = read_table(run, "head_scores", where={"layer": 1, "head": 1})
    ends = read_table(run, "head_arms", where={"arm": "synthetic", "unit": "induction"})
    last = scores.merge(ends[["seed", "end_step"]], on="seed").query("step == end_step")
    last = last.set_index("seed")
    arm = last[(last["arm"] == "synthetic") & (last["unit"] == "induction")]
    base = last[last["arm"] == "baseline"]
    return float((100 * (arm["prefix_matching"] / base["prefix_matching"] - 1)).mean())


def test_arms_the_other_way_round_fail(project: Path):
    """Names of the two top arms exchanged: what delayed now hastens."""
    path = project / "assets" / "heads"
    run, writer = open_run(path), RunWriter.resume(path)
    swap = {"delete_top": "augment_top", "augment_top": "delete_top"}
    writer.begin_stage("more", {"swapped": True})
    for name in ("head_scores", "head_losses", "head_arms"):
        table = read_table(run, name)
        writer.write_table(name, table.assign(arm=table["arm"].replace(swap)))
    writer.finish_stage("more", {})
    stale = computed(project)
    assert stale["induction-delete"].holds == NOT_MEASURED  # analysed before the tables changed
    analyse_heads(str(path))
    rows = computed(project)
    for name in ("delete", "augment", "delete-score", "augment-score"):
        assert rows[f"induction-{name}"].holds is False, name


def test_one_seed_has_no_interval_and_so_no_verdict(tmp_path: Path):
    """The row stays, not measured; what needs no interval is judged."""
    path = write_synthetic_heads(tmp_path / "assets" / "heads", shape=Shape(seeds=1))
    rows = computed(tmp_path)
    assert rows["emergence"].holds is True
    for name in ("transfer", "icl-coupling", "synthetic-gain", "general-loss", "structure"):
        assert rows[name].holds == NOT_MEASURED, name
    shutil.rmtree(path)
    assert {row.holds for row in computed(tmp_path).values()} == {NOT_MEASURED}


def test_speed_is_judged_by_its_records(tmp_path: Path):
    """A planted power of 0.75, and a pass that takes 1.5 times as long as one head's."""
    path = tmp_path / "docs" / "measurements.json"
    path.parent.mkdir()
    fits = {"all_fit_s": 9.0, "one_fit_s": 3.0}
    rounds = [{"all_s": 3.0 * f, "one_s": 2.0 * f, **fits} for f in (1.0, 1.1, 0.9)]
    record_measurement(ALL_HEADS, {"heads": 8}, rounds, path)
    sizes = [
        {"parameters": p, "sample_s": s * p**0.75, "fit_sample_s": 0.0, "samples": 10, "fixed_s": 5}
        for s in (1e-6, 1e-6, 9e-6)  # one round was disturbed
        for p in (1e5, 4e5, 1e6, 3e6, 9e6)
    ]
    record_measurement(COST, {"device": "cpu"}, sizes, path)
    row = {"samples_a_s": 6.0, "kronfluence_samples_a_s": 3.0, "fit_s": 1.0}
    row |= {"kronfluence_fit_s": 4.0, "relative_difference": 0.01}
    record_measurement(KRONFLUENCE, {"device": "cpu"}, [row], path)
    rows = computed(tmp_path)
    assert rows["kronfluence"].value == 2
    assert rows["kronfluence"].holds is False  # faster, but not the same scores
    assert rows["all-heads-time"].value == pytest.approx(1.5)
    assert rows["all-heads-time"].holds is True
    assert rows["all-heads-time"].control["with_curvature"] == pytest.approx(2.4, rel=0.01)
    assert rows["cost-exponent"].value == pytest.approx(0.75)
    assert rows["cost-exponent"].holds is True
    assert rows["cost-exponent"].control["slope_4"] == pytest.approx(0.75)
    assert rows["cost-exponent"].control["with_curvature"] == pytest.approx(0.75)
    assert rows["cost-exponent"].control["with_curvature_and_fixed_overhead"] < 0.7


def test_the_exponents_interval_is_that_of_a_line():
    """Against scipy's regression."""
    from scipy.stats import linregress, t

    sizes = np.array([1e5, 4e5, 1e6, 3e6, 9e6])
    seconds = sizes**0.8 * np.array([1.0, 1.1, 0.95, 1.02, 0.97])
    value, low, high = fit_exponent(sizes, seconds)
    line = linregress(np.log(sizes), np.log(seconds))
    assert value == pytest.approx(line.slope)
    assert high - low == pytest.approx(2 * t.ppf(0.975, 3) * line.stderr)
    assert len(local_slopes(sizes, seconds)) == 4
