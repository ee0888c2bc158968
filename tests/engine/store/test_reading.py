"""Lazy reads agree with reading everything, and refuse what is not whole."""

import shutil
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from engine import store
from engine.errors import CacheMissing, CacheStale, ConfigError, SchemaMismatch
from engine.schema import TABLES
from tests.assertions import assert_plain_sentence


@pytest.fixture
def run(synthetic_path: Path) -> store.Run:
    return store.open_run(synthetic_path)


@pytest.mark.parametrize("table", list(TABLES))
def test_every_table_reads_with_the_columns_of_the_contract(run: store.Run, table: str):
    """Columns in the contract's order, as many rows as the manifest says."""
    frame = store.read_table(run, table)
    assert list(frame.columns) == [column.name for column in TABLES[table].columns]
    assert len(frame) == run.tables[table]["rows"] > 0


def test_a_filtered_read_equals_a_filter_of_the_whole(run: store.Run):
    """DuckDB against pandas, one value, a list and a long list."""
    whole = store.read_table(run, "prototype_activations")
    for wanted in (7, [3, 7, 11], np.arange(0, 66)):
        frame = store.read_table(run, "prototype_activations", where={"prototype": wanted})
        expected = whole[whole["prototype"].isin(np.atleast_1d(wanted))].reset_index(drop=True)
        pd.testing.assert_frame_equal(frame, expected)


def test_a_document_is_read_from_the_shards_that_hold_it(run: store.Run):
    """Every document, those that straddle two shards too; one that no shard holds is empty."""
    whole = store.read_table(run, "token_residuals")
    assert len(run.files("token_residuals")) > 2
    for document in range(int(whole["document"].max()) + 2):
        frame = store.read_table(run, "token_residuals", where={"document": document})
        expected = whole[whole["document"] == document]
        assert frame["position"].tolist() == expected["position"].tolist()


def test_conditions_are_joined_by_and(run: store.Run):
    """Two conditions keep what meets both; an empty list keeps nothing."""
    whole = store.read_table(run, "prototype_signatures")
    frame = store.read_table(run, "prototype_signatures", where={"prototype": 2, "side": "top"})
    expected = whole.query("prototype == 2 and side == 'top'")
    assert frame["token_id"].tolist() == expected["token_id"].tolist()
    assert store.read_table(run, "prototypes", where={"prototype": []}).empty


def test_an_empty_value_is_found_by_none(run: store.Run):
    """Not measured can be asked for."""
    before = store.read_table(run, "evaluations", where={"coverage_r1": None})
    assert before["step"].tolist() == [20, 40, 60, 80, 100]


def test_order_and_limit_take_the_largest_first_and_empty_values_last(run: store.Run):
    """A table on a page starts with what matters."""
    frame = store.read_table(
        run, "prototypes", columns=["label_score", "prototype"], order_by="label_score",
        descending=True, limit=5,
    )  # fmt: skip
    whole = store.read_table(run, "prototypes")["label_score"]
    assert list(frame.columns) == ["label_score", "prototype"]
    assert frame["label_score"].tolist() == whole.nlargest(5).tolist()


def test_values_are_parameters_and_names_are_checked(run: store.Run):
    """Text from a URL never becomes SQL."""
    evil = "'; DROP TABLE prototypes; --"
    assert store.read_table(run, "prototypes", where={"category": evil}).empty
    for call in (
        lambda: store.read_table(run, "prototypes", columns=[evil]),
        lambda: store.read_table(run, "prototypes", where={evil: 1}),
        lambda: store.read_table(run, "prototypes", order_by=evil),
        lambda: store.read_table(run, evil),
    ):
        with pytest.raises(ConfigError) as caught:
            call()
        assert_plain_sentence(str(caught.value))


def test_a_query_joins_tables_by_their_names(run: store.Run):
    """What `read_table` cannot say, one SELECT can."""
    frame = store.query(
        run,
        "SELECT d.domain, count(*) AS n FROM prototype_activations a "
        "JOIN documents d USING (document) WHERE a.prototype = ? GROUP BY ALL ORDER BY 1",
        [5],
    )
    expected = store.read_table(run, "prototype_domains", where={"prototype": 5})
    expected = expected[expected["n_active_tokens"] > 0]
    assert frame["n"].tolist() == expected["n_active_tokens"].tolist()


@pytest.mark.parametrize(
    "sql", ["DROP TABLE x", "SELECT 1; SELECT 2", "COPY (SELECT 1) TO 'x'", ""]
)
def test_a_query_is_one_select(run: store.Run, sql: str):
    """Reading cannot write."""
    with pytest.raises(ConfigError, match="one SELECT"):
        store.query(run, sql)


def test_a_table_the_run_does_not_hold_names_its_command(synthetic_run: Path):
    """An empty page shows the command that fills it."""
    manifest = store.read_json(synthetic_run / "run.json")
    for table in ("prototypes", "evaluations"):
        del manifest["tables"][table]
    store.write_json_atomic(synthetic_run / "run.json", manifest)
    run = store.open_run("synthetic")
    with pytest.raises(CacheMissing, match="`headwater index --run synthetic`"):
        store.read_table(run, "prototypes")
    with pytest.raises(CacheMissing, match="`headwater train --run synthetic`"):
        store.query(run, "SELECT * FROM evaluations")


def test_a_damaged_file_is_refused_with_the_command_that_makes_it(synthetic_run: Path):
    """Missing, truncated, and another file of the same size."""
    run = store.open_run("synthetic")
    file = synthetic_run / "prototypes.parquet"
    data = file.read_bytes()
    damages = (None, data[:-20], bytes(len(data)))
    for damage in damages:
        file.unlink()
        if damage is not None:
            file.write_bytes(damage)
        else:
            pass
        with pytest.raises(CacheStale) as caught:
            store.read_table(run, "prototypes")
        assert_plain_sentence(str(caught.value))
        if damage is None:
            file.write_bytes(data)


def test_a_file_of_another_table_is_refused(synthetic_run: Path):
    """The manifest may be right about the size and the file still be another."""
    run = store.open_run("synthetic")
    shutil.copy(synthetic_run / "coverage.parquet", synthetic_run / "prototypes.parquet")
    size = (synthetic_run / "coverage.parquet").stat().st_size
    run.tables["prototypes"]["files"][0]["bytes"] = size
    with pytest.raises(SchemaMismatch, match="headwater index"):
        store.read_table(run, "prototypes")


def test_an_empty_number_inside_a_list_is_no_zero(tmp_path: Path):
    """A score that is missing must not read as one that says nothing."""
    writer = store.RunWriter.create(tmp_path / "heads", name="heads", kind="heads", identity={})
    writer.begin_stage("influence", {})
    lists = [np.array([2.0, np.nan]), np.array([np.nan, -3.0]), np.array([5.0, 7.0])]
    key = {"seed": 0, "unit": "induction", "step": [11, 12, 13], "row": 0}
    writer.write_table("head_influence", pd.DataFrame({**key, "influence": lists}))
    writer.finish_stage("influence", {})
    found = store.read_table(store.open_run(tmp_path / "heads"), "head_influence")["influence"]
    np.testing.assert_array_equal(np.stack(found.to_list()), np.stack(lists))


def test_a_folder_with_pattern_characters_in_its_name_reads_its_own_files(
    synthetic_path: Path, tmp_path: Path
):
    """DuckDB takes `[`, `*`, `?` and quotes in a path for patterns unless told otherwise."""
    path = tmp_path / "it's [a] *run?"
    shutil.copytree(synthetic_path, path)
    assert len(store.read_table(store.open_run(path), "prototypes")) > 0


def test_threads_read_at_once(run: store.Run):
    """One connection, a cursor for each call: every session gets its own answer."""
    answers: dict[int, int] = {}

    def read(prototype: int) -> None:
        for _ in range(5):
            frame = store.query(
                run,
                "SELECT count(*) AS n FROM prototype_activations WHERE prototype = ?",
                [prototype],
            )
            answers[prototype] = int(frame["n"].iloc[0])

    threads = [threading.Thread(target=read, args=(i,)) for i in range(7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    counts = store.read_table(run, "prototypes")["n_active_tokens"]
    assert answers == {i: counts[i] for i in range(7)}
