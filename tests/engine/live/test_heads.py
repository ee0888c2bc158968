"""Attention live: the pattern of a head, rows that a study generated, spans that repeat."""

from pathlib import Path

import numpy as np
import pytest

from engine.errors import CacheMissing, PromptError
from engine.live import heads
from engine.live.heads import HeadReader
from engine.mda.emergence import DecoderConfig, make_decoder
from engine.mda.stream import MixtureConfig, repeated_row
from engine.pipeline.synthetic_heads import study_facts, write_synthetic_heads
from engine.store import open_run
from tests.assertions import assert_close, assert_plain_sentence


LAYERS, HEADS = 2, 3


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of heads that ships the decoder of seed 0 alone."""
    path = write_synthetic_heads(tmp_path_factory.mktemp("live") / "heads")
    config = DecoderConfig(n_layers=LAYERS, d_model=12, n_heads=HEADS, initializer_range=0.5)
    make_decoder(config, 257, 128).save_pretrained(path / "model" / "seed-0")
    return path


@pytest.fixture(scope="module")
def reader(run: Path) -> HeadReader:
    return HeadReader.open(run, 0)


def test_a_pattern_is_that_of_the_model(reader: HeadReader, run: Path):
    """Rows add up to 1, nothing attends ahead, and it is what transformers itself gives."""
    import torch

    from engine.lm.loading import load_weights

    found = reader.pattern("tide, tide", 1, 2)
    assert [t.text for t in found.tokens] == list("tide, tide")
    assert found.attention.sum(1) == pytest.approx(np.ones(10), abs=1e-5)
    assert not np.triu(found.attention, 1).any()
    model = load_weights({"path": str(run / "model" / "seed-0")})[0]
    model.set_attn_implementation("eager")
    ids = torch.tensor([[t.token_id for t in found.tokens]])
    with torch.no_grad():
        layers = model(ids, output_attentions=True).attentions
    assert_close(found.attention, layers[1][0, 2].numpy(), rtol=1e-5, atol=1e-7)


def test_scores_on_a_text_are_sums_of_its_pattern(reader: HeadReader):
    """Previous token by hand; a text without repeats has no prefix to match."""
    found = reader.pattern("abcabc", 0, 1)
    assert found.scores["previous_token"] == pytest.approx(
        float(found.attention.diagonal(-1).mean()), rel=1e-5
    )
    by_hand = np.mean([found.attention[i, i - 2] for i in (3, 4, 5)])
    assert found.scores["prefix_matching"] == pytest.approx(float(by_hand), rel=1e-5)
    assert np.isnan(reader.pattern("abc", 0, 1).scores["prefix_matching"])


def test_a_long_text_is_cut_and_says_so(reader: HeadReader):
    """A pattern of thousands of tokens could not be read."""
    found = reader.pattern("ab " * 211, 0, 0)
    assert len(found.tokens) == heads.MOST_TOKENS
    assert found.n_left_out == 3 * 211 - heads.MOST_TOKENS


@pytest.mark.parametrize(("layer", "head"), [(LAYERS, 0), (0, HEADS), (-1, 0)])
def test_a_head_that_does_not_exist_is_one_sentence(reader: HeadReader, layer: int, head: int):
    """It says which there are."""
    with pytest.raises(PromptError, match="layers 0 to 1 with heads 0 to 2") as error:
        reader.pattern("a", layer, head)
    assert_plain_sentence(str(error.value))


def test_bad_text_and_ids_are_one_sentence(reader: HeadReader):
    """Nothing of the libraries below comes through."""
    for call in (lambda: reader.pattern("", 0, 0), lambda: reader.pattern_of([257], 0, 0),
                 lambda: reader.pattern_of([], 0, 0)):  # fmt: skip
        with pytest.raises(PromptError) as error:
            call()
        assert_plain_sentence(str(error.value))


def test_a_seed_without_weights_is_one_sentence(run: Path):
    """Scores and influence are shown all the same."""
    with pytest.raises(CacheMissing, match="no weights of seed 1") as error:
        HeadReader.open(run, 1)
    assert_plain_sentence(str(error.value))


def test_a_generated_row_is_made_again_from_the_facts_of_its_study(run: Path):
    """It is what the stream gave; without its facts there is one sentence."""
    opened = open_run(run)
    config = MixtureConfig(**study_facts()["mixtures"]["1"])
    wanted = repeated_row(config, np.arange(33, 97), 217, 5)[0]
    assert heads.generated_row(opened, 1, 217, 5) == wanted.tolist()
    assert len(heads.row_texts(opened, wanted.tolist())) == 129
    with pytest.raises(CacheMissing) as error:
        heads.generated_row(opened, 7, 217, 5)
    assert_plain_sentence(str(error.value))


def test_a_segment_that_repeats_is_found_where_it_stands_again():
    """A run of one character is no repeat worth showing."""
    ids = [*b"one two three. ", *b"one two three. "]
    found = heads.repeated_in(ids, 257)
    assert [(s.start, s.stop, s.earlier) for s in found] == [(15, 30, 0)]
    assert heads.repeated_in([32] * 50, 257) == []
    assert heads.repeated_in([], 257) == []
