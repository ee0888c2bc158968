"""Derivations that change weights without training: pruning, rounding, noise, low rank."""

import re

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.utils import parametrize
from transformers import PreTrainedModel

from engine.config import require
from engine.errors import UnsupportedModel
from engine.zoo.architectures import is_transposed, linear_weights


_LAYER = re.compile(r"\.(?:layers|layer|h|blocks)\.(\d+)\.")
_INITIAL = 0.02


@torch.no_grad()
def prune_magnitudes(model: PreTrainedModel, share: float) -> None:
    """Set the smallest weights of every matrix to zero; embedding and head keep theirs.

    Args:
        model: changed in place.
        share: weights that go, in (0, 1).
    """
    require(0 < share < 1, f"The pruned share is {share}; it must lie between 0 and 1.")
    for module in linear_weights(model).values():
        weight = matrix(module)
        cut = weight.abs().flatten().kthvalue(max(1, round(share * weight.numel()))).values
        weight.mul_(weight.abs() > cut)


@torch.no_grad()
def round_weights(model: PreTrainedModel, bits: int) -> None:
    """Round every matrix to the nearest of 2^bits - 1 levels, symmetric, a scale an output channel.

    The rounded weights are kept as floats, so that the model has gradients everywhere.
    """
    require(2 <= bits <= 8, f"Weights cannot be rounded to {bits} bits; choose 2 to 8.")
    top = 2 ** (bits - 1) - 1
    for module in linear_weights(model).values():
        weight = matrix(module)
        scale = weight.abs().amax(0 if is_transposed(module) else 1, keepdim=True) / top
        scale.clamp_(min=torch.finfo(scale.dtype).tiny)
        weight.copy_((weight / scale).round_().mul_(scale))


@torch.no_grad()
def add_noise(model: PreTrainedModel, relative: float, seed: int) -> None:
    """Add normal noise to every matrix, its standard deviation a share of the matrix's own."""
    generator = torch.Generator().manual_seed(seed)
    for module in linear_weights(model).values():
        weight = matrix(module)
        noise = torch.randn(weight.shape, generator=generator)
        weight.add_(noise, alpha=relative * float(weight.std()))


@torch.no_grad()
def redraw_last_layer(model: PreTrainedModel, seed: int) -> None:
    """Draw the matrices of the last layer anew and set their biases to zero; norms stay."""
    generator = torch.Generator().manual_seed(seed)
    modules = linear_weights(model)
    last = max(layer_of(name) for name in modules)
    for name, module in modules.items():
        if layer_of(name) == last:
            weight = matrix(module)
            weight.copy_(_INITIAL * torch.randn(weight.shape, generator=generator))
            bias = getattr(module, "bias", None)
            if isinstance(bias, nn.Parameter):
                bias.zero_()


def layer_of(name: str) -> int:
    """Layer that a weight or module belongs to; -1 outside the layers."""
    found = _LAYER.search(f"{name}.")
    return int(found[1]) if found else -1


def without_layer(
    weights: dict[str, Float[Tensor, "..."]], dropped: int
) -> dict[str, Float[Tensor, "..."]]:
    """Weights by name without those of one layer; later layers move down.

    Raises:
        UnsupportedModel: there is no such layer.
    """
    layers = {layer_of(name) for name in weights}
    if dropped not in layers or dropped < 0:
        raise UnsupportedModel(f"The model has no layer {dropped}; it has {max(layers) + 1}.")
    kept: dict[str, Tensor] = {}
    for name, value in weights.items():
        layer = layer_of(name)
        if layer > dropped:
            name = _LAYER.sub(lambda m: m[0].replace(m[1], str(int(m[1]) - 1)), name)
        if layer != dropped:
            kept[name] = value
    return kept


class LowRank(nn.Module):
    """A weight plus the product of two thin matrices, of which the second starts at zero."""

    def __init__(self, weight: Float[Tensor, "rows columns"], rank: int, seed: int) -> None:
        """Draw the first matrix; scale as usual for low-rank adapters with alpha twice the rank."""
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        rows, columns = weight.shape
        self.down = nn.Parameter(torch.randn(rank, columns, generator=generator) / columns**0.5)
        self.up = nn.Parameter(torch.zeros(rows, rank))

    def forward(self, weight: Float[Tensor, "rows columns"]) -> Float[Tensor, "rows columns"]:
        """The changed weight."""
        return weight + 2.0 * self.up @ self.down


def add_low_rank(model: PreTrainedModel, rank: int, seed: int) -> None:
    """Give every matrix a low-rank update that alone is trained; all other weights are frozen."""
    model.requires_grad_(False)
    for number, module in enumerate(linear_weights(model).values()):
        update = LowRank(matrix(module), rank, seed + number)
        parametrize.register_parametrization(module, "weight", update)


def merge_low_rank(model: PreTrainedModel) -> None:
    """Add the updates to the weights and remove them; all weights are trainable again."""
    for module in [m for m in model.modules() if parametrize.is_parametrized(m)]:
        parametrize.remove_parametrizations(module, "weight", leave_parametrized=True)
    model.requires_grad_(True)


def matrix(module: nn.Module) -> Float[Tensor, "rows columns"]:
    """The weight of a module of `linear_weights`."""
    weight = module.weight
    assert isinstance(weight, Tensor)
    return weight
