"""`check` finds every kind of damage and nothing in a whole run."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine import store
from engine.schema import TABLES
from tests.assertions import assert_plain_sentence


def test_a_whole_run_has_no_problem(synthetic_path: Path):
    """Every table of the contract is in it."""
    run = store.open_run(synthetic_path)
    assert set(run.tables) == set(TABLES)
    assert store.check_run(run) == []


def flip_a_byte(path: Path, manifest: dict[str, Any]) -> None:
    file = path / "prototypes.parquet"
    data = bytearray(file.read_bytes())
    data[len(data) // 3] ^= 0xFF
    file.write_bytes(data)


def truncate(path: Path, manifest: dict[str, Any]) -> None:
    file = path / "activations" / "part-00001.parquet"
    file.write_bytes(file.read_bytes()[:-30])


def remove_a_shard(path: Path, manifest: dict[str, Any]) -> None:
    (path / "activations" / "part-00001.parquet").unlink()


def miscount(path: Path, manifest: dict[str, Any]) -> None:
    manifest["tables"]["documents"]["rows"] += 1


def repeat_a_shard(path: Path, manifest: dict[str, Any]) -> None:
    entry = manifest["tables"]["prototype_activations"]
    entry["files"].append(entry["files"][0])
    entry["rows"] += entry["files"][0]["rows"]


def cut_the_prototypes(path: Path, manifest: dict[str, Any]) -> None:
    frame = store.read_table(store.open_run(path), "prototypes", limit=50)
    writer = store.RunWriter.resume(path)
    writer.write_table("prototypes", frame)
    writer.finish_stage("index", {})
    manifest.update(store.read_json(path / "run.json"))


def name_an_unknown_table(path: Path, manifest: dict[str, Any]) -> None:
    manifest["tables"]["secrets"] = {"rows": 0, "files": []}


def point_outside(path: Path, manifest: dict[str, Any]) -> None:
    manifest["tables"]["coverage"]["files"][0]["path"] = "../../secret.parquet"


def swap_the_model(path: Path, manifest: dict[str, Any]) -> None:
    (path / "model" / "config.json").write_text("{}")
    manifest["model"]["fingerprint"] = "0" * 16


def lose_the_model(path: Path, manifest: dict[str, Any]) -> None:
    manifest["model"]["fingerprint"] = "0" * 16


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (flip_a_byte, "prototypes"),
        (truncate, "bytes instead of"),
        (remove_a_shard, "part-00001.parquet is missing"),
        (miscount, "rows instead of"),
        (repeat_a_shard, "repeats a key across its files"),
        (cut_the_prototypes, "and prototypes has 50 rows"),
        (name_an_unknown_table, "secrets"),
        (point_outside, "outside its folder"),
        (swap_the_model, "is not the one the tables were made with"),
        (lose_the_model, "is missing"),
    ],
)
def test_each_damage_is_found_and_named(
    synthetic_run: Path, damage: Callable[[Path, dict[str, Any]], None], sentence: str
):
    """Exit code 0 of `headwater check` means whole."""
    manifest = store.read_json(synthetic_run / "run.json")
    damage(synthetic_run, manifest)
    store.write_json_atomic(synthetic_run / "run.json", manifest)
    problems = store.check_run(store.open_run("synthetic"))
    assert any(sentence in problem for problem in problems), problems
    for problem in problems:
        assert_plain_sentence(problem)


def test_shards_whose_keys_interleave_are_whole(synthetic_run: Path):
    """Shards may overlap in range as long as no key repeats."""
    run = store.open_run(synthetic_run)
    run.tables["prototype_activations"]["files"].reverse()
    assert store.check_run(run) == []


def test_an_empty_table_is_whole(synthetic_run: Path):
    """A run whose prototypes never fired has no example; its largest document is no number."""
    writer = store.RunWriter.resume(synthetic_run)
    examples = store.read_table(store.open_run(synthetic_run), "prototype_examples", limit=1)
    writer.write_table("prototype_examples", examples.iloc[:0])
    writer.finish_stage("index", {})
    assert store.check_run(store.open_run(synthetic_run)) == []
