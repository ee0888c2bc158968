"""Merges of models that share their shape: means, spherical means, and sums of differences."""

from collections.abc import Callable, Mapping

import torch
from jaxtyping import Float
from torch import Tensor

from engine.errors import ConfigError, UnsupportedModel


Weights = dict[str, Float[Tensor, "..."]]
KEPT = 0.3
"""Share of a difference's entries that TIES keeps, the largest ones."""
DROPPED = 0.5
"""Share of a difference's entries that DARE drops at random; the others are scaled up."""
_NEARLY_PARALLEL = 0.9995


def merge(kind: str, models: list[Weights], base: Weights, seed: int) -> Weights:
    """Merge models into one.

    Args:
        kind: linear, slerp, ties or dare.
        models: two or more models' weights by name; slerp takes two.
        base: the root they come from; only ties and dare read it.
        seed: seed of what DARE drops.

    Raises:
        UnsupportedModel: their shapes differ.
        ConfigError: there is no such merge.
    """
    if kind not in _MERGES:
        raise ConfigError(f"There is no merge {kind!r}; there are {', '.join(_MERGES)}.")
    for weights in models:
        _same_shapes(weights, base)
    generator = torch.Generator().manual_seed(seed)
    names = [name for name, value in base.items() if value.is_floating_point()]
    rest = {name: base[name] for name in base if name not in names}
    merged = {n: _MERGES[kind]([w[n] for w in models], base[n], generator) for n in names}
    return {**rest, **merged}


def _same_shapes(weights: Mapping[str, Tensor], base: Mapping[str, Tensor]) -> None:
    shapes = {name: value.shape for name, value in weights.items()}
    if shapes != {name: value.shape for name, value in base.items()}:
        raise UnsupportedModel("Models of different shape cannot be merged; merge siblings.")


def _linear(tensors: list[Tensor], _base: Tensor, _generator: torch.Generator) -> Tensor:
    return torch.stack(tensors).mean(0)


def _slerp(tensors: list[Tensor], _base: Tensor, _generator: torch.Generator) -> Tensor:
    """Half way along the arc between two directions, with half the angle's length."""
    first, second = tensors
    lengths = first.norm() * second.norm()
    cosine = float((first * second).sum() / lengths) if float(lengths) > 0 else 1.0
    if abs(cosine) > _NEARLY_PARALLEL:
        return (first + second) / 2
    angle = torch.arccos(torch.tensor(cosine))
    return (first + second) * torch.sin(angle / 2) / torch.sin(angle)


def _ties(tensors: list[Tensor], base: Tensor, _generator: torch.Generator) -> Tensor:
    """Largest entries only, the sign with more weight, the mean of those that have it (TIES)."""
    trimmed = torch.stack([_trim(tensor - base) for tensor in tensors])
    sign = trimmed.sum(0).sign()
    agreeing = (trimmed.sign() == sign) & (trimmed != 0)
    return base + (trimmed * agreeing).sum(0) / agreeing.sum(0).clamp(min=1)


def _trim(difference: Tensor) -> Tensor:
    count = max(1, round((1 - KEPT) * difference.numel()))
    cut = difference.abs().flatten().kthvalue(count).values
    return difference * (difference.abs() >= cut)


def _dare(tensors: list[Tensor], base: Tensor, generator: torch.Generator) -> Tensor:
    """Entries of each difference dropped at random and the others scaled up; the mean (DARE)."""
    kept = [
        (tensor - base) * (torch.rand(base.shape, generator=generator) >= DROPPED) / (1 - DROPPED)
        for tensor in tensors
    ]
    return base + torch.stack(kept).mean(0)


_MERGES: dict[str, Callable[[list[Tensor], Tensor, torch.Generator], Tensor]] = {
    "linear": _linear,
    "slerp": _slerp,
    "ties": _ties,
    "dare": _dare,
}
