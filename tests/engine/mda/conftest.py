"""Tokens of a tiny corpus, for streams of training rows."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def byte_shards(tmp_path_factory: pytest.TempPathFactory):
    """The `tiny` corpus with bytes as tokens; read-only."""
    from engine.config import CorpusConfig
    from engine.corpus.build import build_corpus
    from engine.corpus.shards import tokenise_corpus
    from engine.corpus.tokenizer import train_tokenizer

    root: Path = tmp_path_factory.mktemp("byte-corpus")
    corpus = build_corpus(CorpusConfig(preset="tiny"), root)
    return tokenise_corpus(corpus, train_tokenizer(corpus, 257, seed=0))
