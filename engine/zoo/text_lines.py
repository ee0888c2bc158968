"""Real text of three kinds, read from packages that are installed wherever the engine runs.

Only files of the interpreter and of packages the engine depends on are read; nothing is fetched.
The lines differ with the versions installed, so whoever caches what was made from them keeps their
fingerprint.
"""

import sysconfig
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.metadata import distribution
from pathlib import Path

from engine.errors import PackageMissing


TEXT_KINDS = ("python", "licence", "prose")
"""Kinds of real text: program lines, legal text, descriptions in English."""
LINES_OF_A_KIND = 400
"""Lines kept of each kind, evenly spread over what was found."""
_MODULES = ("argparse.py", "ast.py", "calendar.py", "dataclasses.py", "statistics.py")
_LICENSED = ("numpy", "scipy", "pandas", "transformers", "torch")
_SHORTEST, _LONGEST = 24, 88


@cache
def text_lines(kind: str) -> tuple[str, ...]:
    """Lines of one kind: printable ASCII, 24 to 88 characters, without surrounding space.

    Raises:
        PackageMissing: too little of the kind is installed.
    """
    found = list(dict.fromkeys(_usable(_READERS[kind]())))
    if len(found) < LINES_OF_A_KIND:
        raise PackageMissing(
            f"Only {len(found)} lines of {kind} text are installed and the zoo needs "
            f"{LINES_OF_A_KIND}; install the project's dependencies again."
        )
    return tuple(found[i * len(found) // LINES_OF_A_KIND] for i in range(LINES_OF_A_KIND))


def _usable(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        for line in text.splitlines():
            bare = " ".join(line.split())
            if _SHORTEST <= len(bare) <= _LONGEST and bare.isascii() and bare.isprintable():
                yield bare


def _python() -> Iterator[str]:
    root = Path(sysconfig.get_paths()["stdlib"])
    for name in _MODULES:
        yield (root / name).read_text(encoding="utf-8")


def _licences() -> Iterator[str]:
    for name in _LICENSED:
        for file in sorted(distribution(name).files or (), key=str):
            if file.name.upper().startswith(("LICENSE", "LICENCE")):
                yield Path(str(file.locate())).read_text(encoding="utf-8", errors="ignore")


def _prose() -> Iterator[str]:
    files = [f for f in distribution("scikit-learn").files or () if "datasets/descr" in str(f)]
    for file in sorted(files, key=str):
        if file.suffix == ".rst":
            yield Path(str(file.locate())).read_text(encoding="utf-8", errors="ignore")


_READERS = {"python": _python, "licence": _licences, "prose": _prose}
