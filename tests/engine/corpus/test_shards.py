"""Token shards: every document's tokens, resumable, and never served stale."""

import shutil

import numpy as np
import pytest

from engine.config import CorpusConfig
from engine.corpus import shards as shards_module
from engine.corpus.build import build_corpus
from engine.corpus.shards import open_shards, plan_shards, tokenise_corpus
from engine.corpus.tokenizer import train_tokenizer
from engine.errors import CorpusError


def test_each_document_has_its_own_tokens_after_a_separator(tiny, tokenizer, shards) -> None:
    """The reference is encoding each text alone."""
    for document in range(0, len(tiny), 3):
        expected = tokenizer.encode(tiny.text(document), add_special_tokens=False).ids
        assert shards.document_tokens(document).tolist() == expected
        assert shards.length(document) == len(expected)
        assert shards.run(document)[0] == shards.separator == 0
    assert (
        shards.n_tokens == shards.offsets[-1] == sum(shards.length(d) + 1 for d in range(len(tiny)))
    )


def test_shards_cover_the_documents_once_and_stay_within_a_domain(tiny, monkeypatch) -> None:
    """A shard of 9,973 bytes makes many of them."""
    monkeypatch.setattr(shards_module, "SHARD_BYTES", 9_973)
    plans = plan_shards(tiny)
    assert len(plans) > 30
    assert [d for plan in plans for d in range(plan.first, plan.stop)] == list(range(len(tiny)))
    assert all(tiny.domain_of(p.first) == tiny.domain_of(p.stop - 1) == p.domain for p in plans)


def test_the_size_of_shards_does_not_change_the_tokens(
    tiny, tokenizer, shards, tmp_path, monkeypatch
) -> None:
    """Partitioning is an arrangement, not a property of the data."""
    other = copied(tiny, tmp_path)
    monkeypatch.setattr(shards_module, "SHARD_BYTES", 9_973)
    split = tokenise_corpus(other, tokenizer)
    assert np.array_equal(split.offsets, shards.offsets)
    for document in range(0, len(tiny), 13):
        assert np.array_equal(split.run(document), shards.run(document))


def test_a_stopped_run_keeps_its_shards_and_ends_the_same(
    tiny, tokenizer, shards, tmp_path
) -> None:
    """Shards done before the stop are not written again."""
    other = copied(tiny, tmp_path)

    def stop_at_docs(items, *, label="", total=None):
        if "docs" in label:
            raise KeyboardInterrupt
        return items

    with pytest.raises(KeyboardInterrupt):
        tokenise_corpus(other, tokenizer, stop_at_docs)
    done = next(other.path.glob("tokens-*/code-00000.tokens"))
    written = done.stat().st_mtime_ns
    resumed = tokenise_corpus(other, tokenizer)
    assert done.stat().st_mtime_ns == written
    assert resumed.fingerprint == shards.fingerprint
    assert open_shards(resumed.path).fingerprint == shards.fingerprint


def test_a_shard_cut_short_is_refused_and_made_again(tiny, tokenizer, shards, tmp_path) -> None:
    """Reading beyond a file would give zeros as tokens."""
    made = tokenise_corpus(copied(tiny, tmp_path), tokenizer)
    path = made.path / "docs-00000.tokens"
    path.write_bytes(path.read_bytes()[:-2])
    with pytest.raises(CorpusError, match="cut short"):
        open_shards(made.path)
    assert tokenise_corpus(made.corpus, tokenizer).fingerprint == shards.fingerprint


def test_another_tokenizer_gets_its_own_folder(tiny, tokenizer, shards) -> None:
    """Tokens of two vocabularies must never mix."""
    other = tokenise_corpus(tiny, train_tokenizer(tiny, 307, seed=0))
    assert other.path != shards.path
    assert other.fingerprint != shards.fingerprint


def test_shards_of_another_state_of_the_corpus_are_refused(
    write_folder, tokenizer, tmp_path
) -> None:
    """After a rebuild with other texts the old tokens are stale."""
    config = CorpusConfig(preset=None, path=str(write_folder({"a.txt": "one"})))
    made = tokenise_corpus(build_corpus(config, tmp_path / "c"), tokenizer)
    write_folder({"b.txt": "two"})
    build_corpus(config, tmp_path / "c")
    with pytest.raises(CorpusError, match="another state of the corpus"):
        open_shards(made.path)


def test_a_text_that_quotes_a_special_token_stays_text(write_folder, tokenizer, tmp_path) -> None:
    """Otherwise a document could end itself."""
    config = CorpusConfig(preset=None, path=str(write_folder({"a.txt": "x <|endoftext|> y"})))
    made = tokenise_corpus(build_corpus(config, tmp_path / "c"), tokenizer)
    assert 0 not in made.document_tokens(0)
    assert tokenizer.encode("<|endoftext|>").ids == [0]


def copied(corpus, tmp_path):
    """A copy of a corpus without its tokens."""
    from engine.corpus.build import Corpus

    shutil.copytree(corpus.path, tmp_path / "tiny", ignore=shutil.ignore_patterns("token*"))
    return Corpus(tmp_path / "tiny")
