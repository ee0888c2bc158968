"""Rows of tokens: what is attributed, what is asked, and what cannot be."""

import numpy as np
import pytest
from tokenizers import Tokenizer, processors
from transformers import PreTrainedTokenizerFast

from engine.able.facts import fact_probes
from engine.able.model import batched_rows
from engine.able.probes import Probe, probe_set
from engine.able.rows import encode_probes
from engine.errors import UnsupportedModel
from tests.engine.able.tiny_causal import TOKENIZERS, tiny_tokenizer


@pytest.mark.parametrize("style", TOKENIZERS)
@pytest.mark.parametrize("scored", ["letters", "texts"])
def test_prompt_and_option_are_parted_by_what_their_tokens_cover(style: str, scored):
    """Prompt tokens end within the prompt; together with the option they are the whole text."""
    probes = probe_set("facts", fact_probes(7), scored)
    tokenizer = tiny_tokenizer(style)
    encoded = encode_probes(probes, tokenizer, None)
    assert encoded.skipped == ()
    seen = set()
    for row in encoded.rows:
        probe = probes.probes[row.probe]
        assert row.offsets[:, 1].max() <= len(probe.prompt)
        for place, option in enumerate(row.options):
            seen.add((row.probe, option))
            whole = tokenizer(probe.prompt + probe.options[option])["input_ids"]
            assert [*row.tokens, row.answers[-1, place]] == whole
            assert row.answers[:, place].tolist() == whole[row.n_prompt :]
    assert seen == {(n, o) for n, p in enumerate(probes.probes) for o in range(len(p.options))}


def test_letters_after_the_same_tokens_share_a_row():
    """One forward pass serves all of them."""
    rows = encode_probes(probe_set("f", fact_probes(5)), tiny_tokenizer(), None).rows
    assert [row.options for row in rows] == [(0, 1, 2, 3)] * 5
    assert all(row.answers.shape == (1, 4) for row in rows)


def test_a_token_that_joins_prompt_and_option_belongs_to_the_option():
    """The metaspace tokenizer has a token of newline and C, which parts C from the others."""
    rows = encode_probes(probe_set("f", fact_probes(1)), tiny_tokenizer("metaspace"), None).rows
    assert [row.options for row in rows] == [(0, 1, 3), (2,)]
    assert [int(row.offsets[-1, 1]) for row in rows] == [237, 236]
    assert rows[1].n_prompt == rows[0].n_prompt


def test_what_a_tokenizer_puts_after_a_text_is_not_asked():
    """Some append a mark of the end, which is no part of the answer."""
    closing = Tokenizer.from_str(tiny_tokenizer().backend_tokenizer.to_str())
    closing.post_processor = processors.TemplateProcessing(
        single="<s> $A <s>", special_tokens=[("<s>", 0)]
    )
    probes = probe_set("f", fact_probes(2))
    closed = encode_probes(probes, PreTrainedTokenizerFast(tokenizer_object=closing), None).rows
    for row, plain in zip(closed, encode_probes(probes, tiny_tokenizer(), None).rows, strict=True):
        assert row.tokens.tolist() == [0, *plain.tokens]
        assert row.answers.tolist() == plain.answers.tolist()


def test_a_probe_longer_than_the_context_is_skipped_and_the_rest_goes_on():
    """Its columns stay 0 for this model."""
    probes = probe_set("f", fact_probes(12))
    lengths = [len(r.tokens) for r in encode_probes(probes, tiny_tokenizer(), None).rows]
    context = sorted(lengths)[6]
    encoded = encode_probes(probes, tiny_tokenizer(), context)
    assert encoded.skipped == tuple(n for n, size in enumerate(lengths) if size > context)
    assert len(encoded.rows) + len(encoded.skipped) == 12
    with pytest.raises(UnsupportedModel, match=r"Every probe is longer .* \(5 tokens\)"):
        encode_probes(probes, tiny_tokenizer(), 5)


def test_an_option_without_a_token_is_refused():
    """A tokenizer that drops a letter gives it no probability."""
    unknown = Probe("s", "Which?\n", ("A", " "), 0)
    with pytest.raises(UnsupportedModel, match="with no token"):
        encode_probes(probe_set("s", [unknown]), tiny_tokenizer("word_piece"), None, "mine")


def test_batches_keep_within_their_tokens_and_options():
    """Neighbours of one shape, no row lost, none twice."""
    rows = encode_probes(probe_set("f", fact_probes(23)), tiny_tokenizer("metaspace"), None).rows
    ordered = sorted(rows, key=lambda row: (-len(row.options), -len(row.tokens)))
    batches = list(batched_rows(ordered, 1500))
    assert [row for batch in batches for row in batch] == ordered
    for batch in batches:
        assert len({len(row.options) for row in batch}) == 1
        size = max(len(row.tokens) for row in batch) * len(batch) * len(batch[0].options)
        assert size <= 1500 or len(batch) == 1
    assert all(len(batch) == 1 for batch in batched_rows(ordered, 1))
    assert np.mean([len(batch) for batch in batches]) > 2
