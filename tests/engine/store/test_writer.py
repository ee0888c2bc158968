"""A run is seen whole or not at all, and resumes where it was killed."""

import errno
import os
from pathlib import Path

import numpy as np
import pytest

from engine import store
from engine.errors import CacheMissing, CacheStale, ConfigError, SchemaMismatch, StorageError
from engine.store import RunWriter


IDENTITY = {"config": {"seed": 3}, "corpus": {"fingerprint": "ab"}}
NEIGHBOURS = {"prototype": [0], "rank": [0], "neighbour": [1], "cosine": [0.5]}


def activations(document: int) -> dict[str, object]:
    rows = np.arange(5)
    return {
        "document": np.full(5, document),
        "position": rows,
        "rank": np.zeros(5, dtype=int),
        "prototype": rows,
        "activation": np.linspace(0, 1, 5),
    }


def create(path: Path, **identity: object) -> RunWriter:
    return RunWriter.create(path, name="A run", kind="prism", identity=IDENTITY | identity)


def test_nothing_is_seen_before_a_stage_is_finished(house: Path):
    """`run.json` is written last; without it there is no run."""
    path = house / "cache" / "r"
    writer = create(path)
    writer.begin_stage("index", 1)
    writer.write_table("prototype_neighbours", NEIGHBOURS)
    writer.write_shard("prototype_activations", 0, activations(0))
    with pytest.raises(CacheMissing, match="unfinished"):
        store.open_run("r")
    assert "unfinished" in store.list_broken()[0].reason
    writer.finish_stage("index", {"seconds": 1.5})
    run = store.open_run("r")
    assert set(run.tables) == {"prototype_neighbours", "prototype_activations"}
    assert run.manifest["stages"]["index"]["seconds"] == 1.5
    assert store.check_run(run) == []


def test_a_killed_stage_goes_on_with_its_shards_and_ends_the_same(house: Path):
    """The same command again writes only what is missing."""
    whole, killed = house / "cache" / "whole", house / "cache" / "killed"
    for path in (whole, killed):
        writer = create(path)
        writer.begin_stage("index", 1)
        for shard in range(3):
            if path == killed and shard == 2:
                (path / "activations" / ".part-00002.parquet.tmp-aa").write_bytes(b"half")
                writer = create(path)
                assert writer.begin_stage("index", 1) is False
                assert [writer.shard_done("prototype_activations", i) for i in range(3)] == [
                    True,
                    True,
                    False,
                ]
            writer.write_shard("prototype_activations", shard, activations(shard))
        writer.finish_stage("index", {})
    tables = [store.open_run(name).tables for name in ("whole", "killed")]
    assert tables[0] == tables[1]
    assert tables[1]["prototype_activations"]["rows"] == 15
    assert sorted(p.name for p in (killed / "activations").iterdir())[0] == "part-00000.parquet"


def test_a_shard_that_lost_bytes_is_not_done(house: Path):
    """A crash of the machine may truncate what the process had written."""
    writer = create(house / "cache" / "r")
    writer.write_shard("prototype_activations", 0, activations(0))
    assert writer.shard_done("prototype_activations", 0)
    file = house / "cache" / "r" / "activations" / "part-00000.parquet"
    file.write_bytes(file.read_bytes()[:-1])
    assert not writer.shard_done("prototype_activations", 0)


def test_a_run_of_other_settings_is_never_overwritten(house: Path):
    """Equal identity is reuse; anything else needs another name."""
    path = house / "cache" / "r"
    create(path)
    create(path)
    with pytest.raises(CacheStale, match="other settings"):
        create(path, config={"seed": 4})


def test_the_folder_of_a_model_is_no_place_for_a_run(tmp_path: Path):
    """Afterwards nobody could load the model."""
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ConfigError, match="holds a model"):
        RunWriter.create(tmp_path, name="r", kind="prism", identity={})
    assert [path.name for path in tmp_path.iterdir()] == ["config.json"]


def test_a_stage_of_another_identity_starts_anew(house: Path):
    """Shards of another index configuration are not mixed in."""
    path = house / "cache" / "r"
    writer = create(path)
    writer.begin_stage("index", {"bins": 3})
    writer.write_shard("prototype_activations", 0, activations(0))
    writer.finish_stage("index", {})
    assert RunWriter.resume(path).begin_stage("index", {"bins": 3}) is True
    again = RunWriter.resume(path)
    assert again.begin_stage("index", {"bins": 5}) is False
    assert not again.shard_done("prototype_activations", 0)
    again.write_shard("prototype_activations", 1, activations(0))
    assert not store.open_run("r").has("prototype_activations")
    again.finish_stage("index", {})
    assert [file.name for file in (path / "activations").iterdir()] == ["part-00001.parquet"]


def test_a_stage_that_fails_before_its_first_table_leaves_the_run_as_it_was(house: Path):
    """Its settings were others, or its inputs were not there: what was finished is still read."""
    path = house / "cache" / "r"
    writer = create(path)
    writer.begin_stage("index", {"bins": 3})
    writer.write_shard("prototype_activations", 0, activations(0))
    writer.finish_stage("index", {})
    before = {file.name: file.read_bytes() for file in path.iterdir() if file.is_file()}
    assert RunWriter.resume(path).begin_stage("index", {"bins": 5}) is False
    assert {f.name: f.read_bytes() for f in path.iterdir() if f.is_file()} == before
    assert RunWriter.resume(path).begin_stage("index", {"bins": 3}) is True
    assert store.check_run(store.open_run("r")) == []


def test_a_later_stage_keeps_the_tables_of_an_earlier_one(house: Path):
    """Training and index share one manifest."""
    path = house / "cache" / "r"
    writer = create(path)
    writer.begin_stage("train", 1)
    writer.write_table("prototype_neighbours", NEIGHBOURS)
    writer.finish_stage("train", {})
    second = RunWriter.resume(path)
    second.begin_stage("index", 1)
    second.write_shard("prototype_activations", 0, activations(0))
    assert store.check_run(store.open_run("r")) == [
        "Stage index is unfinished; `headwater index --run r` resumes it."
    ]
    second.update("model", {"n_parameters": 7})
    second.finish_stage("index", {})
    run = store.open_run("r")
    assert set(run.tables) == {"prototype_neighbours", "prototype_activations"}
    assert run.manifest["model"] == {"n_parameters": 7}


def test_a_full_disk_loses_nothing_that_was_finished(house: Path, monkeypatch: pytest.MonkeyPatch):
    """The table before the failure stays readable, the one after is not there."""
    path = house / "cache" / "r"
    writer = create(path)
    writer.write_table("prototype_neighbours", NEIGHBOURS)
    writer.finish_stage("train", {})

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch, pytest.raises(StorageError):
        patch.setattr(os, "fsync", full)
        writer.write_shard("prototype_activations", 0, activations(0))
    run = store.open_run("r")
    assert store.check_run(run) == []
    assert len(store.read_table(run, "prototype_neighbours")) == 1


def test_a_refused_table_leaves_no_trace(house: Path):
    """The contract is checked before anything reaches the disk."""
    writer = create(house / "cache" / "r")
    with pytest.raises(SchemaMismatch):
        writer.write_shard("prototype_activations", 0, activations(0) | {"rank": [-1] * 5})
    assert not writer.shard_done("prototype_activations", 0)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda w: w.write_table("prototype_activations", {}), "write_shard"),
        (lambda w: w.write_shard("prototypes", 0, {}), "write_table"),
        (lambda w: w.write_table("nothing", {}), "no table called"),
        (lambda w: w.update("tables", {}), "store alone"),
    ],
)
def test_a_misuse_of_the_writer_is_named(house: Path, call, sentence: str):
    """The writer refuses what would break its own manifest."""
    with pytest.raises(ConfigError, match=sentence):
        call(create(house / "cache" / "r"))


def test_only_a_run_can_be_resumed(house: Path):
    """A folder that is none, or of another schema, is refused."""
    with pytest.raises(CacheMissing):
        RunWriter.resume(house / "cache" / "r")
    create(house / "cache" / "r")
    draft = store.read_json(house / "cache" / "r" / "run.partial.json")
    store.write_json_atomic(
        house / "cache" / "r" / "run.partial.json", draft | {"schema_version": 0}
    )
    with pytest.raises(CacheStale, match="schema version 0"):
        RunWriter.resume(house / "cache" / "r")
