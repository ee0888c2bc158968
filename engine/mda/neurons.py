"""A neuron of a feed-forward layer as a unit: what turns it on, and what it writes."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D

from engine.config import require
from engine.errors import UnsupportedModel
from engine.mda.blocks import Part
from engine.mda.probes import Gradients
from engine.mda.subspaces import Subspaces, WeightBlock
from engine.mda.taps import tapped
from engine.numerics import full_precision


_MAPS = (
    (("gate_proj", "up_proj"), "down_proj"),
    (("dense_h_to_4h",), "dense_4h_to_h"),
    (("c_fc",), "c_proj"),
)
"""Names of the maps into and out of the neurons, by architecture."""


@dataclass(frozen=True)
class NeuronLayer:
    """One feed-forward layer: the maps into its neurons, the map out of them, and how many."""

    inputs: tuple[str, ...]
    output: str
    n_neurons: int


def neuron_layers(model: nn.Module) -> tuple[NeuronLayer, ...]:
    """Every feed-forward layer of a decoder.

    Raises:
        UnsupportedModel: it has none whose maps are known here.
    """
    found = []
    for name, module in model.named_modules():
        for inputs, output in _MAPS:
            if all(hasattr(module, part) for part in (*inputs, output)):
                names = tuple(f"{name}.{part}" for part in inputs)
                found.append(NeuronLayer(names, f"{name}.{output}", _width(module, output)))
    if not found:
        raise UnsupportedModel(
            f"{type(model).__name__} has no feed-forward layers with known maps; use a GPT-2, "
            "GPT-NeoX, Llama, Mistral, Qwen or OLMo-2 shaped model."
        )
    return tuple(found)


def _width(module: nn.Module, output: str) -> int:
    weight = getattr(module, output)
    return int(weight.nx if isinstance(weight, Conv1D) else weight.in_features)


@dataclass(frozen=True)
class TracedNeurons:
    """Neurons of one layer: a `TracedUnit`.

    Metric and probe are the mean activation on given sequences, over positions and sequences: what
    the map out of the neurons reads. The parameters are two blocks a neuron, `in`, its rows of the
    maps into the layer, and `out`, its column of the map out of it; the second does not move its
    own activation and scores 0.
    """

    layer: int
    """Layer, counted from 0."""
    neurons: tuple[int, ...]
    """Neurons within the layer."""
    tokens: Int[Tensor, "batch pos"]
    """Sequences on which they should be active."""
    name: str = "neuron"
    """Name of the kind."""

    def spaces(self, model: Any) -> Subspaces:
        """Rows and columns of each neuron."""
        at = self._at(model)
        single = torch.arange(at.n_neurons)[:, None]
        into = tuple(Part(name, single) for name in at.inputs)
        return Subspaces(
            (
                WeightBlock(self.layer, "in", self.neurons, into),
                WeightBlock(self.layer, "out", self.neurons, (Part(at.output, single),), True),
            )
        )

    def probe(self, model: Any) -> "TracedNeurons":  # noqa: ARG002
        """The mean activation."""
        return self

    @torch.no_grad()
    def measure(self, model: Any) -> Float[Tensor, " units"]:
        """Mean activation of each neuron."""
        return self._activations(model).cpu()

    def gradients(self, model: Any, spaces: Subspaces) -> Gradients:
        """Gradient by block; a neuron's activation is moved by its own rows alone."""
        with tapped(model, spaces.modules) as taps:
            taps.differentiate(self._activations(model).sum())
            return [gradient.sum(0) for gradient in spaces.gradients(taps)]

    def _activations(self, model: Any) -> Float[Tensor, " units"]:
        device = next(model.parameters()).device
        with _read(model.get_submodule(self._at(model).output)) as seen:
            model(input_ids=self.tokens.to(device), use_cache=False)
        return full_precision(seen[0]).mean(dim=(0, 1))[list(self.neurons)]

    def _at(self, model: nn.Module) -> NeuronLayer:
        layers = neuron_layers(model)
        require(
            0 <= self.layer < len(layers),
            f"There is no layer {self.layer}; this model has layers 0 to {len(layers) - 1}.",
        )
        at = layers[self.layer]
        missing = [n for n in self.neurons if not 0 <= n < at.n_neurons]
        require(
            not missing and len(self.neurons) > 0,
            f"There is no neuron {missing[:1]}; layer {self.layer} has neurons 0 to "
            f"{at.n_neurons - 1}.",
        )
        return at


@contextmanager
def _read(module: nn.Module) -> Iterator[list[Tensor]]:
    """The inputs of a module, with their graph, for as long as the block lasts."""
    seen: list[Tensor] = []
    handle = module.register_forward_pre_hook(lambda _module, inputs: seen.append(inputs[0]))
    try:
        yield seen
    finally:
        handle.remove()
