"""Rows are added to a finished table in files of their own; what was there stays as it was."""

import pytest

from engine import store
from engine.errors import CacheMissing, SchemaMismatch
from engine.store import RunWriter, read_table


TABLE = "prototype_neighbours"


def row(prototype, rank=0):
    return {"prototype": [prototype], "rank": [rank], "neighbour": [1], "cosine": [0.5]}


@pytest.fixture
def run(house):
    """A finished run of one small table."""
    path = house / "cache" / "r"
    writer = RunWriter.create(path, name="A run", kind="prism", identity={"seed": 3})
    writer.begin_stage("index", 1)
    writer.write_table(TABLE, row(0))
    writer.finish_stage("index", {})
    return path


def add(path, part, frame, stage="add"):
    writer = RunWriter.resume(path)
    writer.begin_stage(stage, part)
    writer.append_rows(TABLE, part, frame)
    return writer


def test_added_rows_are_read_with_the_others_whose_file_is_untouched(run):
    """A model that joins a map must not move the bytes of any other."""
    before = (run / f"{TABLE}.parquet").read_bytes()
    add(run, "one", row(2)).finish_stage("add", {})
    add(run, "two", row(5)).finish_stage("add", {})
    opened = store.open_run(run)
    assert read_table(opened, TABLE)["prototype"].tolist() == [0, 2, 5]
    assert opened.tables[TABLE]["rows"] == 3
    assert opened.tables[TABLE]["stage"] == "index"
    assert (run / f"{TABLE}.parquet").read_bytes() == before
    assert store.check_run(opened) == []


def test_added_rows_are_unseen_until_the_stage_is_finished(run):
    """A call killed in between leaves the run as it was, and the same call again ends it."""
    add(run, "one", row(2))
    assert read_table(store.open_run(run), TABLE)["prototype"].tolist() == [0]
    add(run, "one", row(2)).finish_stage("add", {})
    assert read_table(store.open_run(run), TABLE)["prototype"].tolist() == [0, 2]


def test_a_table_written_anew_forgets_the_files_of_added_rows(run):
    """A map embedded again holds the added model in its own table; the old file goes."""
    add(run, "one", row(2)).finish_stage("add", {})
    writer = RunWriter.resume(run)
    writer.begin_stage("index", 2)
    writer.write_table(
        TABLE, {name: 2 * column for name, column in row(0).items()} | {"rank": [0, 1]}
    )
    writer.finish_stage("index", {})
    assert len(read_table(store.open_run(run), TABLE)) == 2
    assert not list(run.glob("added/*/*.parquet"))
    assert store.check_run(store.open_run(run)) == []


def test_a_key_added_twice_is_found_by_the_check(run):
    """Nothing else would notice a model that is on the map twice."""
    add(run, "one", row(0)).finish_stage("add", {})
    assert any("repeats a key" in problem for problem in store.check_run(store.open_run(run)))


def test_what_cannot_be_added_is_said(run):
    """A table that is not there, and rows that break its contract."""
    writer = RunWriter.resume(run)
    writer.begin_stage("add", 1)
    with pytest.raises(CacheMissing, match="no table prototypes"):
        writer.append_rows("prototypes", "one", {})
    with pytest.raises(SchemaMismatch):
        writer.append_rows(TABLE, "one", {"prototype": [0]})
