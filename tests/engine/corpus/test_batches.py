"""Training rows: pure in (seed, step), without replacement, in the shares asked for."""

import numpy as np
import pytest

from engine.corpus.batches import _BLOCK, BatchStream, _quotas
from engine.errors import CorpusError


def stream(shards, **changes) -> BatchStream:
    settings = {"split": "train", "context": 31, "batch_size": 7, "seed": 5} | changes
    return BatchStream(shards, **settings)


def test_a_step_does_not_depend_on_the_steps_before_it(shards) -> None:
    """Resuming at any step must give the same curve."""
    in_order = [stream(shards).batch(0)]
    one = stream(shards)
    in_order = [one.batch(step) for step in range(11)]
    for step in (10, 3, 0):
        assert np.array_equal(stream(shards).batch(step), in_order[step])


def test_rows_are_whole_and_other_seeds_give_other_rows(shards) -> None:
    """A row holds its context and the token to predict after it."""
    rows = stream(shards).batch(2)
    assert rows.shape == (7, 32)
    assert rows.dtype == np.int64
    assert rows.min() >= 0
    assert rows.max() < shards.vocab_size
    assert not np.array_equal(rows, stream(shards, seed=6).batch(2))


def test_an_epoch_of_a_domain_reads_each_token_once(shards) -> None:
    """Without replacement: the windows of an epoch tile the documents."""
    rows = stream(shards).rows["code"]
    for epoch in (0, 1):
        first = epoch * rows.rows_per_epoch
        read = np.concatenate([rows.row(first + i)[:-1] for i in range(rows.rows_per_epoch)])
        documents = shards.corpus.documents.query("domain == 'code' and split == 'train'")
        everything = np.concatenate([shards.run(d) for d in documents["document"]])
        missing = np.bincount(everything, minlength=401) - np.bincount(read, minlength=401)
        assert missing.min() >= -31
        assert 0 <= len(everything) - len(read) <= 31 + 1
    assert not np.array_equal(rows.row(0), rows.row(rows.rows_per_epoch))


def test_no_held_out_token_reaches_training(shards) -> None:
    """Validation loss would be worthless; the rows of a split come from its documents alone."""
    frame = shards.corpus.documents
    train = {shards.run(d).tobytes() for d in frame.query("split == 'train'")["document"]}
    for source in stream(shards, split="validation").rows.values():
        for document in source._documents:
            assert frame["split"][document] == "validation"
            assert shards.run(int(document)).tobytes() not in train


def test_domain_weights_are_shares_of_rows(shards) -> None:
    """0.1 of the rows for docs leaves 0.9 for code; over a block the counts are exact."""
    weighted = stream(shards, domain_weights={"docs": 0.1})
    assert weighted.shares == pytest.approx({"code": 0.9, "docs": 0.1})
    domains, numbers = weighted._block(3)
    names = [weighted._names[d] for d in domains]
    assert names.count("docs") == round(0.1 * _BLOCK)
    quota = names.count("code")
    assert sorted(numbers[domains == 0]) == list(range(3 * quota, 4 * quota))


def test_unnamed_domains_share_in_proportion_to_their_tokens(shards) -> None:
    """Without weights the mixture is the corpus."""
    plain = stream(shards)
    tokens = {d: r.n_tokens for d, r in plain.rows.items()}
    for domain, share in plain.shares.items():
        assert share == pytest.approx(tokens[domain] / sum(tokens.values()))


def test_weights_above_one_are_scaled(shards) -> None:
    """A user may think in ratios."""
    assert stream(shards, domain_weights={"code": 3, "docs": 1}).shares == pytest.approx(
        {"code": 0.75, "docs": 0.25}
    )


def test_quotas_fill_a_block_and_rare_domains_are_not_lost() -> None:
    """A share below one row of a block still gets one."""
    quotas = _quotas(np.array([0.99998, 0.00001, 0.00001, 0.0]))
    assert quotas.tolist() == [_BLOCK - 2, 1, 1, 0]


def test_evaluation_is_the_same_whatever_the_seed_and_batch_size(shards) -> None:
    """Losses of two runs are compared on the same rows."""
    one = stream(shards, split="validation").evaluation(5)
    two = stream(shards, split="validation", seed=99, batch_size=3).evaluation(5)
    assert list(one) == ["code", "docs"]
    for domain, rows in one.items():
        assert rows.shape == (5, 32)
        assert np.array_equal(rows, two[domain])


def test_a_context_longer_than_the_domain_goes_round(shards) -> None:
    """A tiny corpus must still train."""
    rows = stream(shards, context=200_003).rows["docs"]
    row = rows.row(0)
    assert len(row) == 200_004
    assert np.array_equal(row[: 200_004 - rows.n_tokens], row[rows.n_tokens :])


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"law": 0.1}, "no domain law; it holds code, docs"),
        ({"code": -1.0}, "0 or more"),
        ({"code": float("nan")}, "0 or more"),
        ({"code": float("inf")}, "0 or more"),
        ({"code": 0.0, "docs": 0.0}, "weight 0"),
    ],
)
def test_impossible_weights_are_refused(shards, weights, message) -> None:
    """The sentence names the domains there are."""
    with pytest.raises(CorpusError, match=message):
        stream(shards, domain_weights=weights)


def test_a_split_without_documents_is_refused(shards) -> None:
    """An unknown split must not give an empty mixture."""
    with pytest.raises(CorpusError, match="no test documents"):
        stream(shards, split="test")


def test_the_source_of_a_row_is_where_its_first_token_stands(shards) -> None:
    """A sample is linked to its document by this alone."""
    one = stream(shards)
    frame = shards.corpus.documents.set_index("document")
    for step in (0, 5):
        for place, row in enumerate(one.batch(step)):
            domain, document, position = one.source(step * 7 + place)
            run = shards.run(document)[position : position + 32]
            assert np.array_equal(run, row[: len(run)])
            assert frame.loc[document, "domain"] == domain
            assert frame.loc[document, "split"] == "train"
