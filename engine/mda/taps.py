"""Inputs and output gradients of the attention projections, read during one backward pass.

Nothing but the tapped outputs asks for a gradient, so a pass costs a forward, and a backward
through activations alone; no weight gets a `.grad`. Queries and keys are read before rotary
position embedding and before any query or key norm, where their gradient is the weight's.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from engine.numerics import full_precision


class Taps:
    """What the tapped modules saw in the latest forward and backward pass.

    Attributes:
        inputs: by module, [batch, pos, in].
        gradients: by module, of whatever was differentiated, [batch, pos, out].
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self.inputs: dict[str, Tensor] = {}
        self.outputs: dict[str, Tensor] = {}
        self.gradients: dict[str, Tensor] = {}
        self._whole: dict[str, Tensor] = {}

    def differentiate(
        self, value: Tensor, *, names: Sequence[str] | None = None, keep: bool = False
    ) -> None:
        """Gradients of a scalar at tapped outputs; zero where it does not reach.

        Args:
            value: what is differentiated.
            names: modules at whose outputs; all if None.
            keep: keep the graph for another call.
        """
        names = self.names if names is None else names
        outputs = [self.outputs[name] for name in names]
        found = torch.autograd.grad(value, outputs, retain_graph=keep, allow_unused=True)
        self._whole.clear()
        for name, output, gradient in zip(names, outputs, found, strict=True):
            kept = torch.zeros_like(output) if gradient is None else gradient
            self.gradients[name] = full_precision(kept.detach())

    def weight_gradient(self, name: str) -> Float[Tensor, "batch out inp"]:
        """Gradient of each sequence's share with respect to the module's weight, as [out, in].

        Contracted once a backward pass, and held until `release`.
        """
        if name not in self._whole:
            inputs = full_precision(self.inputs[name])
            self._whole[name] = torch.einsum("bto,bti->boi", self.gradients[name], inputs)
        return self._whole[name]

    def release(self, name: str) -> None:
        """Let a module's weight gradient go."""
        self._whole.pop(name, None)

    def leave_out(self, sequence: int) -> None:
        """Take a sequence out of the pass: it reads and writes zeros."""
        for values in self._seen():
            values[sequence] = 0
        self._whole.clear()

    def finite(self) -> Bool[Tensor, " batch"]:
        """Which sequences have finite inputs and gradients everywhere."""
        found = [v.isfinite().flatten(1).all(1) for v in self._seen()]
        return torch.stack(found).all(0)

    def _seen(self) -> list[Tensor]:
        return [*self.inputs.values(), *self.gradients.values()]


@contextmanager
def tapped(model: nn.Module, names: Sequence[str]) -> Iterator[Taps]:
    """Tap modules of a frozen model for as long as the block lasts.

    Parameters stop asking for gradients and ask again afterwards as they did before.
    """
    taps = Taps(names)
    asked = [parameter for parameter in model.parameters() if parameter.requires_grad]
    handles = [
        model.get_submodule(name).register_forward_hook(_hook(taps, name)) for name in taps.names
    ]
    for parameter in asked:
        parameter.requires_grad_(False)
    try:
        yield taps
    finally:
        for handle in handles:
            handle.remove()
        for parameter in asked:
            parameter.requires_grad_(True)


def _hook(taps: Taps, name: str) -> Any:
    def note(_module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor:
        taps.inputs[name] = inputs[0].detach()
        if not output.requires_grad:
            output = output.detach().requires_grad_(True)
        taps.outputs[name] = output
        return output

    return note
