"""The stage over a synthetic study: its tables follow from the others, and it resumes."""

from pathlib import Path

import numpy as np
import pytest

from engine.errors import CacheMissing
from engine.mda import tails
from engine.mda.overlaps import head_overlaps
from engine.pipeline import heads_analysis
from engine.pipeline.heads_analysis import analyse_heads, check_analysed, study_frames
from engine.pipeline.synthetic_heads import write_synthetic_heads
from engine.provenance import file_sha256
from engine.store import RunWriter, open_run, read_table
from engine.store.checking import check_run


MADE = ("head_effects", "head_overlaps", "head_tags", "head_tails")


@pytest.fixture
def path(house: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A synthetic study; bootstrap and comparison with a log-normal are tested elsewhere."""
    monkeypatch.setattr(tails, "RESAMPLES", 3)
    monkeypatch.setattr(tails, "CANDIDATES", 14)
    monkeypatch.setattr(tails, "lognormal_ratio", lambda tail: (-1.5, 0.25))
    return write_synthetic_heads(house / "cache" / "heads")


def test_the_tables_follow_from_the_study(path: Path):
    """Each against the function that makes it, head by head; the run is whole afterwards."""
    run = analyse_heads("heads")
    check_analysed(run)
    assert check_run(run) == []
    influence = read_table(run, "head_influence", where={"seed": 1, "unit": "previous_token"})
    values = np.stack(influence["influence"].to_list()).astype(np.float64)
    place = read_table(run, "head_choices")["heads"].iloc[0].tolist().index("1.2")
    where = {"seed": 1, "unit": "previous_token", "layer": 1, "head": 2}
    found = read_table(run, "head_tails", where={**where, "sign": "negative"}).iloc[0]
    expected = tails.tail_of(-values[:, place])
    assert found["n"] == expected.n
    assert found["exponent"] == pytest.approx(expected.exponent)
    assert found["low"] < found["exponent"] < found["high"]
    pairs = read_table(run, "head_overlaps", where=where)
    both = head_overlaps(values)
    assert pairs["overlap"].to_numpy() == pytest.approx(both.overlap[place])
    effects = read_table(run, "head_effects")
    planted = {"augment_top": -8, "delete_top": 14, "synthetic": -6}
    for arm, steps in planted.items():
        rows = effects[(effects["arm"] == arm) & (effects["measure"] == "delay")]
        assert len(rows) == 2
        assert np.abs(rows["effect"] - steps).max() < 5
    tags = read_table(run, "head_tags", where={"tag": "domain:planted", "sign": "positive"})
    assert (tags["enrichment"] > 1).all()


def test_a_killed_stage_goes_on_to_the_same_tables(path: Path, monkeypatch: pytest.MonkeyPatch):
    """Killed after its second table, which is not computed again."""
    once = analyse_heads("heads")
    files = {name: file_sha256(once.files(name)[0]) for name in MADE}
    other = write_synthetic_heads(path.parent / "other")
    usual = RunWriter.write_table
    written = []

    def killed(self, table, frame):
        if len(written) == 2:
            raise KeyboardInterrupt
        written.append(table)
        usual(self, table, frame)

    monkeypatch.setattr(RunWriter, "write_table", killed)
    with pytest.raises(KeyboardInterrupt):
        analyse_heads("other")
    with pytest.raises(CacheMissing, match="heads analyse --run other"):
        check_analysed(open_run(other))
    monkeypatch.setattr(RunWriter, "write_table", usual)
    for name in written:
        monkeypatch.setitem(heads_analysis._MAKERS, name, None)
    again = analyse_heads("other")
    assert {name: file_sha256(again.files(name)[0]) for name in MADE} == files


def test_an_analysis_of_an_earlier_study_is_told_from_a_new_one(path: Path):
    """A study that goes on writes its tables anew."""
    run = analyse_heads("heads")
    writer = RunWriter.resume(run.path)
    scores = read_table(run, "head_scores")
    writer.begin_stage("more", {})
    writer.write_table("head_scores", scores.assign(duplicate_token=0.5))
    writer.finish_stage("more", {})
    with pytest.raises(CacheMissing, match="since its study went on"):
        check_analysed(open_run(run.path))
    check_analysed(analyse_heads("heads"))


def test_a_run_with_scores_alone_is_refused_with_a_sentence(house: Path):
    """It says what makes the tables."""
    writer = RunWriter.create(house / "cache" / "bare", name="bare", kind="heads", identity={})
    writer.begin_stage("monitor", {})
    writer.finish_stage("monitor", {})
    with pytest.raises(CacheMissing, match="headwater heads study"):
        analyse_heads("bare")


def test_frames_know_the_metric_of_each_kind(path: Path):
    """Induction is shown by prefix matching."""
    chosen = study_frames(open_run(path)).chosen
    assert {choice.unit: choice.metric for choice in chosen} == {
        "induction": "prefix_matching",
        "previous_token": "previous_token",
    }
