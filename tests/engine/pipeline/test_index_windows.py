"""The plan of what is scanned."""

import numpy as np
import pandas as pd
import pytest

from engine.errors import CorpusError
from engine.pipeline.index_windows import RUN_WINDOWS, equal_shares, plan_windows


def corpus_of(lengths, domains, split=None):
    """Documents of some lengths; every fifth is held out."""
    n = len(lengths)
    documents = pd.DataFrame(
        {
            "document": np.arange(n, dtype=np.int32),
            "doc_id": [f"{i:016x}" for i in range(n)],
            "domain": domains,
            "source": ["s"] * n,
            "split": split or ["validation" if i % 5 == 4 else "train" for i in range(n)],
            "n_bytes": np.asarray(lengths) * 3,
        }
    )
    return documents, np.asarray(lengths)


def many_documents():
    generator = np.random.default_rng(0)
    lengths = generator.integers(0, 90, 60)
    lengths[7] = 2003
    return corpus_of(lengths, ["a"] * 25 + ["b"] * 30 + ["unwanted"] * 5)


def test_windows_lie_in_training_documents_and_do_not_overlap():
    """A window that ran over its end, or into a held-out text, would break every table."""
    documents, lengths = many_documents()
    plan = plan_windows(documents, lengths, max_tokens=900, context=12, seed=1)
    assert (plan.start + plan.length <= lengths[plan.corpus_document[plan.document]]).all()
    assert (plan.length >= 1).all()
    assert (plan.length <= 11).all()
    assert set(plan.documents["split"]) == {"train"}
    same = plan.document[1:] == plan.document[:-1]
    assert (plan.start[1:] >= plan.start[:-1] + plan.length[:-1])[same].all()
    assert plan.n_tokens <= 900
    assert plan.documents["document"].tolist() == list(range(len(plan.documents)))
    assert (np.diff(plan.corpus_document) > 0).all()


def test_a_long_document_does_not_crowd_out_the_others():
    """Document 7 has half of all tokens of its domain and gets a turn like any other."""
    plan = plan_windows(*many_documents(), max_tokens=900, context=12, seed=1)
    per_document = np.bincount(plan.corpus_document[plan.document], minlength=60)
    assert 0 < per_document[:25].max() <= RUN_WINDOWS


def test_everything_is_scanned_when_the_budget_allows():
    """The plan then covers each training token once."""
    documents, lengths = many_documents()
    plan = plan_windows(documents, lengths, max_tokens=10**6, context=12, seed=1)
    train = (documents["split"] == "train").to_numpy()
    assert plan.n_tokens == lengths[train].sum()


def test_shards_cover_the_windows_in_order():
    """Each window belongs to one shard, and shards close once they are full."""
    plan = plan_windows(*many_documents(), max_tokens=900, context=12, seed=1)
    slices = plan.shards(100)
    assert [s.start for s in slices[1:]] == [s.stop for s in slices[:-1]]
    assert slices[0].start == 0
    assert slices[-1].stop == len(plan.length)
    assert all(plan.length[s].sum() < 100 + 11 for s in slices)


def test_equal_shares_give_on_what_small_parts_cannot_use():
    """Total 100: the first part is served whole (10), 90 left: 5, then 42.5 each."""
    assert equal_shares(np.array([5, 10, 400, 60]), 100, [1]).tolist() == [5, 10, 42.5, 42.5]


def test_a_corpus_without_training_text_is_refused():
    """One sentence instead of an empty index."""
    with pytest.raises(CorpusError, match="no training text"):
        plan_windows(*corpus_of([3], ["a"], ["validation"]), max_tokens=9, context=4, seed=0)
