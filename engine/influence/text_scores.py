"""Likeness of the texts themselves: TF-IDF and BM25 over token ids, through libraries.

Tokens of a corpus's own vocabulary serve as the words, so nothing is decoded and nothing is split
in another way than the model reads it. Both are similarities: larger means more alike.
"""

from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer

from engine.corpus.documents import Progress, no_progress
from engine.influence.frame import Sequences
from engine.prism.model import PrismForCausalLM


def score_tfidf(
    model: PrismForCausalLM,  # noqa: ARG001
    pool: Sequences,
    queries: Sequences,
    progress: Progress = no_progress,
    *,
    longest: int = 2,
) -> Float[np.ndarray, "queries pool"]:
    """Cosine of TF-IDF vectors of runs of 1 to `longest` tokens; frequencies are the pool's.

    scikit-learn's `TfidfVectorizer` with sublinear term frequency: (1 + ln tf) (1 + ln((1 + n) /
    (1 + df))), rows scaled to length 1. In [0, 1].
    """
    analyzer: Any = partial(_runs, longest=longest)
    vectorizer = TfidfVectorizer(analyzer=analyzer, sublinear_tf=True)
    texts = words_of(pool)
    rows = sparse.csr_matrix(vectorizer.fit_transform(progress(texts, total=len(texts))))
    asked = sparse.csr_matrix(vectorizer.transform(words_of(queries)))
    return np.asarray((asked @ rows.T).todense(), np.float32)


def score_bm25(
    model: PrismForCausalLM,  # noqa: ARG001
    pool: Sequences,
    queries: Sequences,
    progress: Progress = no_progress,
    *,
    k1: float = 1.5,
    b: float = 0.75,
) -> Float[np.ndarray, "queries pool"]:
    """BM25 of every text for the tokens of the query, by bm25s in Lucene's form; 0 or more.

    Args:
        model: Not asked.
        pool: Texts to score.
        queries: Texts whose tokens, repeated ones counted as often, are the search terms.
        progress: Wraps the queries.
        k1: Saturation of the term frequency.
        b: Correction for the length of a text, 0 to 1.
    """
    import bm25s

    vocabulary = {token: token for token in range(int(max(_largest(pool), _largest(queries))) + 1)}
    index = bm25s.BM25(k1=k1, b=b, method="lucene", dtype="float32")
    index.index((words_of(pool), vocabulary), show_progress=False, create_empty_token=False)
    asked = progress(words_of(queries), total=len(queries))
    return np.stack([index.get_scores_from_ids(words) for words in asked]).astype(np.float32)


def words_of(sequences: Sequences) -> list[list[int]]:
    """Token ids of each sequence, without the separator in front and without padding."""
    rows = zip(sequences.tokens, sequences.length, strict=True)
    return [row[1 : int(length)].tolist() for row, length in rows]


def _largest(sequences: Sequences) -> int:
    return int(sequences.tokens.max())


def _runs(words: list[int], longest: int) -> Iterable[tuple[int, ...]]:
    """Every run of 1 to `longest` consecutive tokens."""
    for size in range(1, longest + 1):
        yield from zip(*(words[offset:] for offset in range(size)), strict=False)
