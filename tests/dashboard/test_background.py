"""Commands in the background of a run: one at a time, seen by every session, stopped and ended."""

import json
import os
import time
from pathlib import Path

import pytest

from dashboard import background
from engine.errors import ConfigError


SECONDS = 60.0
"""Longest wait for a process of these tests."""


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package `engine` of our own that stands for the command: it prints, waits, ends as told."""
    root = tmp_path / "root"
    (root / "engine").mkdir(parents=True)
    (root / "dashboard").mkdir()
    runner = Path(background.__file__).with_name("background_runner.py")
    (root / "dashboard" / "__init__.py").write_text("")
    (root / "dashboard" / "background_runner.py").write_text(runner.read_text())
    (root / "engine" / "__init__.py").write_text("")
    (root / "engine" / "__main__.py").write_text(
        "import sys, time\n"
        "print('12:00:00 Attributing m: 3 of 7, 1/s, 4 s left', flush=True)\n"
        "if sys.argv[1] == 'wait':\n"
        "    time.sleep(100)\n"
        "if sys.argv[1] == 'fail':\n"
        "    print('It has no tokenizer.', flush=True)\n"
        "    raise SystemExit(2)\n"
    )
    monkeypatch.setattr(background, "PROJECT_ROOT", root)
    run = tmp_path / "run"
    run.mkdir()
    return run


def wait(run: Path, ready) -> background.Status:
    """The status once `ready` says so."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        found = background.look(run)
        if found is not None and ready(found):
            return found
        time.sleep(0.02)
    raise AssertionError(background.look(run))


def test_a_command_reports_and_ends(stand_in: Path):
    """Progress is read from its log, the end from what the runner leaves."""
    assert background.look(stand_in) is None
    background.start(stand_in, ("good",), "m")
    found = wait(stand_in, lambda s: s.state != "running")
    assert (found.state, found.done, found.total, found.step) == ("finished", 3, 7, "Attributing m")
    assert found.work.label == "m"
    assert json.loads((stand_in / background.FOLDER / "end.json").read_text()) == {"code": 0}


def test_a_command_that_fails_says_why(stand_in: Path):
    """The last line that it wrote."""
    background.start(stand_in, ("fail",), "m")
    found = wait(stand_in, lambda s: s.state != "running")
    assert (found.state, found.sentence) == ("failed", "It has no tokenizer.")


def test_one_command_runs_at_a_time_and_stops_as_by_ctrl_c(stand_in: Path):
    """Another session is told; what was stopped can be started again."""
    background.start(stand_in, ("wait",), "first")
    running = wait(stand_in, lambda s: s.done == 3)
    assert running.state == "running"
    with pytest.raises(ConfigError, match="first is being worked on"):
        background.start(stand_in, ("good",), "second")
    background.stop(stand_in)
    assert wait(stand_in, lambda s: s.state != "running").state == "stopped"
    background.start(stand_in, ("good",), "first")
    assert wait(stand_in, lambda s: s.state != "running").state == "finished"


def test_a_number_that_another_process_has_now_is_not_taken_for_it(stand_in: Path):
    """After a restart of the machine the number may be anybody's."""
    folder = stand_in / background.FOLDER
    folder.mkdir()
    work = {"arguments": ["x"], "label": "m", "pid": os.getpid(), "created": 1.0, "started": 1.0}
    (folder / "work.json").write_text(json.dumps(work))
    found = background.look(stand_in)
    assert found is not None
    assert found.state == "stopped"
    background.stop(stand_in)  # would end this test


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"arguments": ["x"]}'])
def test_a_damaged_file_is_no_command(stand_in: Path, text: str):
    """Nothing is shown, and a new one can be started."""
    folder = stand_in / background.FOLDER
    folder.mkdir()
    (folder / "work.json").write_text(text)
    assert background.look(stand_in) is None
