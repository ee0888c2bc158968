"""Settings that cannot work are refused before anything is computed."""

import pytest

from engine.config import CorpusConfig, IndexConfig, LossWeights, RetrofitConfig, TrainConfig
from engine.errors import ConfigError
from tests.assertions import assert_plain_sentence


@pytest.mark.parametrize(
    ("config", "name", "value"),
    [
        (TrainConfig, "steps", 0),
        (TrainConfig, "eval_every", 0),
        (TrainConfig, "checkpoint_every", 0),
        (TrainConfig, "learning_rate", float("nan")),
        (TrainConfig, "n_active", 5000),
        (TrainConfig, "context", 1_000_000_007),
        (TrainConfig, "vocab_size", 1_000_000_007),
        (TrainConfig, "bank_start", 2000),
        (TrainConfig, "bank_start", -1),
        (TrainConfig, "bank_ramp", -1),
        (TrainConfig, "warmup", -3),
        (TrainConfig, "threads", -2),
        (TrainConfig, "weight_decay", -0.1),
        (TrainConfig, "min_lr_ratio", 5),
        (TrainConfig, "beta1", 1.0),
        (TrainConfig, "beta2", float("nan")),
        (TrainConfig, "seed", -1),
        (TrainConfig, "seed", 10**30),
        (RetrofitConfig, "seed", -1),
        (IndexConfig, "seed", -1),
        (RetrofitConfig, "context", 0),
        (RetrofitConfig, "batch_tokens", 0),
        (RetrofitConfig, "n_active", 0),
        (IndexConfig, "context", 1),
        (LossWeights, "reconstruction", float("nan")),
    ],
)
def test_a_setting_out_of_range_is_named_with_its_value(config, name, value):
    """A division by zero, or a bank that is never fitted, would come hours later."""
    with pytest.raises(ConfigError) as caught:
        config(**{name: value})
    assert name in str(caught.value)
    assert str(value) in str(caught.value)
    assert_plain_sentence(str(caught.value))


def test_a_dense_twin_keeps_the_bank_start_of_its_model():
    """It names the checkpoint the twin forks from, and may be its last step."""
    assert TrainConfig(dense=True, bank_start=2000, steps=2000).bank_start == 2000


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"path": ""}, "--path is empty"),
        ({"dataset": " "}, "--dataset is empty"),
        ({"path": "texts", "max_bytes": 0}, "max_bytes is 0"),
    ],
)
def test_a_corpus_needs_a_source_and_room(settings, message):
    """An empty path would be the folder one stands in; no room would keep one document."""
    with pytest.raises(ConfigError, match=message) as caught:
        CorpusConfig(preset=None, **settings)
    assert_plain_sentence(str(caught.value))
