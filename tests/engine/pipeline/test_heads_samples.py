"""Samples by step and row: those of a training of ours, and those of a corpus in its own order."""

from pathlib import Path

import numpy as np
import pytest
import torch

from engine.config import LossWeights, TrainConfig
from engine.corpus.build import open_corpus
from engine.corpus.documents import no_progress
from engine.corpus.shards import TokenShards, tokenise_corpus
from engine.errors import ConfigError, CorpusError
from engine.pipeline.heads_influence_settings import InfluenceConfig
from engine.pipeline.heads_models import HeadSource, find_source
from engine.pipeline.heads_samples import (
    CorpusOrder,
    RunOrder,
    check_order,
    choose_samples,
    sample_order,
)
from engine.pipeline.training import training_data, training_shards
from engine.prism.training import make_trainer


@pytest.fixture
def source(heads_run: Path) -> HeadSource:
    return find_source(str(heads_run))


@pytest.fixture
def shards(source: HeadSource, heads_corpus: str) -> TokenShards:
    return tokenise_corpus(open_corpus(heads_corpus), source.tokenizer())


def test_the_samples_of_a_run_are_the_rows_its_trainer_saw(
    source: HeadSource, shards: TokenShards, tmp_path: Path
):
    """Micro-batch after micro-batch, against the trainer itself."""
    settings = source.manifest["config"]["train"]
    config = TrainConfig(**{**settings, "weights": LossWeights(**settings["weights"])})
    own_shards, _ = training_shards(config, no_progress)
    trainer = make_trainer(config, training_data(config, own_shards), tmp_path / "again")
    order = sample_order(source, shards, InfluenceConfig())
    assert isinstance(order, RunOrder)
    assert (order.context, order.rows_a_step) == (17, 6)
    for step in (0, 3, 10):
        seen = torch.cat(trainer._rows(step)).numpy()
        np.testing.assert_array_equal(order.rows(step), seen)


def test_a_sample_of_a_run_begins_where_its_source_says(source: HeadSource, shards: TokenShards):
    """The document's own tokens from there on, its separator in front being the first."""
    order = sample_order(source, shards, InfluenceConfig())
    for step, row in ((0, 0), (2, 5), (7, 3)):
        document, position = order.source(step, row)
        own = shards.run(document)[position:]
        n = min(len(own), 18)
        np.testing.assert_array_equal(order.rows(step)[row][:n], own[:n])
        assert shards.corpus.documents["split"][document] == "train"


def test_the_order_of_a_corpus_reads_every_token_once(shards: TokenShards):
    """Windows end to end over the training documents; the last step has what is left."""
    order = CorpusOrder(shards, context=13, rows_a_step=5)
    frame = shards.corpus.documents
    train = frame["document"][frame["split"] == "train"]
    laid = np.concatenate([shards.run(int(document)) for document in train])
    rows = np.concatenate([order.rows(step) for step in range(order.n_steps)])
    assert len(rows) == (len(laid) - 1) // 13
    np.testing.assert_array_equal(rows[:, :-1].ravel(), laid[: 13 * len(rows)])
    np.testing.assert_array_equal(rows[:-1, -1], rows[1:, 0])
    assert order.width(order.n_steps - 1) == (len(rows) - 1) % 5 + 1
    document, position = order.source(3, 2)
    np.testing.assert_array_equal(order.rows(3)[2][0], shards.run(document)[position])


def test_samples_are_whole_steps_spread_evenly(shards: TokenShards):
    """Of steps 2 to 9, 11 samples make three steps of five; the curvature takes two of them."""
    order = CorpusOrder(shards, context=13, rows_a_step=5)
    config = InfluenceConfig(steps="2:10", samples=11, fit_samples=6)
    samples = choose_samples(order, config, 0)
    assert samples.steps.tolist() == [2, 6, 9]
    assert samples.fit_steps.tolist() == [2, 9]
    places = samples.places(samples.steps)
    assert places["step"].tolist() == [2] * 5 + [6] * 5 + [9] * 5
    assert places["row"].tolist() == [*range(5)] * 3
    assert samples.rows(samples.steps).shape == (15, 14)
    orders = (CorpusOrder(shards, context=13, rows_a_step=n) for n in (7, 11, 17))
    uneven = next(o for o in orders if o.width(o.n_steps - 1) < o.rows_a_step)
    few = choose_samples(uneven, InfluenceConfig(samples=2 * uneven.rows_a_step), 0)
    assert few.steps.tolist() == [0, uneven.n_steps - 2]
    every = choose_samples(order, InfluenceConfig(), 0)
    assert every.steps.tolist() == list(range(order.n_steps))


def test_samples_after_the_checkpoint_had_no_part_in_it(source: HeadSource, shards: TokenShards):
    """They are refused where they are asked for by their steps."""
    order = sample_order(source, shards, InfluenceConfig())
    assert choose_samples(order, InfluenceConfig(), 8).steps.tolist() == list(range(8))
    assert choose_samples(order, InfluenceConfig(steps="5:8"), 8).steps.tolist() == [5, 6, 7]
    for steps in ("5:9", "90000000:90000001"):
        with pytest.raises(ConfigError, match=r"trained for 8 steps; .* with a LAST of 8 or less"):
            choose_samples(order, InfluenceConfig(steps=steps), 8)
    unknown = choose_samples(order, InfluenceConfig(steps="9:12"), 0)
    assert unknown.steps.tolist() == [9, 10, 11]
    with pytest.raises(ConfigError, match="say which samples to score with --steps"):
        choose_samples(order, InfluenceConfig(), 0)
    with pytest.raises(ConfigError, match="samples end before step"):
        choose_samples(CorpusOrder(shards, 13, 5), InfluenceConfig(steps="500:600"), 0)


@pytest.mark.parametrize("steps", ["5", "7:7", "a:b", "-1:3", "4:2"])
def test_steps_that_are_no_range_are_refused(steps: str):
    """Written FIRST:LAST."""
    with pytest.raises(ConfigError, match="write FIRST:LAST"):
        InfluenceConfig(steps=steps)


def test_an_order_that_is_not_known_is_refused(
    source: HeadSource, heads_corpus: str, foreign_models: Path
):
    """With the reason, and the order that can be had."""
    corpus, foreign = open_corpus(heads_corpus), find_source(str(foreign_models))
    tokenizer = foreign.tokenizer()
    check_order(source, corpus, source.tokenizer(), "run")
    check_order(foreign, corpus, tokenizer, "corpus")
    with pytest.raises(CorpusError, match="neox was not trained here; --order corpus takes"):
        check_order(foreign, corpus, tokenizer, "run")
    with pytest.raises(CorpusError, match="another tokenizer than the one beside it"):
        check_order(source, corpus, tokenizer, "run")
    corpus.fingerprint = "another"
    with pytest.raises(CorpusError, match=r"and not on this state of .* \(another\)"):
        check_order(source, corpus, source.tokenizer(), "run")
