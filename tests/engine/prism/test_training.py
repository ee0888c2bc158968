"""Training: the twin shares its trunk, a resumed run is the same run, the bank starts warm."""

import dataclasses
import shutil

import numpy as np
import pytest
import torch

from engine.config import LossWeights, TrainConfig
from engine.errors import CacheStale, ConfigError
from engine.prism.optimiser import learning_rate_scale, loss_weight_scale
from engine.prism.training import Trainer, TrainingData, make_trainer
from engine.prism.training_checkpoint import latest_checkpoint


VOCAB, CONTEXT = 31, 13


class PlantedStream:
    """Rows that count upwards modulo the vocabulary from a seeded start: easy to learn."""

    def batch(self, step: int) -> np.ndarray:
        starts = np.random.default_rng(step).integers(0, VOCAB, size=7)
        return (starts[:, None] + np.arange(CONTEXT + 1)) % VOCAB


def config(**changes) -> TrainConfig:
    base = TrainConfig(
        n_layers=1,
        d_model=24,
        n_heads=3,
        vocab_size=VOCAB,
        context=CONTEXT,
        n_prototypes=11,
        n_active=3,
        batch_size=7,
        steps=12,
        warmup=2,
        bank_start=6,
        bank_ramp=2,
        eval_every=6,
        checkpoint_every=4,
        learning_rate=1e-2,
        device="cpu",
        weights=LossWeights(),
    )
    return dataclasses.replace(base, **changes)


def trainer(folder, settings: TrainConfig, fork_of=None) -> Trainer:
    stream = PlantedStream()
    data = TrainingData(stream, {"planted": stream.batch(999)}, end_of_text=0)
    return make_trainer(settings, data, folder, fork_of)


def finished(folder, settings: TrainConfig, fork_of=None) -> Trainer:
    run = trainer(folder, settings, fork_of)
    run.run(lambda items, **_: items)
    return run


def losses(run: Trainer) -> list[float]:
    return [row["cross_entropy"] for row in run.log]


def weights_of(run: Trainer) -> dict[str, torch.Tensor]:
    return {k.removeprefix("backbone."): v.clone() for k, v in run.bare_model.state_dict().items()}


def test_before_the_bank_starts_the_model_and_its_dense_twin_are_bit_equal(tmp_path):
    """The twin may then fork from the model's checkpoint, which halves the cost of a pair."""
    prism = finished(tmp_path / "prism", config())
    dense = finished(tmp_path / "dense", config(dense=True))
    assert losses(dense)[:6] == losses(prism)[:6]
    assert losses(dense)[7:] != losses(prism)[7:]


def test_a_twin_forked_at_the_bank_start_equals_a_twin_trained_from_scratch(tmp_path):
    finished(tmp_path / "prism", config())
    forked = finished(tmp_path / "fork", config(dense=True), fork_of=tmp_path / "prism")
    whole = finished(tmp_path / "whole", config(dense=True))
    assert losses(forked) == losses(whole)
    for name, tensor in weights_of(whole).items():
        assert torch.equal(weights_of(forked)[name], tensor), name


def test_a_fork_before_the_bank_starts_may_have_another_number_of_prototypes(tmp_path):
    finished(tmp_path / "prism", config())
    fork = finished(tmp_path / "fork", config(n_prototypes=17), fork_of=tmp_path / "prism")
    assert fork.bare_model.prototypes.shape == (17, 24)
    assert losses(fork)[:6] == losses(finished(tmp_path / "prism", config()))[:6]


@pytest.mark.parametrize("stop", [4, 8])
def test_a_run_killed_and_resumed_has_the_same_losses_and_weights(tmp_path, stop):
    """Killed after a checkpoint, before and after the bank has started."""
    whole = finished(tmp_path / "whole", config())
    cut = trainer(tmp_path / "cut", config())

    def until(items, **_):
        for step in items:
            if step == stop + 1:
                return
            yield step

    cut.run(until)
    resumed = finished(tmp_path / "cut", config())
    assert losses(resumed) == losses(whole)
    assert resumed.evaluations == whole.evaluations
    for name, tensor in weights_of(whole).items():
        assert torch.equal(weights_of(resumed)[name], tensor), name


def test_the_bank_covers_the_states_better_after_training_than_a_random_bank(tmp_path):
    run = finished(tmp_path, config(steps=30))
    assert run.evaluations[0]["coverage_r2"] is None
    assert run.evaluations[-1]["coverage_r2"] > 0.8
    assert run.evaluations[-1]["validation_loss"] < run.evaluations[0]["validation_loss"]


def test_accumulation_of_micro_batches_averages_their_gradients(tmp_path):
    """Two micro-batches of the same rows give the step that one of them gives."""

    class Twice(PlantedStream):
        def batch(self, step: int) -> np.ndarray:
            return super().batch(0 * step)

    def run(folder, accumulate):
        settings = config(accumulate=accumulate, steps=2, dense=True, clip=1e9)
        data = TrainingData(Twice(), {"planted": Twice().batch(0)}, end_of_text=0)
        made = make_trainer(settings, data, folder)
        made.run(lambda items, **_: items)
        return losses(made)

    assert run(tmp_path / "one", 1) == pytest.approx(run(tmp_path / "two", 2), rel=1e-6)


def test_a_damaged_checkpoint_is_refused_with_what_to_do(tmp_path):
    finished(tmp_path, config())
    newest = latest_checkpoint(tmp_path / "checkpoints")
    (newest / "model.safetensors").write_bytes(b"broken")
    with pytest.raises(CacheStale, match="remove it and train again"):
        trainer(tmp_path, config())


def test_a_half_written_checkpoint_is_never_read(tmp_path):
    finished(tmp_path, config())
    newest = latest_checkpoint(tmp_path / "checkpoints")
    shutil.copytree(newest, newest.parent / ".partial-step-0000099")
    assert latest_checkpoint(tmp_path / "checkpoints") == newest


def test_a_fork_without_its_trunk_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="no checkpoint at step 6"):
        trainer(tmp_path / "fork", config(dense=True), fork_of=tmp_path / "nothing")


def test_the_schedule_rises_linearly_and_falls_to_its_floor():
    """Warm-up 2: 1/2, then the peak; cosine down to 10 %."""
    settings = config()
    assert learning_rate_scale(0, settings) == 0.5
    assert learning_rate_scale(1, settings) == 1.0
    assert learning_rate_scale(12, settings) == pytest.approx(0.1)


def test_the_loss_weights_are_zero_before_the_bank_and_ramp_up_after():
    settings = config()
    scales = [loss_weight_scale(step, settings) for step in (0, 5, 6, 7, 8)]
    assert scales == [0.0, 0.0, 0.5, 1.0, 1.0]
    assert loss_weight_scale(8, config(dense=True)) == 0.0
