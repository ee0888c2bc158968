"""Array files: appended to, cut to what is known, published whole, mapped, checked."""

import json
from pathlib import Path

import numpy as np
import pytest

from engine import store
from engine.errors import CacheMissing, CacheStale, StorageError
from engine.store import ArrayFiles, ArraySpec, RunWriter, check_run, open_array, open_run
from tests.assertions import assert_plain_sentence


SPECS = {
    "wide": ArraySpec(np.int8, (7, 5)),
    "flat": ArraySpec(np.uint32, (3,)),
    "real": ArraySpec(np.float32, (7, 2)),
}


def values() -> dict[str, np.ndarray]:
    generator = np.random.default_rng(0)
    return {
        "wide": generator.integers(-9, 9, (7, 5)).astype(np.int8),
        "flat": np.arange(3, dtype=np.uint32),
        "real": generator.normal(size=(7, 2)).astype(np.float32),
    }


def write_run(path: Path, stage: str = "attribution") -> Path:
    writer = RunWriter.create(path, name="r", kind="prism", identity={})
    writer.begin_stage(stage, {})
    files = ArrayFiles(writer.array_folder("attribution"), SPECS)
    files.keep({})
    files.append(values())
    writer.register_arrays("attribution", SPECS)
    writer.finish_stage(stage, {})
    return path


def test_rows_added_piece_by_piece_are_the_file_numpy_writes(tmp_path: Path):
    """Header and bytes are those of `np.save` on the whole."""
    files = ArrayFiles(tmp_path / "a", SPECS)
    assert files.keep({})
    whole = values()
    files.append({"wide": whole["wide"][:2], "real": whole["real"][:2]})
    files.append({"wide": whole["wide"][2:], "real": whole["real"][2:], "flat": whole["flat"]})
    for name, expected in whole.items():
        np.save(tmp_path / "b.npy", expected)
        assert files.path(name).read_bytes() == (tmp_path / "b.npy").read_bytes()


def test_a_stopped_write_goes_on_behind_the_rows_that_are_known(tmp_path: Path):
    """What a kill left behind them is cut off."""
    files, whole = ArrayFiles(tmp_path, SPECS), values()
    files.keep({})
    files.append({"wide": whole["wide"][:4]})
    again = ArrayFiles(tmp_path, SPECS)
    assert again.keep({"wide": 3})
    again.append({"wide": whole["wide"][3:], "real": whole["real"], "flat": whole["flat"]})
    assert np.array_equal(np.load(files.path("wide")), whole["wide"])


@pytest.mark.parametrize("damage", [b"", b"no header at all, but long enough to be one" * 9])
def test_files_that_hold_less_than_they_should_are_begun_anew(tmp_path: Path, damage: bytes):
    """The stage then stores everything again."""
    files = ArrayFiles(tmp_path, SPECS)
    files.keep({})
    files.append({"wide": values()["wide"][:4]})
    files.path("wide").write_bytes(damage)
    assert not files.keep({"wide": 3})
    files.append(values())
    assert np.array_equal(np.load(files.path("wide")), values()["wide"])


def test_an_array_is_mapped_and_cannot_be_written(tmp_path: Path):
    """A pool of gigabytes is opened at once."""
    run = open_run(write_run(tmp_path / "r"))
    for name, expected in values().items():
        found = open_array(run, "attribution", name)
        assert isinstance(found, np.memmap)
        assert not found.flags.writeable
        assert np.array_equal(found, expected)
    assert check_run(run) == []


def test_what_is_damaged_is_refused_and_found_by_check(tmp_path: Path):
    """Cut short, changed, gone, or outside the folder: a sentence that names the command."""
    path = write_run(tmp_path / "r")
    file = path / "attribution" / "wide.npy"
    whole = file.read_bytes()
    file.write_bytes(whole[:-1])
    run = open_run(path)
    with pytest.raises(CacheStale, match="headwater attribution-index --run r") as caught:
        open_array(run, "attribution", "wide")
    assert_plain_sentence(str(caught.value))
    assert ["bytes instead of" in problem for problem in check_run(run)] == [True]
    file.write_bytes(whole[:-1] + b"\x55")
    assert check_run(run, deep=False) == []
    assert ["hash differs" in problem for problem in check_run(run)] == [True]
    file.unlink()
    assert ["is missing" in problem for problem in check_run(run)] == [True]
    manifest = json.loads((path / "run.json").read_text())
    manifest["arrays"]["attribution"]["files"][0]["path"] = "../flat.npy"
    (path / "run.json").write_text(json.dumps(manifest))
    assert any("outside its folder" in problem for problem in check_run(open_run(path)))
    manifest["arrays"]["attribution"]["files"][0]["path"] = 3
    (path / "run.json").write_text(json.dumps(manifest))
    with pytest.raises(CacheStale, match="its `arrays` do not list files"):
        open_run(path)


def test_pickled_objects_are_never_loaded(tmp_path: Path):
    """A file of the right size that holds a pickle is refused."""
    path = write_run(tmp_path / "r")
    file = path / "attribution" / "wide.npy"
    np.save(file, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    manifest = json.loads((path / "run.json").read_text())
    for entry in manifest["arrays"]["attribution"]["files"]:
        if entry["path"].endswith("wide.npy"):
            entry["bytes"] = file.stat().st_size
    (path / "run.json").write_text(json.dumps(manifest))
    with pytest.raises(CacheStale, match="is no array file"):
        open_array(open_run(path), "attribution", "wide")


def test_a_stage_of_new_settings_withdraws_its_arrays_first(tmp_path: Path):
    """Readers never see arrays that are about to be replaced; those of other stages stay."""
    path = write_run(tmp_path / "r")
    writer = RunWriter.resume(path)
    writer.begin_stage("index", {"other": 1})
    assert "attribution" in open_run(path).arrays
    writer.begin_stage("attribution", {"other": 1})
    assert "attribution" in open_run(path).arrays
    writer.array_folder("attribution")
    assert open_run(path).arrays == {}
    with pytest.raises(CacheMissing, match="has no array wide"):
        open_array(open_run(path), "attribution", "wide")


def test_a_full_disk_is_said_in_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Not as a traceback, and not by a killed process."""

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    files = ArrayFiles(tmp_path, SPECS)
    files.keep({})
    monkeypatch.setattr("engine.store.arrays.os.fsync", full)
    with pytest.raises(StorageError, match="disk is full"):
        files.append(values())
    monkeypatch.setattr("engine.store.arrays.os.truncate", full)
    with pytest.raises(StorageError, match="disk is full"):
        files.keep({})


def test_the_store_names_what_it_offers():
    """The functions are found in the package."""
    assert {"ArrayFiles", "ArraySpec", "open_array"} <= set(store.__all__)
