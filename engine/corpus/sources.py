"""Readers: the texts inside one file of a package, in order, cleaned."""

import ast
import csv
import json
import re
import sysconfig
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from pathlib import Path

from engine.corpus.archives import Archive
from engine.corpus.documents import clean_text, unwrap_paragraphs
from engine.corpus.packages import PACKAGES, require_archive
from engine.corpus.presets import STDLIB, Part
from engine.errors import CorpusError
from engine.provenance import file_sha256


Reader = Callable[[bytes, dict[str, str]], Iterator[str]]
_CONTEXT_MARK = re.compile(r"^Context \(\d+\): ", re.MULTILINE)
_HTML = re.compile(r"<(html|body|table|td|font|br)\b", re.IGNORECASE)
_MARKER = re.compile(r"\([a-z]+\)$")
_PARTS_OF_SPEECH = {"n": "noun", "v": "verb", "a": "adjective", "s": "adjective", "r": "adverb"}
_TOXIC = 0.5
_N_HEADER_LINES = 3


def read_part(part: Part, packages: Path) -> Iterator[tuple[str, str]]:
    """(path, cleaned text) of every text of a part, in order of path.

    A file that holds several texts gives its path with `:n` for the n-th.
    """
    reader = READERS[part.reader]
    for path, content in _files(part, packages):
        if any(fnmatch(path, pattern) for pattern in part.exclude):
            continue
        try:
            texts = [clean_text(text) for text in reader(content, part.options)]
        except (ValueError, KeyError, SyntaxError, csv.Error) as error:
            raise CorpusError(
                f"{path} of {part.package} is not in the form this version reads ({error})."
            ) from error
        for number, text in enumerate(texts, start=1):
            if text.strip():
                yield (f"{path}:{number}" if len(texts) > 1 else path), text


def _files(part: Part, packages: Path) -> Iterator[tuple[str, bytes]]:
    if part.package == STDLIB:
        root = Path(sysconfig.get_paths()["stdlib"])
        for path in sorted(root.glob(part.pattern)):
            yield path.relative_to(root).as_posix(), path.read_bytes()
        return
    with Archive(require_archive(PACKAGES[part.package], packages)) as archive:
        yield from archive.matching(part.pattern)


def stdlib_identity(patterns: list[str]) -> list[list[str]]:
    """Path and digest of the standard library's files that match; they differ by version."""
    root = Path(sysconfig.get_paths()["stdlib"])
    paths = sorted(path for pattern in patterns for path in root.glob(pattern))
    return [[path.relative_to(root).as_posix(), file_sha256(path)] for path in paths]


def _decode(content: bytes, options: dict[str, str]) -> str:
    text = content.decode(options.get("encoding", "utf-8"), "replace")
    return text.replace("\r\n", "\n")


def _plain(content: bytes, options: dict[str, str]) -> Iterator[str]:
    yield _decode(content, options)


def _wrapped(content: bytes, options: dict[str, str]) -> Iterator[str]:
    yield unwrap_paragraphs(clean_text(_decode(content, options)))


def _tab(content: bytes, options: dict[str, str]) -> Iterator[str]:
    """Orange's tab-separated form: names, types and flags, then rows."""
    lines = _decode(content, options).split("\n")
    column = lines[0].split("\t").index(options["column"])
    for row in csv.reader(lines[_N_HEADER_LINES:], delimiter="\t", quoting=csv.QUOTE_NONE):
        if len(row) > column:
            yield row[column]


def _jsonl(content: bytes, options: dict[str, str]) -> Iterator[str]:
    for line in _decode(content, options).split("\n"):
        if line.strip():
            yield json.loads(line)[options["column"]]


def _toxicity(content: bytes, options: dict[str, str]) -> Iterator[str]:
    for line in _decode(content, options).split("\n"):
        row = json.loads(line) if line.strip() else {"toxicity": 0, "sexually_explicit": 0}
        if max(row["toxicity"], row["sexually_explicit"]) > _TOXIC:
            yield str(row["text"])


def _longest_string(content: bytes, options: dict[str, str]) -> Iterator[str]:
    """The longest string literal of a Python file, which is parsed and never run."""
    tree = ast.parse(_decode(content, options))
    strings = [n.value for n in ast.walk(tree) if isinstance(n, ast.Constant)]
    yield max((s for s in strings if isinstance(s, str)), key=len).replace("`", "'")


def _help_topics(content: bytes, options: dict[str, str]) -> Iterator[str]:
    """Values of the `topics` dictionary of pydoc's data, in order of key."""
    for node in ast.parse(_decode(content, options)).body:
        if isinstance(node, ast.Assign):
            topics = ast.literal_eval(node.value)
            yield from (topics[key] for key in sorted(topics))


def _conversations(content: bytes, options: dict[str, str]) -> Iterator[str]:
    """Dialogues of a chatterbot YAML list, a line a turn and a blank line between dialogues."""
    dialogues: list[list[str]] = []
    for line in _decode(content, options).partition("conversations:")[2].split("\n"):
        stripped = line.strip()
        if stripped.startswith("- - "):
            dialogues.append([_turn(stripped[4:])])
        elif stripped.startswith("- ") and dialogues:
            dialogues[-1].append(_turn(stripped[2:]))
        elif stripped and dialogues:
            before = dialogues[-1][-1]
            dialogues[-1][-1] = f"{before} {_turn(stripped)}" if before else _turn(stripped)
    distinct = dict.fromkeys("\n".join(turns) for turns in dialogues)
    yield "\n\n".join(distinct)


def _turn(text: str) -> str:
    """A YAML scalar's text: block marks and quotes taken off."""
    text = text.strip()
    if text in {"|", "|-", ">", ">-"}:
        return ""
    quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "'\""
    return text[1:-1].replace("''", "'") if quoted else text


def _abstracts(content: bytes, options: dict[str, str]) -> Iterator[str]:
    """Like JSONL, without the numbering of an abstract's paragraphs."""
    for text in _jsonl(content, options):
        yield _CONTEXT_MARK.sub("", text)


def _wordnet(content: bytes, options: dict[str, str]) -> Iterator[str]:
    """A WordNet data file as `words (part of speech): gloss`, a line a sense."""
    lines = []
    for line in _decode(content, options).split("\n"):
        entry, bar, gloss = line.partition(" | ")
        if bar and not line.startswith("  "):
            fields = entry.split(" ")
            n_words = int(fields[3], 16)
            words = [_MARKER.sub("", w).replace("_", " ") for w in fields[4 : 4 + 2 * n_words : 2]]
            part = _PARTS_OF_SPEECH[fields[2]]
            lines.append(f"{', '.join(words)} ({part}): {gloss.strip()}")
    yield "\n".join(lines)


def _mail(content: bytes, options: dict[str, str]) -> Iterator[str]:
    """Subject and body of a plain mail; other headers hold addresses, HTML mails mostly markup."""
    head, _, body = json.loads(_decode(content, options))["text"].partition("\n\n")
    subject = next((line for line in head.split("\n") if line.startswith("Subject:")), "Subject:")
    if not _HTML.search(body):
        yield f"{subject}\n\n{body}"


READERS: dict[str, Reader] = {
    "plain": _plain,
    "wrapped": _wrapped,
    "tab": _tab,
    "jsonl": _jsonl,
    "abstracts": _abstracts,
    "toxicity": _toxicity,
    "longest_string": _longest_string,
    "help_topics": _help_topics,
    "conversations": _conversations,
    "wordnet": _wordnet,
    "mail": _mail,
}
