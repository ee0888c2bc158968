"""The stage finds the planted motifs of each kind of head, and rows made of them come again."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from engine.endpoint import Endpoint
from engine.errors import CacheMissing, CorpusError
from engine.mda.motif_extraction import SHORTEST_COPY
from engine.mda.structure import covers, nontrivial_spans
from engine.pipeline import heads_motifs
from engine.pipeline.heads_motifs import (
    motifs_json,
    read_motifs,
    study_motifs,
    synthetic_rows,
    write_motifs,
)
from engine.pipeline.heads_top_samples import SampleReader
from engine.provenance import file_sha256
from engine.store import RunWriter, open_run, read_table, write_json_atomic
from tests.engine.pipeline.planted_heads import (
    BATCH,
    CONTEXT,
    N_SELECTED,
    SEEDS,
    is_table,
    write_heads_run,
)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory):
    """A house with the run and its corpus, made once."""
    root = tmp_path_factory.mktemp("planted-heads")
    return root, write_heads_run(root)[1]


@pytest.fixture
def planted(written, house: Path):
    """A copy of the run's own, and the rows of each seed."""
    root, streams = written
    shutil.copytree(root / "cache", house / "cache", dirs_exist_ok=True)
    return house / "cache" / "heads", streams


def test_the_top_samples_are_the_rows_that_raise_the_head(planted):
    """Generated rows for induction, tables for the other kind; as the stream gave them."""
    path, streams = planted
    reader = SampleReader(open_run(path))
    assert reader.units == ["induction", "previous_token"]
    for unit, planted_rows in (("induction", True), ("previous_token", False)):
        top = reader.top(unit)
        assert len(top.samples) == len(top.rows) == len(top.texts) == 2 * N_SELECTED
        for (seed, step, row), tokens, text in zip(top.samples, top.rows, top.texts, strict=True):
            assert np.array_equal(tokens, streams[seed].batch(step)[row])
            assert streams[seed].is_planted(step, row) == planted_rows
            assert is_table(text) or planted_rows
    assert {seed for seed, _, _ in reader.top("induction", seed=2).samples} == {2}
    assert reader.tokenise("ab") == [
        int(t) for t in reader.tokenizer.encode("ab", add_special_tokens=False).ids
    ]
    with pytest.raises(CacheMissing, match="no samples scored for duplicate_token heads"):
        reader.top("duplicate_token")


def test_samples_of_a_model_are_windows_of_their_documents(planted):
    """A run that knows documents and positions alone: rows end where their document does."""
    path, _ = planted
    whole = SampleReader(open_run(path)).top("previous_token")
    writer = RunWriter.resume(path)
    writer.begin_stage("influence", {})
    writer.finish_stage("influence", {"shared": {"order": ["run", CONTEXT, BATCH]}})
    writer.begin_stage("study", {"planted": True})
    writer.finish_stage("study", {"mixtures": {}})
    top = SampleReader(open_run(path)).top("previous_token")
    assert top.samples == whole.samples
    lengths = {len(row) for row in top.rows}
    assert max(lengths) == CONTEXT + 1
    for found, row in zip(top.rows, whole.rows, strict=True):
        assert len(found) > 0
        own = row[1:] if row[0] == 0 else row  # without the separator
        assert np.array_equal(found, own[: len(found)])
    with pytest.raises(CacheMissing, match="does not say how its rows were made"):
        SampleReader(open_run(path)).top("induction")


def test_samples_with_the_same_influence_follow_their_order_and_nan_is_never_chosen(planted):
    """As the arms of a study choose them."""
    path, _ = planted
    writer = RunWriter.resume(path)
    run = open_run(path)
    frame = read_table(run, "head_influence")
    values = np.stack(frame["influence"].to_list())
    values[:] = 0.25
    values[::2] = np.nan
    writer.begin_stage("again", {})
    writer.write_table("head_influence", frame.assign(influence=list(values)))
    writer.finish_stage("again", {})
    run = open_run(path)
    finite = read_table(run, "head_influence", where={"unit": "induction", "seed": 2})
    kept = [np.isfinite(np.ma.filled(v, np.nan)).all() for v in finite["influence"]]
    expected = finite[kept].sort_values(["step", "row"])[["step", "row"]].head(N_SELECTED)
    found = SampleReader(run).top("induction", seed=2).samples
    assert [(step, row) for _, step, row in found] == [tuple(e) for e in expected.to_numpy()]


def test_the_stage_writes_the_planted_motifs(planted):
    """Repeats of 5 to 31 tokens for the one kind, tables of semicolons for the other."""
    _, streams = planted
    run = write_motifs("heads")
    found = read_motifs(run)
    assert list(found) == ["induction", "previous_token"]
    repeat = found["induction"][0]
    assert (repeat.name, repeat.share) == ("repeat", 1.0)
    segments = read_table(run, "head_samples", columns=["segment"])["segment"]
    assert set(repeat.structure.distances.values) <= set(segments[segments > 0])
    assert set(repeat.vocabulary.tokens.values) <= set(streams[0].frequent.tolist()) | set(
        streams[2].frequent.tolist()
    )
    table = next(m for m in found["previous_token"] if m.name == "table")
    assert table.structure.delimiters.values == (";",)
    assert table.share > 0.9
    assert run.manifest["stages"]["motifs"]["samples"] == dict.fromkeys(found, 2 * N_SELECTED)
    assert read_motifs(run, "induction") == {"induction": found["induction"]}
    with pytest.raises(CacheMissing, match="no motifs of gate heads"):
        read_motifs(run, "gate")
    plain = motifs_json(found)[0]
    assert (plain["unit"], plain["motif"], plain["origin"]) == ("induction", "repeat", "local")
    assert plain["structure"]["distances"]["values"] == list(repeat.structure.distances.values)


def test_a_killed_stage_resumes_to_the_same_table_and_a_finished_one_is_kept(
    planted, monkeypatch: pytest.MonkeyPatch
):
    """Killed before its table is published."""
    path, _ = planted
    usual = RunWriter.finish_stage

    def killed(self, stage, facts):
        raise KeyboardInterrupt

    monkeypatch.setattr(RunWriter, "finish_stage", killed)
    with pytest.raises(KeyboardInterrupt):
        write_motifs("heads")
    assert not open_run(path).has("head_motifs")
    monkeypatch.setattr(RunWriter, "finish_stage", usual)
    first = file_sha256(write_motifs("heads").files("head_motifs")[0])
    monkeypatch.setattr(heads_motifs, "SampleReader", None)
    assert file_sha256(write_motifs("heads").files("head_motifs")[0]) == first


def test_a_run_without_influence_and_a_changed_corpus_are_refused(planted, house: Path):
    """With what to do."""
    path, _ = planted
    manifest = house / "cache" / "corpus" / open_run(path).manifest["corpus"]["name"]
    bare = RunWriter.create(house / "cache" / "bare", name="bare", kind="heads", identity={})
    bare.begin_stage("study", {})
    bare.finish_stage("study", {})
    with pytest.raises(CacheMissing, match="has no table head_samples"):
        write_motifs("bare")
    corpus = SampleReader(open_run(path)).shards.corpus.manifest
    write_json_atomic(manifest / "corpus.json", {**corpus, "fingerprint": "0" * 16})
    with pytest.raises(CorpusError, match="in another state"):
        write_motifs("heads")


def test_an_unknown_kind_of_head_and_samples_that_cannot_be_read_begin_no_stage(planted):
    """The run is left as it was."""
    path, _ = planted
    with pytest.raises(CacheMissing, match="no samples scored for gate heads; it knows induction"):
        write_motifs("heads", unit="gate")
    assert "motifs" not in RunWriter.resume(path).manifest["stages"]
    writer = RunWriter.resume(path)
    writer.begin_stage("study", {"planted": True})
    writer.finish_stage("study", {"mixtures": {}})
    with pytest.raises(CacheMissing, match="does not say how its rows were made"):
        write_motifs("heads", unit="induction")
    assert "motifs" not in RunWriter.resume(path).manifest["stages"]


def test_synthetic_rows_have_the_repeats_of_their_samples_and_controls_have_none(planted):
    """What an arm of a study asks for: as many rows as there are samples."""
    path, _ = planted
    top = SampleReader(open_run(path)).top("induction", seed=SEEDS[0])
    rows = np.stack(top.rows)
    made = synthetic_rows(rows, 19, seed=4)
    control = synthetic_rows(rows, 19, seed=4, control=True)
    assert made.shape == control.shape == (19, CONTEXT + 1)
    assert np.array_equal(made, synthetic_rows(rows, 19, seed=4))
    assert np.array_equal(np.sort(made), np.sort(control))

    def repeating(found: np.ndarray) -> float:
        spans = [nontrivial_spans(row, SHORTEST_COPY) for row in found]
        return float(np.mean([covers(own, CONTEXT + 1) for own in spans]))

    assert repeating(made) == 1.0
    assert repeating(control) < 0.3


def test_samples_without_a_motif_give_no_rows():
    """Rows of different tokens."""
    rows = np.stack([np.random.default_rng(i).permutation(211)[:50] for i in range(7)])
    with pytest.raises(CacheMissing, match="The 7 top samples show no motif"):
        study_motifs(rows)


def test_an_endpoint_that_fails_leaves_the_motifs_as_they_are(planted):
    """Nobody listens there."""
    local = read_motifs(write_motifs("heads"))
    again = write_motifs("heads", endpoint=Endpoint("http://127.0.0.1:9/v1", "m", timeout=2))
    assert read_motifs(again) == local
    assert again.manifest["stages"]["motifs"]["endpoint"]["model"] == "m"
