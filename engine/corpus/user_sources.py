"""Texts of one's own: a folder or file of text, JSONL or Parquet, or a streamed dataset."""

import codecs
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from engine import store
from engine.config import CorpusConfig
from engine.errors import CorpusError
from engine.provenance import file_sha256


TEXT_SUFFIXES = (".txt", ".text", ".md", ".rst")
LINE_SUFFIXES = (".jsonl", ".ndjson")
TABLE_SUFFIXES = (".parquet",)
SUFFIXES = TEXT_SUFFIXES + LINE_SUFFIXES + TABLE_SUFFIXES
MAX_BROKEN_SHARE = 0.01
"""Share of characters that may not be UTF-8 in a file that is still read as text."""
_NOT_A_NAME = re.compile(r"[^a-z0-9]+")


def slug(text: str) -> str:
    """A name in small letters, digits and hyphens, safe as a file name."""
    return _NOT_A_NAME.sub("-", text.lower()).strip("-") or "text"


def file_groups(root: Path) -> dict[str, list[Path]]:
    """Files by domain: the first sub-folder they lie in, or the root's own name.

    Raises:
        CorpusError: When there is nothing to read.
    """
    if not root.exists():
        raise CorpusError(f"{root} does not exist; name a folder or file of texts.")
    files = [root] if root.is_file() else sorted(p for p in root.rglob("*") if p.is_file())
    groups: dict[str, list[Path]] = {}
    for path in files:
        inside = path.relative_to(root).parts
        if path.suffix.lower() in SUFFIXES and not any(part.startswith(".") for part in inside):
            name = inside[0] if len(inside) > 1 else root.stem
            groups.setdefault(slug(name), []).append(path)
    if not groups:
        raise CorpusError(f"{root} holds no file that ends in {', '.join(SUFFIXES)}.")
    return dict(sorted(groups.items()))


def file_identity(paths: list[Path], root: Path) -> list[list[str]]:
    """Relative path and digest of each file."""
    return [[_relative(path, root), file_sha256(path)] for path in paths]


def _relative(path: Path, root: Path) -> str:
    return path.name if path == root else path.relative_to(root).as_posix()


def read_files(paths: list[Path], root: Path, column: str) -> Iterator[tuple[str, str]]:
    """(source, text) of every text in the files, in order."""
    for path in paths:
        name = _relative(path, root)
        if path.suffix.lower() in TEXT_SUFFIXES:
            yield name, _decoded(path)
            continue
        is_table = path.suffix.lower() in TABLE_SUFFIXES
        texts = store.iter_foreign_column(path, column) if is_table else _lines(path, column)
        for number, text in enumerate(texts, start=1):
            yield f"{name}:{number}", text


def _decoded(path: Path) -> str:
    """The text of a file, in UTF-8 or with the mark of UTF-16; a few stray bytes are let pass."""
    content = path.read_bytes()
    marked = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    text = content.decode("utf-16" if marked else "utf-8-sig", "replace")
    broken = text.count("\ufffd")
    if broken > MAX_BROKEN_SHARE * len(text):
        raise CorpusError(
            f"{path} is not UTF-8 text: {broken:,} of its {len(text):,} characters cannot be read. "
            "Save it as UTF-8, or take it out of the folder."
        )
    return text


def _lines(path: Path, column: str) -> Iterator[str]:
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        for number, line in enumerate(file, start=1):
            if line.strip():
                yield _text_of(_json_row(line, path, number), column, f"{path}, line {number},")


def _json_row(line: str, path: Path, number: int) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise CorpusError(
            f"{path}, line {number}, is not JSON ({error}); mend or remove the line."
        ) from error
    if not isinstance(row, dict):
        raise CorpusError(
            f'{path}, line {number}, is not a JSON object; write lines like {{"text": "..."}}.'
        )
    return row


def _text_of(row: dict[str, Any], column: str, place: str) -> str:
    text = row.get(column)
    if not isinstance(text, str):
        names = ", ".join(name for name, value in row.items() if isinstance(value, str))
        raise CorpusError(
            f"{place} has no text in column {column!r}; its text columns are: {names or 'none'}. "
            "Name one with --text-column."
        )
    return text


def read_dataset(config: CorpusConfig) -> Iterator[tuple[str, str]]:
    """(source, text) of a Hugging Face dataset's training split, streamed.

    Raises:
        CorpusError: When the dataset cannot be reached, or has no such column.
    """
    name = str(config.dataset)
    rows = _guarded(_stream(name, config.dataset_config), name)
    for number, row in enumerate(rows, start=1):
        yield f"{name}:{number}", _text_of(dict(row), config.text_column, f"Row {number} of {name}")


def _stream(name: str, config_name: str | None) -> Iterator[dict[str, Any]]:
    from datasets import load_dataset  # imported here: it takes seconds

    yield from load_dataset(name, config_name, split="train", streaming=True)


def _guarded(rows: Iterator[dict[str, Any]], name: str) -> Iterator[dict[str, Any]]:
    """The same rows; whatever the library raises becomes one sentence."""
    try:
        yield from rows
    except Exception as error:
        reason = str(error).strip().split("\n")[0][:200] or type(error).__name__
        raise CorpusError(
            f"The dataset {name} cannot be read ({reason}). Check its id, its configuration "
            "(--dataset-config) and the connection."
        ) from error
