"""One command of the engine in the background of a run: start, look, stop; shared by sessions.

What is known of it lies in a folder beside the tables of the run, so that every session, and a
server that was started anew, sees the same. A lock keeps two sessions from starting two.
"""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, cast

import psutil

from engine.config import PROJECT_ROOT
from engine.errors import CacheMissing, CacheStale, ConfigError
from engine.store import read_json, write_json_atomic


try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

State = Literal["running", "finished", "stopped", "failed"]
FOLDER = ".background"
LOG_CHARACTERS = 6000
"""End of the log that is read."""
STOPPED = 130
"""Exit code of a command that was stopped by Ctrl-C."""
_PROGRESS = re.compile(r"(?P<label>[^:\n]+): (?P<done>[\d,]+) of (?P<total>[\d,]+)")
_STAMP = re.compile(r"^\d\d:\d\d:\d\d ")
_children: dict[int, "subprocess.Popen[bytes]"] = {}
"""Processes of this server, kept so that an ended one is told from a running one."""


@dataclass(frozen=True)
class Work:
    """A command that was started."""

    arguments: tuple[str, ...]
    """Behind `headwater`."""
    label: str
    """What it is about, in words."""
    pid: int
    created: float
    """Time the process was made, by which its number is told from that of a later one."""
    started: float
    """Seconds since the epoch."""


@dataclass(frozen=True)
class Status:
    """How a command stands."""

    work: Work
    state: State
    log: str
    """End of what it said."""
    done: int | None = None
    total: int | None = None
    """Progress of its last loop; None where none was reported."""
    step: str = ""
    """What that loop does."""
    seconds: float = 0.0
    """Since it was started; of an ended one, until it ended."""

    @property
    def since_end(self) -> float:
        """Seconds since it ended; 0 while it runs."""
        return max(0.0, time.time() - self.work.started - self.seconds)

    @property
    def sentence(self) -> str:
        """The last line that it said."""
        lines = [line.strip() for line in self.log.splitlines() if line.strip()]
        return _STAMP.sub("", lines[-1]) if lines else ""


def start(run: Path, arguments: Sequence[str], label: str) -> Work:
    """Start a command, unless one runs on this run already.

    Args:
        run: Folder of the run.
        arguments: What stands behind `headwater`.
        label: What it is about.

    Raises:
        ConfigError: Another command runs, or the folder is closed to us.
    """
    folder = run / FOLDER
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise ConfigError(f"{run} is closed to us ({error.strerror}); copy the run.") from error
    with _locked(folder):
        before = look(run)
        if before is not None and before.state == "running":
            raise ConfigError(
                f"{before.work.label} is being worked on in this run; wait for it or stop it."
            )
        (folder / "end.json").unlink(missing_ok=True)
        command = [sys.executable, "-m", "dashboard.background_runner", str(folder / "end.json")]
        with (folder / "log.txt").open("wb") as log:
            process = subprocess.Popen(
                [*command, *arguments],
                cwd=PROJECT_ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )
        _children[process.pid] = process
        created = psutil.Process(process.pid).create_time()
        work = Work(tuple(arguments), label, process.pid, created, time.time())
        write_json_atomic(folder / "work.json", asdict(work))
        return work


def look(run: Path) -> Status | None:
    """How the last command of a run stands; None where there was none.

    Args:
        run: Folder of the run.
    """
    folder = run / FOLDER
    try:
        known = read_json(folder / "work.json")
        work = Work(**{**known, "arguments": tuple(known["arguments"])})
    except (CacheMissing, CacheStale, TypeError, KeyError):
        return None
    log = _end_of(folder / "log.txt")
    done, total, step = _progress(log)
    alive = _alive(work)
    state: State = "running" if alive else _ended(folder)
    end = time.time() if alive else _time_of(folder, work)
    return Status(work, state, log, done, total, step, max(0.0, end - work.started))


def stop(run: Path, *, at_once: bool = False) -> None:
    """Stop the command of a run as Ctrl-C would; it can be gone on with.

    Args:
        run: Folder of the run.
        at_once: End it without asking, where it does not stop by itself.
    """
    found = look(run)
    if found is None or found.state != "running":
        return
    gently = getattr(signal, "SIGINT", signal.SIGTERM)
    try:
        os.kill(found.work.pid, signal.SIGTERM if at_once or os.name == "nt" else gently)
    except ProcessLookupError:
        return


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder; another session that starts a command waits."""
    if fcntl is None:
        yield
        return
    with (folder / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _alive(work: Work) -> bool:
    child = _children.get(work.pid)
    if child is not None and child.poll() is not None:
        _children.pop(work.pid, None)
        return False
    try:
        process = psutil.Process(work.pid)
        same = abs(process.create_time() - work.created) < 1.0
        return same and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _ended(folder: Path) -> State:
    """How a command ended: one that left no word was stopped from outside."""
    try:
        code = int(read_json(folder / "end.json")["code"])
    except (CacheMissing, CacheStale, KeyError, TypeError, ValueError):
        return "stopped"
    return cast("State", {0: "finished", STOPPED: "stopped"}.get(code, "failed"))


def _time_of(folder: Path, work: Work) -> float:
    for name in ("end.json", "log.txt"):
        try:
            return (folder / name).stat().st_mtime
        except OSError:
            continue
    return work.started


def _end_of(path: Path) -> str:
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - LOG_CHARACTERS))
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""


def _progress(log: str) -> tuple[int | None, int | None, str]:
    """The last progress line of a log."""
    found: re.Match[str] | None = None
    for line in log.splitlines():
        found = _PROGRESS.search(_STAMP.sub("", line)) or found
    if found is None:
        return None, None, ""
    done, total = (int(found[name].replace(",", "")) for name in ("done", "total"))
    return done, total, found["label"].strip()
