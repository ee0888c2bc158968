"""kill -9 at any moment, then the same command: identical files."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest


_BUILD = """
import sys
from pathlib import Path
from engine.config import CorpusConfig
from engine.corpus.build import build_corpus
from engine.corpus.shards import tokenise_corpus
from engine.corpus.tokenizer import corpus_tokenizer, load_tokenizer

root = Path(sys.argv[1])
(root / "started").touch()
corpus = build_corpus(CorpusConfig(preset="tiny"), root)
shards = tokenise_corpus(corpus, load_tokenizer(corpus_tokenizer(corpus, 401)))
(root / "done").touch()
"""


@pytest.mark.slow
def test_a_killed_build_ends_with_the_same_files(tmp_path: Path) -> None:
    """Killed after ever longer times, until one run reaches its end; then compared byte by byte."""
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    for folder in (whole, killed):
        folder.mkdir()
    seconds = _run(whole)
    assert seconds is not None
    kills = 0
    for attempt in range(1, 16):
        kills += _run(killed, kill_after=seconds * attempt / 16) is None
    _run(killed)
    assert kills >= 3, kills
    assert _bytes_of(killed) == _bytes_of(whole)
    assert list((killed / "tiny" / "domains").glob(".*")) == []


def _run(root: Path, kill_after: float | None = None) -> float | None:
    """Seconds from the start of the work to its end; None when it was killed before."""
    for mark in ("started", "done"):
        (root / mark).unlink(missing_ok=True)
    process = subprocess.Popen([sys.executable, "-c", _BUILD, str(root)])
    while not (root / "started").exists() and process.poll() is None:
        time.sleep(0.01)
    start = time.monotonic()
    if kill_after is not None:
        time.sleep(kill_after)
        os.kill(process.pid, signal.SIGKILL)
    process.wait()
    return time.monotonic() - start if (root / "done").exists() else None


def _bytes_of(root: Path) -> dict[str, bytes]:
    """Content of every file but marks and what killed runs left half-written."""
    files = [p for p in (root / "tiny").rglob("*") if p.is_file() and not p.name.startswith(".")]
    return {p.relative_to(root).as_posix(): p.read_bytes() for p in files}
