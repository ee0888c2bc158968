"""Rows and training: functions of seed and step, the same weights twice, gradients everywhere."""

import copy
import dataclasses

import numpy as np
import pytest
import torch

from engine.errors import ConfigError, EngineError
from engine.zoo.architectures import (
    ARCHITECTURES,
    SIZES,
    architecture_config,
    linear_weights,
    random_model,
)
from engine.zoo.training import (
    RowStream,
    Schedule,
    distillation_loss,
    logits_of,
    mix_lines,
    next_token_loss,
    train,
)
from engine.zoo.worlds import MIXES


@pytest.fixture(scope="module")
def rows(world, tokenizers, small_kind):
    return RowStream(mix_lines(world, MIXES["A"]), tokenizers("bpe512"), small_kind, 3)


def tiny(name="llama", vocab=512, seed=1):
    return random_model(architecture_config(name, "XS", vocab), seed)


@pytest.mark.parametrize("name", [a for a in ARCHITECTURES if a != "mamba"])
def test_an_architecture_trains_and_has_gradients_at_its_embedding(name, rows):
    """Three steps lower the loss of the row they are made on."""
    model = tiny(name)
    seen = []

    def keep(_module, _inputs, output):
        output.retain_grad()
        seen.append(output)

    handle = model.get_input_embeddings().register_forward_hook(keep)
    before = next_token_loss(model, rows.batch(0))
    before.backward()
    handle.remove()
    assert float(seen[0].grad.abs().sum()) > 0

    model.zero_grad()
    stream = copy.copy(rows)
    stream.batch = lambda _step: rows.batch(0)
    train(model, stream, Schedule(steps=3, learning_rate=1e-3))
    assert float(next_token_loss(model, rows.batch(0)).detach()) < float(before.detach())


def test_mamba_has_gradients_too(rows):
    """One short pass: its scan is slow in plain PyTorch."""
    model = tiny("mamba")
    loss = next_token_loss(model, rows.batch(0)[:2, :7])
    loss.backward()
    assert float(model.get_input_embeddings().weight.grad.abs().sum()) > 0


@pytest.mark.parametrize("size", SIZES)
def test_sizes_are_what_they_say(size):
    """Width and layers in the configuration, every matrix found once."""
    model = random_model(architecture_config("gpt2", size, 307), 0)
    assert model.config.hidden_size == SIZES[size].d_model
    assert len(linear_weights(model)) == 4 * SIZES[size].n_layers


def test_unknown_architectures_and_sizes_are_named():
    """With those that there are."""
    with pytest.raises(ConfigError, match="no architecture 'bert'"):
        architecture_config("bert", "S", 307)
    with pytest.raises(ConfigError, match="no size 'XXL'"):
        architecture_config("gpt2", "XXL", 307)


def test_random_weights_follow_their_seed_alone():
    """And the caller's random state is left as it was."""
    torch.manual_seed(11)
    wanted = torch.rand(3)
    torch.manual_seed(11)
    first, again, other = tiny(seed=5), tiny(seed=5), tiny(seed=6)
    assert torch.equal(torch.rand(3), wanted)
    pairs = list(zip(first.parameters(), again.parameters(), other.parameters(), strict=True))
    assert all(torch.equal(a, b) for a, b, _ in pairs)
    assert not all(torch.equal(a, c) for a, _, c in pairs)


def test_rows_are_whole_lines_in_an_order_of_seed_and_step(world, tokenizers, small_kind):
    """Each row begins with a line of the mix and is cut at its length."""
    tokenizer = tokenizers("bpe512")

    def stream(seed):
        return RowStream(mix_lines(world, {"jobs": 1.0}), tokenizer, small_kind, seed)

    batch = stream(3).batch(7)
    assert batch.shape == (small_kind.rows, small_kind.context + 1)
    assert torch.equal(batch, stream(3).batch(7))
    assert not torch.equal(batch, stream(3).batch(8))
    assert not torch.equal(batch, stream(4).batch(7))
    lines = set(world.lines("jobs"))
    for row in batch.tolist():
        first = tokenizer.decode(row[: row.index(0)]) if 0 in row else None
        assert first is None or first in lines


def test_sources_are_drawn_by_their_weight(world, tokenizers, small_kind):
    """Share of lines by source over many rows, within 4 standard deviations."""
    tokenizer = tokenizers("bpe512")
    longer = dataclasses.replace(small_kind, context=997, rows=11)
    weights = {"arithmetic": 0.7, "animals": 0.3}
    stream = RowStream(mix_lines(world, weights), tokenizer, longer, 0)
    texts = [tokenizer.decode(row, skip_special_tokens=False) for row in stream.batch(0).tolist()]
    lines = [line for text in texts for line in text.split("<|endoftext|>")[:-1]]
    known = {source: set(world.lines(source)) for source in weights}
    numbers = np.array([line in known["arithmetic"] for line in lines])
    assert all(line in known["arithmetic"] | known["animals"] for line in lines)
    assert abs(numbers.mean() - 0.7) < 4 * np.sqrt(0.7 * 0.3 / len(lines))


def test_training_twice_gives_the_same_weights(rows):
    """Bit for bit, whatever the random state around it."""

    def trained():
        torch.rand(5)
        model = tiny()
        train(model, rows, Schedule(steps=5, learning_rate=3e-3))
        return model

    first, again = trained(), trained()
    for a, b in zip(first.parameters(), again.parameters(), strict=True):
        assert torch.equal(a, b)


def test_the_learning_rate_rises_then_falls():
    """Linear warm-up, cosine, floor."""
    schedule = Schedule(steps=100, learning_rate=2.0, warmup=10, floor=0.1)
    rates = [schedule.rate(step) for step in range(100)]
    assert rates[0] == pytest.approx(0.2)
    assert rates[9] == rates[10] == pytest.approx(2.0)
    assert rates[55] == pytest.approx(2.0 * (0.1 + 0.9 / 2))
    assert np.all(np.diff(rates[10:]) < 0)
    assert 0.2 < rates[-1] < 0.21


def test_distillation_is_zero_at_the_teacher_and_else_the_divergence(rows):
    """Against the definition, token by token."""
    teacher, student = tiny(seed=1).eval(), tiny(seed=2).eval()
    batch = rows.batch(0)
    at_teacher = distillation_loss(teacher)(teacher, batch).detach()
    assert float(at_teacher) == pytest.approx(0, abs=1e-6)
    p = logits_of(teacher, batch[:, :-1]).softmax(-1).flatten(0, 1).detach()
    q = logits_of(student, batch[:, :-1]).softmax(-1).flatten(0, 1).detach()
    slow = sum(float((a * (a / b).log()).sum()) for a, b in zip(p, q, strict=True)) / len(p)
    found = distillation_loss(teacher)(student, batch).detach()
    assert float(found) == pytest.approx(slow, rel=1e-3)


def test_a_loss_that_is_not_finite_is_said(rows):
    """Instead of a model of NaN."""
    model = tiny()
    with torch.no_grad():
        next(iter(model.parameters())).fill_(float("nan"))
    with pytest.raises(EngineError, match="loss is nan at step 1"):
        train(model, rows, Schedule(steps=2, learning_rate=1e-3))


def test_no_lines_are_refused(tokenizers, small_kind):
    """A mix without text would train on nothing."""
    with pytest.raises(ConfigError, match="no lines"):
        RowStream({}, tokenizers("bpe512"), small_kind, 0)
