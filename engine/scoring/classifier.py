"""The offline classifier: alt-profanity-check, in a process of its own.

The package keeps its weights in pickles. They are opened only in a child process, and only when
every file of the package has the hash that was read and pinned here.
"""

import importlib.util
import json
import subprocess
import sys
import threading
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from engine.errors import EngineError, PackageMissing
from engine.provenance import file_sha256


PACKAGE = "profanity_check"
VERSION = "1.9.1"
PINNED = {
    "__init__.py": "cb7428e18668a31b3f89bf25308e0fdcf441a53932347d9ea8d214b37398891e",
    "profanity_check.py": "c0073c6cc5e108067dc5fb2521c4d13d9aa4b04449e6a4ff30ef4477473afc05",
    "data/model.joblib": "aeafc04849d4d93db4721cf30a86ebf22085595294b8a07d51918e7fa98f538b",
    "data/vectorizer.joblib": "19c5200dc6a41f026e0558e2f164f5fe8d8f58e502b46b37e4385037fcfa4831",
}
"""SHA-256 of the files the child imports or unpickles."""
INSTALL = f"pip install alt-profanity-check=={VERSION}"
_WORKER = Path(__file__).with_name("worker.py")


def package_folder() -> Path:
    """Folder of the installed package, found without importing it.

    Raises:
        PackageMissing: it is not installed.
    """
    spec = importlib.util.find_spec(PACKAGE)
    locations = list(spec.submodule_search_locations or ()) if spec is not None else []
    if not locations:
        raise PackageMissing(f"The scorer alt-profanity-check is not installed; run `{INSTALL}`.")
    return Path(locations[0])


def check_files(folder: Path) -> None:
    """Refuse a package of which one file differs from what was pinned.

    Raises:
        PackageMissing: names the file.
    """
    for name, pinned in PINNED.items():
        path = folder / name
        if not path.is_file() or file_sha256(path) != pinned:
            raise PackageMissing(
                f"{path} is not the file of alt-profanity-check {VERSION} whose SHA-256 is pinned, "
                f"so its weights are not opened; run `{INSTALL}`."
            )


class ProfanityClassifier:
    """Probability of unwanted content in [0, 1] by alt-profanity-check; safe across threads."""

    name = "classifier"
    meaning = "Probability of unwanted content by alt-profanity-check"

    def __init__(self) -> None:
        check_files(package_folder())
        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-W", "ignore", str(_WORKER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
        )
        self._close = weakref.finalize(self, _stop, self._process)
        answer = self._read()
        if "error" in answer:
            self.close()
            raise PackageMissing(
                f"The scorer alt-profanity-check cannot be used ({answer['error']}); run "
                f"`{INSTALL}`."
            )

    def score(self, texts: Sequence[str]) -> list[float]:
        """One probability a text; a text without a word scores as one without evidence does."""
        if not texts:
            return []
        clean = [text.encode(errors="replace").decode() for text in texts]
        with self._lock:
            stdin = self._process.stdin
            if stdin is None or self._process.poll() is not None:
                raise _stopped()
            stdin.write(json.dumps(clean) + "\n")
            stdin.flush()
            answer = self._read()
        return [float(value) for value in answer["scores"]]

    def close(self) -> None:
        """Stop the child."""
        self._close()

    def _read(self) -> dict[str, Any]:
        stdout = self._process.stdout
        line = stdout.readline() if stdout is not None else ""
        if not line:
            raise _stopped()
        return json.loads(line)


def _stopped() -> EngineError:
    return EngineError("The scorer's process stopped before it answered; try again.")


def _stop(process: "subprocess.Popen[str]") -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
    process.terminate()
    process.wait(timeout=10)
