"""Documents: stable ids, cleaned text, the held-out split, and pieces of readable length."""

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar, runtime_checkable


Split = Literal["train", "validation"]
Item = TypeVar("Item")

_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufeff]")
_SPACES = re.compile(r"\s+")
_BLANK_LINES = re.compile(r"\n[ \t]*\n")
_SENTENCE_END = re.compile(r"(?<=[.!?;])\s+")
_MIN_WRAPPED = 55


@runtime_checkable
class Progress(Protocol):
    """Wraps an iterable and reports as it is consumed; `total` counts its items."""

    def __call__(
        self, items: Iterable[Item], *, label: str = "", total: int | None = None
    ) -> Iterable[Item]:
        """Return an iterable of the same items."""
        ...


def no_progress(
    items: Iterable[Item],
    *,
    label: str = "",  # noqa: ARG001
    total: int | None = None,  # noqa: ARG001
) -> Iterable[Item]:
    """Report nothing."""
    return items


@dataclass(frozen=True)
class Document:
    """One document of a corpus."""

    doc_id: str
    """16 hexadecimal digits, from the domain and the text alone."""
    domain: str
    """Name of its domain."""
    source: str
    """Where it was read: a path inside its package or folder, `#n` for piece n of a long text."""
    split: Split
    """Train or validation, from a hash of `doc_id`."""
    text: str
    """Cleaned text."""


def document_id(domain: str, text: str) -> str:
    """Id of a document: the first 16 hexadecimal digits of sha256(domain, NUL, text)."""
    return hashlib.sha256(f"{domain}\0{text}".encode()).hexdigest()[:16]


def unit_hash(purpose: str, doc_id: str) -> float:
    """A number in [0, 1) from the id; different purposes give independent numbers."""
    digest = hashlib.sha256(f"{purpose}\0{doc_id}".encode()).digest()
    return int.from_bytes(digest[:7], "big") / 2**56


def split_of(doc_id: str, validation_share: float) -> Split:
    """The split of a document; raising the share only moves documents to validation."""
    return "validation" if unit_hash("split", doc_id) < validation_share else "train"


def make_document(domain: str, source: str, text: str, validation_share: float) -> Document:
    """A document of cleaned text."""
    doc_id = document_id(domain, text)
    return Document(doc_id, domain, source, split_of(doc_id, validation_share), text)


def clean_text(text: str) -> str:
    """One newline convention, no control characters, byte-order marks or lone surrogates."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = _CONTROLS.sub("", text)
    text = text.encode("utf-8", "replace").decode("utf-8")
    return text.strip("\n").rstrip()


def unwrap_paragraphs(text: str) -> str:
    """Join the lines of hard-wrapped paragraphs; short-lined ones (verse, headings) stay."""
    paragraphs = []
    for paragraph in _BLANK_LINES.split(text):
        lines = [line.rstrip() for line in paragraph.strip("\n").split("\n")]
        if any(len(line) >= _MIN_WRAPPED for line in lines):
            paragraphs.append(" ".join(line.strip() for line in lines if line.strip()))
        elif any(lines):
            paragraphs.append("\n".join(lines))
    return "\n\n".join(paragraphs)


def same_text_key(text: str) -> bytes:
    """Equal for texts that differ only in case and whitespace; what exact duplicates share."""
    return hashlib.sha256(_SPACES.sub(" ", text).strip().casefold().encode()).digest()[:16]


def split_pieces(text: str, max_bytes: int) -> list[str]:
    """Cut a long text into pieces of about `max_bytes`, at the best border there is.

    Borders are tried from the widest to the narrowest: blank lines, lines, sentences, words,
    characters. No text is lost but the whitespace at a border.
    """
    if len(text.encode()) <= max_bytes:
        return [text]
    return _balance(_cut(text, max_bytes, level=0), max_bytes)


_BORDERS = ((_BLANK_LINES, "\n\n"), (re.compile("\n"), "\n"), (_SENTENCE_END, " "), (_SPACES, " "))


def _cut(text: str, max_bytes: int, level: int) -> list[tuple[str, str]]:
    """Atoms of at most `max_bytes`, each with the joint that follows it."""
    if level == len(_BORDERS):
        width = max(1, max_bytes // 4)
        return [(text[i : i + width], "") for i in range(0, len(text), width)]
    pattern, joint = _BORDERS[level]
    atoms: list[tuple[str, str]] = []
    for part in pattern.split(text):
        if len(part.encode()) <= max_bytes:
            atoms.append((part, joint))
        else:
            inner = _cut(part, max_bytes, level + 1)
            atoms += [*inner[:-1], (inner[-1][0], joint)]
    return atoms


def _balance(atoms: list[tuple[str, str]], max_bytes: int) -> list[str]:
    """Pack atoms into pieces of nearly equal size, none above `max_bytes` by more than a joint."""
    total = sum(len(atom.encode()) + len(joint) for atom, joint in atoms)
    target = total / -(-total // max_bytes)
    pieces: list[str] = []
    piece, size, joint = "", 0, ""
    for atom, next_joint in atoms:
        n_bytes = len(atom.encode()) + len(joint)
        if piece and (size + n_bytes > max_bytes or size + n_bytes / 2 > target):
            pieces.append(piece.strip("\n"))
            piece, size, joint = "", 0, ""
            n_bytes = len(atom.encode())
        piece, size, joint = piece + joint + atom, size + n_bytes, next_joint
    pieces.append(piece.strip("\n"))
    return [piece for piece in pieces if piece.strip()]


def iter_pieces(source: str, text: str, max_bytes: int) -> Iterator[tuple[str, str]]:
    """(source, text) of each piece; the source of a lone piece carries no number."""
    pieces = split_pieces(text, max_bytes)
    for number, piece in enumerate(pieces, start=1):
        yield (f"{source}#{number}" if len(pieces) > 1 else source), piece
