"""Probes: differentiable quantities that a head's weights are asked to raise.

A probe is a quantity to *maximise*; the influence of a sample on it is positive where training
more on the sample raises it. Each head is differentiated with respect to its own blocks alone.
"""

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from engine.errors import ConfigError
from engine.mda.blocks import weight_of
from engine.mda.patterns import PATTERNS, attention_patterns
from engine.mda.subspaces import Subspaces, WeightBlock
from engine.mda.taps import Taps, tapped
from engine.numerics import full_precision


Gradients = list[Float[Tensor, "_heads _rows _columns"]]
"""One tensor a block, in the order of `Subspaces.blocks`; blocks differ in size."""


@runtime_checkable
@runtime_checkable
class Probe(Protocol):
    """A quantity with a gradient for every block."""

    def gradients(self, model: Any, spaces: Subspaces) -> Gradients:
        """Gradient by block, averaged over the probe's sequences."""
        ...


@dataclass(frozen=True)
class CopyProbe:
    """Log-probability of the tokens that copying from the first occurrence would give.

    At every position of the second copy of a repeated sequence: the token that followed the last
    earlier occurrence of the position's token. Summed over positions, averaged over sequences, in
    nats. One quantity for all heads.
    """

    tokens: Int[Tensor, "batch pos"]
    """Repeated sequences."""

    def value(self, model: Any) -> Float[Tensor, ""]:
        """The quantity, differentiable."""
        half = self.tokens.shape[1] // 2
        device = next(model.parameters()).device
        tokens = self.tokens.to(device)
        logits = full_precision(model(input_ids=tokens, use_cache=False).logits[:, half:])
        # After position half + i the token due is the one that followed its first occurrence.
        due = tokens[:, 1 : half + 1]
        return logits.log_softmax(-1).gather(2, due[:, :, None]).sum() / len(tokens)

    def gradients(self, model: Any, spaces: Subspaces) -> Gradients:
        """Gradient by block."""
        with tapped(model, spaces.modules) as taps:
            taps.differentiate(self.value(model))
            return _summed(spaces, taps)


@dataclass(frozen=True)
class PatternProbe:
    """Attention mass of each head on the targets of a pattern, by its own pattern alone.

    Summed over positions, averaged over sequences. Values and outputs do not move a head's own
    pattern, so the gradient of their blocks is zero.
    """

    pattern: str
    """Name of the pattern."""
    tokens: Int[Tensor, "batch pos"]
    """Sequences."""

    def gradients(self, model: Any, spaces: Subspaces) -> Gradients:
        """Gradient by block: each head's own pattern, differentiated by its own weights.

        Heads of a layer do not move each other's patterns, so one backward pass serves them all,
        unless they share keys or a norm.
        """
        mask = PATTERNS[self.pattern](self.tokens)
        found: Gradients = []
        with tapped(model, spaces.modules) as taps:
            patterns = attention_patterns(model, self.tokens)
            on_target = mask.to(patterns[0].device)[:, None]
            for block in spaces.blocks:
                if not isinstance(block, WeightBlock):
                    raise ConfigError("A pattern is a matter of heads; give it blocks of heads.")
                mass = (patterns[block.layer] * on_target).sum(dim=(0, 2, 3)) / len(self.tokens)
                found.append(self._gradient(model, taps, block, mass))
        return found

    def _gradient(
        self, model: Any, taps: Taps, block: WeightBlock, mass: Float[Tensor, " heads"]
    ) -> Float[Tensor, "_chosen rows columns"]:
        if block.kind != "qk":
            return self._zeros(model, block)
        if block.coupled:
            alone = [self._of(taps, block, mass[h])[i] for i, h in enumerate(block.heads)]
            return torch.stack(alone)
        return self._of(taps, block, mass[list(block.heads)].sum())

    @staticmethod
    def _of(
        taps: Taps, block: WeightBlock, value: Float[Tensor, ""]
    ) -> Float[Tensor, "heads rows columns"]:
        """Gradient of a value in the rows of a block."""
        taps.differentiate(value, names=block.modules, keep=True)
        return block.gradient(taps).sum(0)

    @staticmethod
    def _zeros(model: Any, block: WeightBlock) -> Float[Tensor, "heads rows columns"]:
        (part,) = block.sources
        weight = weight_of(model, part)
        outputs, inputs = weight.shape
        width = part.features.shape[1]
        shape = (outputs, width) if block.columns else (width, inputs)
        return torch.zeros(len(block.heads), *shape, device=weight.device)


def _summed(spaces: Subspaces, taps: Taps) -> Gradients:
    """Each block's gradient, the sequences' shares added."""
    return [gradient.sum(0) for gradient in spaces.gradients(taps)]
