"""Text of documents and tokens, read from the rebuilt corpus; never kept, never shipped."""

import threading
import time

import streamlit as st

from engine import store
from engine.config import cache_root
from engine.errors import CorpusError
from engine.snippets import SnippetReader, planted_texts, tokenizer_of, vocabulary_texts


BUILDING_SECONDS = 20
"""A corpus with a file younger than this is being built."""
INVENTED = "an invented fact, planted by the study"
"""Where a document comes from that the study by retraining made up."""
_lock = threading.Lock()
"""A reader keeps tokenised documents; sessions are threads."""


@st.cache_resource(max_entries=4, show_spinner=False)
def _reader(path: str) -> SnippetReader:
    """Reader of the run's corpus; a missing corpus raises, which is not cached."""
    run = store.open_run(path)
    return SnippetReader(corpus_name(path), tokenizer_of(run.model_path), planted_texts(run))


def corpus_name(path: str) -> str:
    """The corpus a run was indexed on: a preset, or a folder."""
    corpus = store.open_run(path).manifest.get("corpus", {})
    name = corpus.get("name") or corpus.get("preset")
    if not name:
        raise CorpusError("This run does not say which corpus it was indexed on; index it again.")
    return str(name)


def windows(path: str, wanted: tuple[tuple[str, int, int], ...]) -> list[list[str] | None]:
    """Token texts of many windows; None where the corpus lacks the document.

    Args:
        path: Folder of the run.
        wanted: (doc_id, first position, number of tokens) of each window.

    Raises:
        CorpusError: The corpus has not been built.
    """
    reader = _reader(path)
    with _lock:
        return [
            [t.text for t in reader.window(doc, start, 0, n - 1)] if reader.has(doc) else None
            for doc, start, n in wanted
        ]


def window(path: str, doc_id: str, position: int, before: int, after: int) -> list[tuple[int, str]]:
    """(position, text) of the tokens around a place in a document."""
    reader = _reader(path)
    with _lock:
        found = reader.window(doc_id, position, before, after)
        return [(token.position, token.text) for token in found]


def tokens_from(path: str, doc_id: str, position: int, n_tokens: int) -> list[tuple[int, str]]:
    """(token id, text) of a document's tokens from a position on, `n_tokens` at most.

    Raises:
        CorpusError: The corpus has not been built, or lacks the document or the position.
    """
    reader = _reader(path)
    with _lock:
        found = reader.window(doc_id, position, 0, n_tokens - 1)
        return [(token.token_id, token.text) for token in found]


def characters_before(path: str, doc_id: str, position: int) -> int:
    """Characters of a document before one of its tokens."""
    reader = _reader(path)
    with _lock:
        return sum(len(token.text) for token in reader.tokens(doc_id)[:position])


def token_at(path: str, doc_id: str, character: int) -> int:
    """The token of a document that holds a character; the last one where none does."""
    reader = _reader(path)
    with _lock:
        tokens, seen = reader.tokens(doc_id), 0
        for token in tokens:
            seen += len(token.text)
            if seen > character:
                return token.position
        return max(0, len(tokens) - 1)


def sources(path: str, doc_ids: tuple[str, ...]) -> list[str]:
    """Where documents come from, by id; the id itself where nothing is known of the document.

    Raises:
        CorpusError: The corpus has not been built.
    """
    reader = _reader(path)
    corpus = reader.corpus
    rows = [corpus.position_of(doc_id) for doc_id in doc_ids]
    known = corpus.documents["source"]
    return [
        str(known.iloc[row])
        if row is not None
        else INVENTED
        if doc_id in reader.planted
        else doc_id
        for doc_id, row in zip(doc_ids, rows, strict=True)
    ]


@st.cache_resource(max_entries=4, show_spinner=False)
def token_texts(path: str) -> list[str]:
    """Text of every token of the run's vocabulary, by id."""
    return vocabulary_texts(tokenizer_of(store.open_run(path).model_path))


def token_text(texts: list[str], token_id: int) -> str:
    """Text of one token; its id in brackets where the vocabulary has no such token."""
    return texts[token_id] if 0 <= token_id < len(texts) else f"[{token_id}]"


def build_status(path: str) -> tuple[int, int, bool]:
    """Domains of the run's corpus that are built, how many it has, whether a build is running."""
    manifest = store.open_run(path).manifest
    folder = cache_root() / "corpus" / corpus_name(path) / "domains"
    done = len(list(folder.glob("[!.]*.json")))
    young = [f for f in folder.glob("*") if time.time() - f.stat().st_mtime < BUILDING_SECONDS]
    total = len(manifest.get("corpus", {}).get("domains", {}))
    return done, max(total, done), bool(young)


def corpus_ready(path: str) -> bool:
    """Whether the run's corpus can be read; raises the sentence that says why not."""
    return len(_reader(path).corpus) > 0
