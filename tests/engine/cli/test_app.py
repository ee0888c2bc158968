"""The command as a user types it: sentences, exit codes, JSON shapes, quick starts."""

import errno
import json
import subprocess
import sys

import pytest
from safetensors import SafetensorError
from typer.testing import CliRunner

from engine.cli import app as command
from engine.config import PROJECT_ROOT
from engine.errors import EngineError


def run(*arguments):
    return CliRunner().invoke(command.app, list(arguments))


COMMANDS = [
    ["corpus", "fetch"],
    ["corpus", "build"],
    ["corpus", "info"],
    ["train"],
    ["retrofit"],
    ["index"],
    ["study", "coverage"],
    ["study", "tradeoff"],
    ["suppress"],
    ["curvature"],
    ["decompose"],
    ["generate"],
    ["info"],
    ["check"],
    ["publish"],
    ["claims"],
    ["demo"],
    ["dashboard"],
]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_explains_itself(words):
    """`--help` works everywhere and opens with a sentence."""
    done = run(*words, "--help")
    assert done.exit_code == 0
    assert "Usage: " in done.output


@pytest.mark.parametrize(
    "words",
    [
        ["info", "--run", "nowhere"],
        ["check", "--run", "nowhere"],
        ["index", "--run", "nowhere"],
        ["decompose", "text", "--run", "nowhere"],
        ["generate", "text", "--run", "nowhere"],
        ["generate", "text", "--suppress", "1,x", "--run", "nowhere"],
        ["generate", "text", "--suppress", "1", "--concept", "NSFW"],
        ["info", "--run", "../../etc"],
        ["info", "--run", "a\0b"],
        ["train", "--corpus", "nowhere", "--run", "new"],
        ["train", "--n-heads", "5", "--dry-run"],
        ["publish", "--run", "nowhere", "--to", "copy"],
        ["corpus", "build", "nowhere"],
        ["corpus", "build", "--path", "/nowhere"],
        ["corpus", "info", "nowhere"],
        ["dashboard", "--run", "nowhere"],
        ["demo"],
    ],
    ids=" ".join,
)
@pytest.mark.usefixtures("house")
def test_what_a_user_can_cause_ends_in_one_sentence(words):
    """No traceback, one line that says what to do, a code that a script sees."""
    done = run(*words)
    assert done.exit_code == 2
    assert done.exception is None or isinstance(done.exception, SystemExit)
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert done.stderr.strip().endswith((".", "?"))


def failing(error):
    """The command with `info` replaced by one that fails."""

    def fail(*_, **__):
        raise error

    return fail


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (KeyboardInterrupt(), 130, "run the same command again to resume"),
        (EngineError("A sentence."), 2, "A sentence."),
        (OSError(errno.ENOSPC, "No space left on device", "/x"), 2, "disk is full"),
        (SafetensorError("I/O error: No space left on device"), 2, "disk is full"),
        (MemoryError(), 2, "memory is full"),
        (RuntimeError("CUDA out of memory. Tried to allocate 7 GiB"), 2, "memory is full"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), 2, "memory is full"),
        (OSError(errno.EROFS, "Read-only file system", "/x"), 2, "HEADWATER_CACHE"),
        (NotADirectoryError(errno.ENOTDIR, "Not a directory", "/dev/null/x"), 2, "HEADWATER_CACHE"),
    ],
)
def test_failures_become_sentences(monkeypatch, error, code, words):
    """Ctrl-C, a full disk and a closed folder are no defects of the program."""
    monkeypatch.setattr("engine.store.open_run", failing(error))
    done = run("info")
    assert done.exit_code == code
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_a_defect_surfaces(monkeypatch):
    """What a user cannot cause keeps its traceback."""
    for defect in (ZeroDivisionError("defect"), RuntimeError("defect")):
        monkeypatch.setattr("engine.store.open_run", failing(defect))
        assert run("info").exception is defect


def test_info_prints_the_manifest(synthetic_run):
    """A script reads what `run.json` holds, and where the run lies."""
    found = json.loads(run("info", "--run", "synthetic", "--json").stdout)
    assert found["run_id"] == "synthetic"
    assert found["path"] == str(synthetic_run)
    assert found["tables"]["prototypes"]["rows"] == 67


def test_info_lists_runs_and_names_broken_ones(synthetic_run):
    """A folder that cannot be opened is said, not hidden."""
    broken = synthetic_run.parent / "broken"
    broken.mkdir()
    (broken / "run.json").write_text("{")
    done = run("info", "--all")
    assert done.exit_code == 0
    assert "synthetic" in done.stdout
    assert "broken cannot be opened" in done.stdout


@pytest.mark.usefixtures("synthetic_run")
def test_a_whole_run_passes_its_check():
    """Exit code 0 says whole."""
    done = run("check", "--run", "synthetic")
    assert done.exit_code == 0, done.output


def test_a_truncated_table_fails_its_check(synthetic_run):
    """Exit code 1, and a sentence that names the file."""
    table = synthetic_run / "prototypes.parquet"
    table.write_bytes(table.read_bytes()[:-100])
    done = run("check", "--run", "synthetic", "--json")
    assert done.exit_code == 1
    found = json.loads(done.stdout)
    assert found["whole"] is False
    assert any("prototypes" in problem for problem in found["problems"])


def test_claims_print_the_rows_of_the_ledger():
    """The JSON is the ledger's rows, a list of objects with the contract's names."""
    rows = json.loads(run("claims", "--json").stdout)
    assert rows
    assert set(rows[0]) >= {"id", "criterion", "value", "holds", "evidence", "command"}
    table = run("claims").stdout
    assert "not measured or not comparable" in table


def test_a_dry_run_prints_the_resolved_settings_and_does_nothing(house):
    """They can be saved and given back with --config."""
    done = run("train", "--dry-run", "--steps", "17", "--weights-reconstruction", "0.5")
    settings = json.loads(done.stdout)
    assert settings["steps"] == 17
    assert settings["weights"]["reconstruction"] == 0.5
    assert [path for path in house.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("words", [["--help"], ["train", "--help"], ["claims"]], ids=" ".join)
def test_light_commands_start_without_torch(words):
    """Help and the ledger answer at once."""
    script = (
        "import sys\n"
        "from engine.cli.app import app\n"
        f"app({words!r}, standalone_mode=False)\n"
        "print([name for name in ('torch', 'transformers', 'streamlit') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=PROJECT_ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"
