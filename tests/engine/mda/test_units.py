"""Units: heads by kind, neurons, prototypes; each against autograd on the weights themselves."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

from engine.config import LossWeights
from engine.errors import ConfigError, UnsupportedModel
from engine.mda import patterns, probes, units
from engine.mda.ekfac import sequence_loss
from engine.mda.influence import score_samples
from engine.mda.neurons import TracedNeurons, neuron_layers
from engine.mda.patterns import attention_patterns, previous_token, random_sequences
from engine.mda.prototypes import TracedPrototypes, active
from engine.mda.settings import ProbeConfig
from engine.mda.taps import tapped
from engine.mda.tracing import directions_of, trace
from engine.mda.units import UNITS, TracedHeads, TracedUnit
from engine.numerics import unit_vectors
from engine.prism.activation import reconstruct
from engine.prism.configuration import PrismConfig
from engine.prism.model import PrismForCausalLM
from tests.engine.tiny_decoders import VOCAB, decoder, decoder_config


WORDS = np.arange(3, VOCAB)
PROBE = ProbeConfig(sequences=5, length=10)


@pytest.fixture(scope="module")
def rows() -> torch.Tensor:
    return torch.randint(3, VOCAB, (13, 12), generator=torch.Generator().manual_seed(5))


def dealt(rows: torch.Tensor) -> Any:
    return lambda: list(rows.split(5))


# --- heads ------------------------------------------------------------------------------------


def test_every_kind_of_head_has_a_metric_and_a_probe():
    """Pattern probes are asked of queries and keys alone; copying of every block."""
    assert set(UNITS) == {"induction", "previous_token", "duplicate_token"}
    torch.manual_seed(0)
    model = decoder("gpt2")
    for unit in UNITS.values():
        heads = ((0, 1), (1, 2))
        traced = TracedHeads(unit, WORDS, PROBE, heads)
        spaces = traced.spaces(model)
        assert spaces.heads == heads
        assert {block.kind for block in spaces.blocks} == set(unit.kinds)
        gradients = traced.probe(model).gradients(model, spaces)
        assert all(float(gradient.abs().max()) > 0 for gradient in gradients)


def test_the_score_of_a_head_is_the_mean_attention_on_its_targets():
    """By hand for the previous token: every position but the first has one target."""
    torch.manual_seed(0)
    model = decoder("gpt_neox")
    found = TracedHeads(UNITS["previous_token"], WORDS, PROBE, ((1, 2),)).measure(model)
    tokens = random_sequences(WORDS, PROBE)
    pattern = attention_patterns(model, tokens)[1][:, 2].detach()
    by_hand = pattern.diagonal(-1, 1, 2).mean()
    assert float(found[0]) == pytest.approx(float(by_hand), rel=1e-5)
    assert previous_token(tokens).sum() == 5 * 9


def test_tracing_is_curvature_then_probe_then_a_pass(rows: torch.Tensor):
    """One call does what the parts do."""
    torch.manual_seed(0)
    model = decoder("llama", num_key_value_heads=1)
    traced = TracedHeads(UNITS["induction"], WORDS, PROBE, ((1, 1),))
    whole = torch.cat([s.scores for s in trace(model, traced, dealt(rows), rows.split(4))])
    spaces, directions = directions_of(model, traced, dealt(rows))
    parts = torch.cat([s.scores for s in score_samples(model, spaces, directions, [rows])])
    assert whole.shape == (13, 1, 3)
    assert torch.allclose(whole, parts, rtol=1e-4, atol=1e-6 * float(parts.abs().max()))


# --- neurons ----------------------------------------------------------------------------------


NEURONS = (2, 17, 5)


def mlp_gradients(model: Any, traced: TracedNeurons, value: torch.Tensor) -> list[torch.Tensor]:
    """The same blocks cut from the gradients that autograd leaves in the weights."""
    value.backward()
    at = neuron_layers(model)[traced.layer]
    found = []
    for name in (*at.inputs, at.output):
        module = model.get_submodule(name)
        grad = module.weight.grad
        grad = torch.zeros_like(module.weight) if grad is None else grad
        found.append(grad.T if type(module).__name__ == "Conv1D" else grad)
    chosen = list(traced.neurons)
    into = torch.stack([grad[chosen] for grad in found[:-1]], 1)
    return [into, found[-1][:, chosen].T[..., None]]


@pytest.mark.parametrize("name", ["gpt2", "gpt_neox", "llama"])
def test_the_gradients_of_neurons_are_those_of_the_weights(name: str, rows: torch.Tensor):
    """Of the probe, and of the loss of a sample."""
    torch.manual_seed(1)
    model = decoder(name)
    traced = TracedNeurons(0, NEURONS, rows[:3])
    spaces = traced.spaces(model)
    out = model.get_submodule(neuron_layers(model)[0].output)
    seen: list[torch.Tensor] = []
    hook = out.register_forward_pre_hook(lambda _m, inputs: seen.append(inputs[0]))
    model(input_ids=rows[:3])
    hook.remove()
    mean = seen[0].mean(dim=(0, 1))[list(NEURONS)]
    assert torch.allclose(traced.measure(model), mean.detach(), atol=1e-6)
    pairs = [(traced.probe(model).gradients(model, spaces), mean.sum())]
    with tapped(model, spaces.modules) as taps:
        losses = sequence_loss(model(input_ids=rows[:1, :-1]).logits, rows[:1, 1:])
        taps.differentiate(losses.sum())
        found = [gradient.sum(0) for gradient in spaces.gradients(taps)]
    pairs.append((found, sequence_loss(model(input_ids=rows[:1, :-1]).logits, rows[:1, 1:]).sum()))
    for fast, value in pairs:
        model.zero_grad()
        for one, other in zip(fast, mlp_gradients(model, traced, value), strict=True):
            assert torch.allclose(one, other, atol=1e-5 * float(other.abs().max() + 1e-6))


def test_neurons_can_be_traced_and_missing_ones_are_refused(rows: torch.Tensor):
    """What a neuron writes does not move its own activation: its block scores 0."""
    torch.manual_seed(1)
    model = decoder("llama")
    traced = TracedNeurons(1, NEURONS, rows[:3])
    scores = torch.cat([s.scores for s in trace(model, traced, dealt(rows), [rows])])
    assert scores.shape == (13, 3, 2)
    assert scores[:, :, 0].abs().min() > 0
    assert scores[:, :, 1].abs().max() == 0
    with pytest.raises(ConfigError, match="neurons 0 to 39"):
        TracedNeurons(1, (40,), rows).spaces(model)
    with pytest.raises(ConfigError, match="layers 0 to 1"):
        TracedNeurons(2, (0,), rows).spaces(model)
    with pytest.raises(UnsupportedModel, match="no feed-forward layers"):
        neuron_layers(torch.nn.Linear(2, 3))


# --- prototypes -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def prism() -> PrismForCausalLM:
    torch.manual_seed(2)
    config = PrismConfig.for_backbone(
        decoder_config("llama", initializer_range=0.4),
        weights=LossWeights(),
        n_prototypes=31,
        n_active=7,
    )
    return PrismForCausalLM(config).eval()


def chosen_of(prism: PrismForCausalLM, rows: torch.Tensor) -> tuple[int, ...]:
    """Three prototypes that are active somewhere."""
    with torch.no_grad():
        states = prism(input_ids=rows, return_prototypes=True).states
        counts = active(prism, states, tuple(range(31))).flatten(0, 1).sum(0)
    return tuple(int(i) for i in counts.argsort(descending=True)[:3])


def test_the_gradient_of_a_prototype_holds_residual_and_active_set(
    prism: PrismForCausalLM, rows: torch.Tensor
):
    """Against autograd through the reconstruction, the residual detached."""
    chosen = chosen_of(prism, rows)
    traced = TracedPrototypes(chosen, rows[:2])
    spaces = traced.spaces(prism)
    with tapped(prism, spaces.modules) as taps:
        logits = prism(input_ids=rows[:1, :-1]).logits
        taps.differentiate(sequence_loss(logits, rows[:1, 1:]).sum())
        (fast,) = spaces.gradients(taps)
        (block,) = spaces.blocks
        inputs, outputs = block.tokens(taps)
    bank = prism.prototypes.detach().clone().requires_grad_(True)
    with torch.no_grad():
        out = prism(input_ids=rows[:1, :-1], return_prototypes=True)
        indices = out.prototype_indices
    cosines = (unit_vectors(out.states) @ unit_vectors(bank).T).gather(2, indices)
    rebuilt = reconstruct(functional.relu(cosines), indices, bank)
    states = rebuilt + (out.states - rebuilt).detach()
    loss = functional.cross_entropy(
        prism.lm_head(states).flatten(0, 1), rows[0, 1:], reduction="sum"
    )
    loss.backward()
    slow = bank.grad[list(chosen)]
    assert slow.abs().min() > 0
    assert torch.allclose(fast[0, :, :, 0], slow, rtol=1e-4, atol=1e-5 * float(slow.abs().max()))
    by_token = (outputs * inputs).sum(0)
    assert torch.allclose(by_token, fast[0, :, :, 0], rtol=1e-4, atol=1e-6)


def test_the_probe_of_a_prototype_is_its_mean_activation(
    prism: PrismForCausalLM, rows: torch.Tensor
):
    """And its gradient turns the vector towards the states: a small step raises it."""
    chosen = chosen_of(prism, rows)
    traced = TracedPrototypes(chosen, rows[:4])
    with torch.no_grad():
        out = prism(input_ids=rows[:4], return_prototypes=True)
        hits = [out.prototype_activations[out.prototype_indices == i].sum() for i in chosen]
        by_hand = torch.stack(hits) / rows[:4].numel()
    before = traced.measure(prism)
    assert torch.allclose(before, by_hand, atol=1e-6)
    (gradient,) = traced.probe(prism).gradients(prism, traced.spaces(prism))
    kept = prism.prototypes.detach().clone()
    with torch.no_grad():
        prism.prototypes[list(chosen)] += 1e-3 * gradient[..., 0]
        after = traced.measure(prism)
        prism.prototypes.copy_(kept)
    gain = 1e-3 * gradient.square().sum(dim=(1, 2))
    assert torch.allclose(after - before, gain, rtol=0.05)


def test_prototypes_can_be_traced_and_missing_ones_are_refused(
    prism: PrismForCausalLM, rows: torch.Tensor
):
    """A score a sample and prototype."""
    traced = TracedPrototypes(chosen_of(prism, rows), rows[:4])
    scores = torch.cat([s.scores for s in trace(prism, traced, dealt(rows), [rows])])
    assert scores.shape == (13, 3, 1)
    assert scores.isfinite().all()
    assert scores.abs().max() > 0
    with pytest.raises(ConfigError, match="prototypes 0 to 30"):
        TracedPrototypes((31,), rows).spaces(prism)


# --- the page ---------------------------------------------------------------------------------


def test_the_units_of_the_page_work(rows: torch.Tensor, monkeypatch: pytest.MonkeyPatch):
    """What `docs/UNITS.md` shows is run: a sink head and a feature, each traced to samples."""
    page = (Path(__file__).resolve().parents[3] / "docs" / "UNITS.md").read_text(encoding="utf-8")
    monkeypatch.setattr(patterns, "PATTERNS", dict(patterns.PATTERNS))
    monkeypatch.setattr(probes, "PATTERNS", patterns.PATTERNS)
    monkeypatch.setattr(units, "UNITS", dict(UNITS))
    names: dict[str, Any] = {"__name__": "page"}
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(block, names)
    torch.manual_seed(1)
    model = decoder("llama")
    sink = TracedHeads(units.UNITS["sink"], WORDS, PROBE, ((0, 1),))
    feature = names["TracedFeature"](11, rows[:3])
    assert isinstance(feature, TracedUnit)
    for traced, kinds in ((sink, 1), (feature, 1)):
        scores = torch.cat([s.scores for s in trace(model, traced, dealt(rows), [rows])])
        assert scores.shape == (13, 1, kinds)
        assert scores.abs().min() > 0
        assert traced.measure(model).shape == (1,)
