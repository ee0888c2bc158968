"""Where Gradient x Input is taken: the embedding's output, or the norm that directly follows it.

The output is taken by a hook and replaced by a leaf, so that the gradient ends there: nothing below
it, and no parameter, is differentiated. A constant factor on the embedding changes nothing, since
the gradient carries its inverse.

Where a norm lies directly on the embedding (BLOOM, RWKV), the model depends on the direction of a
token's embedding alone; by Euler's theorem the product of input and gradient is then 0 for every
token and what one measures is rounding. In that case the norm's output is attributed instead.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from engine.errors import UnsupportedModel


VANISHES = 1e-4
"""Median of abs(x · g) / (‖x‖ ‖g‖) over tokens below which the product counts as vanishing; models
whose embedding has no norm on it lie above 5e-4."""


@dataclass(frozen=True)
class HookPoint:
    """The module whose output is attributed."""

    module: nn.Module
    """The module."""
    name: str
    """`embedding` or `norm`: the norm directly on the embedding."""
    homogeneity: float
    """Median of abs(x · g) / (‖x‖ ‖g‖) at the embedding's output."""


def embedding_of(model: nn.Module) -> nn.Module:
    """The input embedding.

    Raises:
        UnsupportedModel: The model does not say which module that is.
    """
    try:
        found = model.get_input_embeddings()  # pyright: ignore[reportCallIssue]
    except (AttributeError, NotImplementedError):
        found = None
    if not isinstance(found, nn.Module):
        raise UnsupportedModel(
            f"{type(model).__name__} does not say which module embeds its tokens, so it cannot be "
            "attributed."
        )
    return found


@contextmanager
def captured(module: nn.Module) -> Iterator[list[Tensor]]:
    """Replace the module's output by a leaf that takes a gradient; one leaf a call, in order."""
    leaves: list[Tensor] = []

    def replace(_module: nn.Module, _inputs: Any, output: Tensor) -> Tensor:
        leaf = output.detach().requires_grad_(True)
        leaves.append(leaf)
        return leaf

    handle = module.register_forward_hook(replace)
    try:
        yield leaves
    finally:
        handle.remove()


def find_hook_point(model: nn.Module, score: Callable[[], Tensor]) -> HookPoint:
    """Choose the module whose output is attributed.

    Args:
        model: In evaluation mode, parameters frozen.
        score: Runs the model on some rows and returns one score for each.

    Raises:
        UnsupportedModel: No gradient reaches the embedding.
    """
    embedding = embedding_of(model)
    with captured(embedding) as leaves, _first_norm(model) as norms:
        leaf, gradient = _gradient(score, leaves, type(model).__name__)
    measured = homogeneity(leaf, gradient)
    norm = norms[0] if norms else None
    directly = norm is not None and norm[1] is leaf
    if norm is not None and (directly or measured < VANISHES):
        with captured(embedding) as leaves, captured(norm[0]):
            total = score().sum()
        if total.requires_grad and _unused(total, leaves[0]):
            return HookPoint(norm[0], "norm", measured)
    return HookPoint(embedding, "embedding", measured)


def homogeneity(
    inputs: Float[Tensor, "rows pos d"], gradient: Float[Tensor, "rows pos d"]
) -> float:
    """Median over tokens of abs(x · g) / (‖x‖ ‖g‖); tokens without gradient do not count.

    Near 0 where the model is homogeneous of degree 0 in each token's embedding.
    """
    x, g = inputs.detach().double().flatten(0, 1), gradient.detach().double().flatten(0, 1)
    lengths = x.norm(dim=1) * g.norm(dim=1)
    kept = lengths > 0
    if not bool(kept.any()):
        return 0.0
    return float(((x * g).sum(1).abs()[kept] / lengths[kept]).median())


def _gradient(
    score: Callable[[], Tensor], leaves: list[Tensor], name: str
) -> tuple[Tensor, Tensor]:
    total = score().sum()
    if leaves and total.requires_grad:
        (gradient,) = torch.autograd.grad(total, leaves[0], allow_unused=True)
        if gradient is not None:
            return leaves[0], gradient
    raise UnsupportedModel(
        f"No gradient reaches the embedding of this {name}: its kernels (of quantised weights, "
        "say) have no backward pass. Use weights in full precision."
    )


def _unused(total: Tensor, leaf: Tensor) -> bool:
    """Whether nothing but what was cut off depends on the leaf."""
    return torch.autograd.grad(total, leaf, allow_unused=True)[0] is None


@contextmanager
def _first_norm(model: nn.Module) -> Iterator[list[tuple[nn.Module, Any]]]:
    """The first norm that runs, with its input."""
    found: list[tuple[nn.Module, Any]] = []

    def note(module: nn.Module, inputs: tuple[Any, ...]) -> None:
        if not found:
            found.append((module, inputs[0] if inputs else None))

    norms = [m for m in model.modules() if "norm" in type(m).__name__.lower()]
    handles = [norm.register_forward_pre_hook(note) for norm in norms]
    try:
        yield found
    finally:
        for handle in handles:
            handle.remove()
