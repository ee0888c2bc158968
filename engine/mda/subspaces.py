"""Parameter subspaces of heads: their gradients, cut out before anything is inverted.

Three blocks a head (MDA, section 3): `qk`, the query and key rows jointly, [2 d_head × d_model];
`v`, the value rows, [d_head × d_model]; `o`, the output projection's columns, [d_model × d_head].
The blocks are treated as independent. Biases are left out.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal, get_args

import torch
from jaxtyping import Float
from torch import Tensor

from engine.errors import ConfigError
from engine.mda.blocks import HeadLayout, Part
from engine.mda.taps import Taps
from engine.numerics import full_precision


Kind = Literal["qk", "v", "o"]
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True)
class Block(ABC):
    """One kind of block of some heads, or other units, of one layer.

    `heads` are the units it covers, in order; every result has them as an axis. Its gradient is a
    sum over tokens of an outer product, output gradient by input.
    """

    layer: int
    kind: str
    heads: tuple[int, ...]

    @property
    @abstractmethod
    def modules(self) -> tuple[str, ...]:
        """Modules that must be tapped."""

    @abstractmethod
    def gradient(self, taps: Taps) -> Float[Tensor, "batch heads rows columns"]:
        """Each sequence's gradient of the block."""

    @abstractmethod
    def tokens(
        self, taps: Taps
    ) -> tuple[Float[Tensor, "tokens _shared _inp"], Float[Tensor, "tokens _shared _out"]]:
        """Inputs and output gradients at every token; the axis is 1 where units share them."""


@dataclass(frozen=True)
class WeightBlock(Block):
    """Rows or columns of linear maps, cut from the gradients of the whole maps."""

    sources: tuple[Part, ...] = field(repr=False, compare=False)
    """The parts whose weights the block is cut from; those of one block have one input."""
    columns: bool = False
    """Whether the parts are columns of their weight (what a unit writes by) and not rows."""
    coupled: bool = field(default=False, compare=False)
    """Whether the weights of one head move what is measured of another of the same layer."""

    @property
    def modules(self) -> tuple[str, ...]:
        """Modules that must be tapped."""
        return tuple(dict.fromkeys(part.module for part in self.sources))

    def gradient(self, taps: Taps) -> Float[Tensor, "batch heads rows columns"]:
        """Each sequence's gradient of the block, cut from those of whole modules."""
        chosen = list(self.heads)
        if self.columns:
            (part,) = self.sources
            whole = taps.weight_gradient(part.module)
            return whole[:, :, part.features[chosen]].permute(0, 2, 1, 3)
        cut = [taps.weight_gradient(p.module)[:, p.features[chosen]] for p in self.sources]
        return torch.cat(cut, dim=2)

    def tokens(
        self, taps: Taps
    ) -> tuple[Float[Tensor, "tokens _shared _inp"], Float[Tensor, "tokens _shared _out"]]:
        """Inputs and output gradients at every token; the axis is 1 where heads share them."""
        chosen = list(self.heads)
        inputs = full_precision(taps.inputs[self.sources[0].module]).flatten(0, 1)
        if self.columns:
            (part,) = self.sources
            outputs = taps.gradients[part.module].flatten(0, 1)
            return inputs[:, part.features[chosen]], outputs[:, None]
        cut = [
            taps.gradients[part.module].flatten(0, 1)[:, part.features[chosen]]
            for part in self.sources
        ]
        return inputs[:, None], torch.cat(cut, dim=2)


@dataclass(frozen=True)
class Subspaces:
    """The blocks of the units that are looked at, layer by layer."""

    blocks: tuple[Block, ...]

    @property
    def modules(self) -> tuple[str, ...]:
        """Modules that must be tapped."""
        return tuple(dict.fromkeys(name for block in self.blocks for name in block.modules))

    @property
    def heads(self) -> tuple[tuple[int, int], ...]:
        """(layer, head) of every head, each once, in order."""
        return tuple(dict.fromkeys((b.layer, head) for b in self.blocks for head in b.heads))

    def gradients(self, taps: Taps) -> Iterator[Float[Tensor, "batch _heads _rows _columns"]]:
        """Each block's gradient by sequence, in order.

        A whole module is contracted once and let go with the last block that is cut from it, so
        that beside the blocks themselves those of one layer exist at once: batch × out × in
        numbers a module.
        """
        last = {name: at for at, block in enumerate(self.blocks) for name in block.modules}
        for at, block in enumerate(self.blocks):
            yield block.gradient(taps)
            for name in block.modules:
                if last[name] == at:
                    taps.release(name)


def subspaces(
    layout: HeadLayout,
    heads: Iterable[tuple[int, int]] | None = None,
    kinds: tuple[Kind, ...] = KINDS,
) -> Subspaces:
    """Blocks of the given heads, of every head if None.

    Raises:
        ConfigError: a head or kind does not exist, or there is none.
    """
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown or not kinds:
        raise ConfigError(f"{unknown or 'No'} block; choose from {', '.join(KINDS)}.")
    if heads is None:
        chosen = {layer: tuple(range(layout.n_heads)) for layer in range(layout.n_layers)}
    else:
        chosen = {}
        for layer, head in sorted(set(heads)):
            layout.check(layer, head)
            chosen[layer] = (*chosen.get(layer, ()), head)
    if not chosen:
        raise ConfigError("No head is named; write LAYER.HEAD, 1.3 for example, or --all.")
    blocks = tuple(
        _block(layout, layer, kind, chosen[layer]) for layer in sorted(chosen) for kind in kinds
    )
    return Subspaces(blocks)


def _block(layout: HeadLayout, layer: int, kind: Kind, heads: tuple[int, ...]) -> WeightBlock:
    at = layout.layers[layer]
    sources = {"qk": (at.query, at.key), "v": (at.value,), "o": (at.output,)}[kind]
    coupled = at.coupled or layout.grouped
    return WeightBlock(layer, kind, heads, sources, columns=kind == "o", coupled=coupled)
