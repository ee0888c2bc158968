"""Atomic files under failure."""

import errno
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from safetensors import SafetensorError

from engine import store
from engine.errors import CacheMissing, CacheStale, StorageError
from engine.store.files import scratch_folder
from tests.assertions import assert_plain_sentence


def test_a_failed_write_leaves_the_older_file_and_no_leftover(tmp_path: Path):
    """A half-written file is never seen under its own name."""
    path = tmp_path / "value.json"
    store.write_json_atomic(path, {"a": 1})
    with pytest.raises(RuntimeError), store.atomic_file(path) as file:
        file.write(b"half")
        raise RuntimeError
    assert store.read_json(path) == {"a": 1}
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int):
    """The user frees space and runs the same command again."""

    def full(_: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match="disk is full") as caught:
        store.write_bytes_atomic(tmp_path / "x.bin", b"0" * 1000)
    assert_plain_sentence(str(caught.value))
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_under_weights_is_one_sentence_and_leaves_nothing(tmp_path: Path):
    """The writer of weights raises an error of its own, which is no OSError."""
    message = "Error while serializing: I/O error: No space left on device (os error 28)"
    with (
        pytest.raises(StorageError, match="disk is full") as caught,
        store.atomic_folder(tmp_path / "step-1"),
    ):
        raise SafetensorError(message)
    assert_plain_sentence(str(caught.value))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("target", ["/dev/null/x/file", "/proc/file"])
def test_a_folder_that_cannot_be_written_is_named(target: str):
    """No traceback for a read-only folder."""
    with pytest.raises(StorageError, match="Cannot write") as caught:
        store.write_bytes_atomic(Path(target), b"x")
    assert_plain_sentence(str(caught.value))


def test_a_folder_is_replaced_as_a_whole(tmp_path: Path):
    """A model folder never mixes the files of two saves."""
    path = tmp_path / "model"
    for names in (("a", "b"), ("c",)):
        with store.atomic_folder(path) as folder:
            for name in names:
                (folder / name).write_text(name)
    assert [file.name for file in path.iterdir()] == ["c"]
    with pytest.raises(RuntimeError), store.atomic_folder(path) as folder:
        (folder / "d").write_text("d")
        raise RuntimeError
    assert [file.name for file in tmp_path.rglob("*")] == ["model", "c"]


def test_json_that_is_missing_or_damaged_says_so(tmp_path: Path):
    """Reading never returns a default after a failure."""
    with pytest.raises(CacheMissing):
        store.read_json(tmp_path / "none.json")
    (tmp_path / "bad.json").write_bytes(b"\xff\xfe{")
    with pytest.raises(CacheStale):
        store.read_json(tmp_path / "bad.json")


def test_leftovers_of_a_killed_process_are_removed(tmp_path: Path):
    """Only our own temporary names go."""
    (tmp_path / "part").mkdir()
    (tmp_path / "part" / ".x.parquet.tmp-0a1b2c3d").write_text("half")
    (tmp_path / ".model.tmp-0a1b2c3d").mkdir()
    (tmp_path / ".hidden").write_text("kept")
    store.remove_leftovers(tmp_path)
    assert sorted(p.name for p in tmp_path.rglob("*")) == [".hidden", "part"]


def test_what_a_running_process_writes_is_no_leftover(tmp_path: Path):
    """Two commands on one run: the second must not take the first one's file away."""
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    (tmp_path / f".x.parquet.tmp-{gone.pid}-0a1b2c3d").write_text("half")
    with store.atomic_file(tmp_path / "whole") as file:
        file.write(b"whole")
        store.remove_leftovers(tmp_path)
    assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [("whole", b"whole")]


def test_one_at_a_time_waits_for_the_other(tmp_path: Path):
    """Threads and processes alike."""
    order: list[str] = []

    def second() -> None:
        with store.one_at_a_time(tmp_path):
            order.append("second")

    with store.one_at_a_time(tmp_path):
        other = threading.Thread(target=second)
        other.start()
        other.join(0.2)
        order.append("first")
    other.join(10)
    assert order == ["first", "second"]


def test_scratch_of_a_killed_process_goes_and_that_of_a_running_one_stays(tmp_path: Path):
    """The lock tells them apart: the system drops it with the process."""
    (tmp_path / ".scratch-killed").mkdir()
    (tmp_path / ".scratch-killed" / "half").write_bytes(b"half")
    with scratch_folder(tmp_path, ".scratch-") as first:
        (first / "mine").write_bytes(b"mine")
        with scratch_folder(tmp_path, ".scratch-") as second:
            assert sorted(tmp_path.iterdir()) == sorted([first, second])
            assert (first / "mine").is_file()
    assert list(tmp_path.iterdir()) == []
