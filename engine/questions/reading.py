"""Read a question set by its name, its file or its place on a hub."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from engine.errors import ConfigError
from engine.questions.packaged import PACKAGED_SETS, json_lines, packaged_rows
from engine.questions.question import QuestionSet, choose_items, question_set


HUB = "hub:"
"""What a set of the hub starts with: `hub:OWNER/NAME[/CONFIG][@SPLIT]`."""
LINE_SUFFIXES = (".jsonl", ".ndjson")
MEAN = "mean"
"""What tables call the mean over sets; no set may bear that name."""
_DEFAULT_SPLIT = "validation"


def parse_sets(text: str) -> list[str]:
    """Names of `mmlu,siqa`, without repetition.

    Raises:
        ConfigError: A name is empty, unknown or taken, or two sets would bear the same one.
    """
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if not _is_known(name):
            raise ConfigError(
                f"There is no question set {name!r}; there are {', '.join(PACKAGED_SETS)}, "
                f"a file that ends in .jsonl, and {HUB}OWNER/NAME[/CONFIG][@SPLIT]."
            )
    names = list(dict.fromkeys(names))
    short = [set_name(name) for name in names]
    if MEAN in short:
        raise ConfigError(f"A set may not be called {MEAN!r}, the mean over sets; rename the file.")
    twice = next((name for name in short if short.count(name) > 1), None)
    if twice is not None:
        raise ConfigError(f"Two of the sets are called {twice!r}; rename one of the files.")
    return names


def _is_known(name: str) -> bool:
    return (
        name in PACKAGED_SETS or name.startswith(HUB) or Path(name).suffix.lower() in LINE_SUFFIXES
    )


def set_name(reference: str) -> str:
    """What a set is called in tables: its short name, the stem of its file, its id on the hub."""
    if reference in PACKAGED_SETS:
        return reference
    if reference.startswith(HUB):
        return reference.removeprefix(HUB)
    return Path(reference).stem


def read_sets(references: list[str], items: int | None = None) -> list[QuestionSet]:
    """Every set, each cut to `items` questions."""
    return [choose_items(read_set(reference), items) for reference in references]


def read_set(reference: str) -> QuestionSet:
    """A set by its short name, its JSONL file or its place on the hub.

    Raises:
        PackageMissing: The package that holds it is not here.
        ConfigError: There is no such set or file, or nothing in it is an answered question.
    """
    parse_sets(reference)
    name = set_name(reference)
    if reference in PACKAGED_SETS:
        return question_set(name, packaged_rows(reference))
    if reference.startswith(HUB):
        return question_set(name, _hub_rows(reference))
    return question_set(name, _file_rows(Path(reference)))


def _file_rows(path: Path) -> Iterator[Any]:
    try:
        lines = path.read_text(encoding="utf-8-sig", errors="replace").splitlines()
    except OSError as error:
        raise ConfigError(
            f"The question file {path} cannot be read ({error.strerror}); name a JSONL file with "
            "a question, options and an answer a line."
        ) from error
    yield from json_lines(lines)


def _hub_rows(reference: str) -> Iterator[Any]:
    """Rows of a dataset; whatever the library raises becomes one sentence."""
    from datasets import load_dataset  # imported here: it takes seconds

    place, _, split = reference.removeprefix(HUB).partition("@")
    parts = place.split("/")
    name, config = "/".join(parts[:2]), "/".join(parts[2:]) or None
    try:
        yield from load_dataset(name, config, split=split or _DEFAULT_SPLIT, streaming=True)
    except Exception as error:
        reason = str(error).strip().split("\n")[0][:200] or type(error).__name__
        raise ConfigError(
            f"The question set {reference} cannot be read ({reason}). Check its id, its "
            "configuration, its split and the connection."
        ) from error
