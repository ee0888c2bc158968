"""Byte-level BPE: exact round trips, the same tokenizer twice, files transformers reads."""

import pytest

from engine.corpus.tokenizer import (
    corpus_tokenizer,
    load_tokenizer,
    save_tokenizer,
    separator_id,
    tokenizer_fingerprint,
    train_tokenizer,
)
from engine.errors import CorpusError


def test_training_twice_gives_the_same_tokenizer(tiny, tokenizer) -> None:
    """A model's tokens must not depend on the day."""
    again = train_tokenizer(tiny, 401, seed=0)
    assert again.to_str() == tokenizer.to_str()
    assert tokenizer_fingerprint(again) == tokenizer_fingerprint(tokenizer)


def test_it_has_the_size_asked_for_and_the_separator_first(tokenizer) -> None:
    """Model shapes are derived from the vocabulary."""
    assert tokenizer.get_vocab_size() == 401
    assert separator_id(tokenizer) == 0


@pytest.mark.parametrize(
    "text",
    [
        "def f(x):\n\treturn  x\n",
        "👩‍👩‍👧",
        "שלום",
        "a\u2028b",
        "<script>",
        "  two  spaces ",
        "ÿ\x7f",
    ],
)
def test_any_text_comes_back_exactly(tokenizer, text: str) -> None:
    """Every byte has a token, so nothing is unknown."""
    ids = tokenizer.encode(text, add_special_tokens=False).ids
    assert tokenizer.decode(ids, skip_special_tokens=False) == text


def test_digits_are_tokens_of_their_own(tokenizer) -> None:
    """Numbers would otherwise use up the vocabulary."""
    assert len(tokenizer.encode("2024").ids) == 4


@pytest.mark.slow  # imports transformers
def test_a_saved_tokenizer_is_read_by_transformers(tokenizer, tmp_path) -> None:
    """Checkpoints must load with AutoTokenizer."""
    from transformers import AutoTokenizer

    save_tokenizer(tokenizer, tmp_path)
    loaded = AutoTokenizer.from_pretrained(tmp_path)
    text = "import os  # done"
    assert loaded(text)["input_ids"] == tokenizer.encode(text, add_special_tokens=False).ids
    assert loaded.eos_token_id == 0
    assert tokenizer_fingerprint(load_tokenizer(tmp_path)) == tokenizer_fingerprint(tokenizer)


def test_the_corpus_keeps_its_tokenizer(tiny_root, tiny) -> None:
    """The second call reads the file; another size gets its own."""
    path = corpus_tokenizer(tiny, 307)
    written = path.stat().st_mtime_ns
    assert corpus_tokenizer(tiny, 307) == path
    assert path.stat().st_mtime_ns == written
    assert corpus_tokenizer(tiny, 311) != path


def test_a_vocabulary_below_the_bytes_is_refused(tiny) -> None:
    """256 bytes and the separator are the least."""
    with pytest.raises(CorpusError, match="at least 257"):
        train_tokenizer(tiny, 100, seed=0)


def test_a_file_that_is_no_tokenizer_gives_one_sentence(tmp_path) -> None:
    """Missing and damaged files are told apart."""
    with pytest.raises(CorpusError, match="There is no tokenizer"):
        load_tokenizer(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(CorpusError, match="is not a tokenizer"):
        load_tokenizer(tmp_path)
