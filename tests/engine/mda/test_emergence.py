"""Training of a study's decoder: a fixed order, states that go on as if never stopped, arms."""

from pathlib import Path

import numpy as np
import pytest
import torch

from engine.errors import CacheStale, ConfigError
from engine.mda.arms import BASELINE, delete, insert
from engine.mda.emergence import EmergenceRun, Evaluation, row_losses
from engine.mda.settings import DecoderConfig, MixtureConfig, ProbeConfig
from engine.mda.stream import MixedStream


TINY = DecoderConfig(n_layers=1, d_model=12, n_heads=3, seed=2)


@pytest.fixture
def stream(byte_shards) -> MixedStream:
    config = MixtureConfig(domain_weights={"code": 1.0}, context=29, batch_size=5, longest=13)
    return MixedStream(byte_shards, config)


def fresh(stream: MixedStream) -> EmergenceRun:
    return EmergenceRun(TINY, stream, 257, torch.device("cpu"))


def weights(run: EmergenceRun) -> torch.Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in run.model.parameters()])


def test_a_kept_state_goes_on_as_if_never_stopped(stream, tmp_path: Path) -> None:
    """Arms branch off kept states: moments and step must come along."""
    through = fresh(stream)
    steps = [step for step, _ in through.train(7, BASELINE)]
    assert steps == [1, 2, 3, 4, 5, 6, 7]
    first = fresh(stream)
    list(first.train(3, BASELINE))
    first.save(tmp_path / "state")
    second = fresh(stream)
    second.load(tmp_path / "state")
    assert second.step == 3
    list(second.train(7, BASELINE))
    assert torch.equal(weights(through), weights(second))


def test_a_missing_state_is_named(stream, tmp_path: Path) -> None:
    with pytest.raises(CacheStale, match="no kept state"):
        fresh(stream).load(tmp_path / "none")


def test_deleting_a_row_is_training_on_the_others_with_the_usual_divisor(stream) -> None:
    """The gradient of the step is the sum over the rows that are left, divided by all."""
    run = fresh(stream)
    list(run.train(1, delete("delete", [(0, 2)])))
    other = fresh(stream)
    rows = torch.as_tensor(stream.batch(0))
    kept = row_losses(other.model, rows[[0, 1, 3, 4]])
    (kept.sum() / 5).backward()
    torch.nn.utils.clip_grad_norm_(other.model.parameters(), TINY.clip)
    other.optimiser.step()
    assert torch.allclose(weights(run), weights(other), atol=1e-6)


def test_arms_agree_until_what_they_change(stream) -> None:
    one, other = fresh(stream), fresh(stream)
    arm = insert("insert", np.zeros((2, 30), np.int64), [3])
    list(one.train(3, BASELINE))
    list(other.train(3, arm))
    assert torch.equal(weights(one), weights(other))
    list(one.train(4, BASELINE))
    list(other.train(4, arm))
    assert not torch.equal(weights(one), weights(other))


def test_training_lowers_the_loss(stream) -> None:
    run = fresh(stream)
    losses = [loss for _, loss in run.train(60, BASELINE)]
    assert np.mean(losses[-5:]) < np.mean(losses[:5]) - 0.5


def test_the_evaluation_measures_and_changes_nothing(stream) -> None:
    run = fresh(stream)
    rows = torch.as_tensor(stream.batch(0))
    look = Evaluation(rows, stream.frequent, ProbeConfig(sequences=3, length=22), 7, 5)
    before = weights(run)
    found = look.measure(run.model)
    assert torch.equal(before, weights(run))
    assert run.model.training
    run.model.eval()
    assert found["loss"] == pytest.approx(
        float(row_losses(run.model, rows).detach().mean()), rel=1e-5
    )
    logits = run.model(input_ids=rows[:, :-1]).logits.detach().log_softmax(-1)
    losses = -logits.gather(2, rows[:, 1:, None])[:, :, 0]
    icl = float(losses[:, -5:].mean() - losses[:, :7].mean())
    assert found["icl"] == pytest.approx(icl, abs=1e-5)
    assert {name: values.shape for name, values in found["heads"].items()} == dict.fromkeys(
        ("prefix_matching", "previous_token", "duplicate_token"), (1, 3)
    )
    assert 4 < found["copy_loss"] < 8


def test_heads_must_divide_the_width() -> None:
    with pytest.raises(ConfigError, match="not divisible"):
        DecoderConfig(d_model=10, n_heads=3)
