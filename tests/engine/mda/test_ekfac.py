"""Curvature of a block against the same algebra written out for one head."""

from typing import Any

import pytest
import torch

from engine.mda.blocks import head_layout
from engine.mda.ekfac import JITTER, fit_curvature, sample_labels, sequence_loss
from engine.mda.settings import EkfacConfig
from engine.mda.subspaces import subspaces
from tests.engine.tiny_decoders import VOCAB, decoder


CONFIG = EkfacConfig(damping=0.07, seed=5)


@pytest.fixture(scope="module")
def rows() -> torch.Tensor:
    return torch.randint(3, VOCAB, (23, 9), generator=torch.Generator().manual_seed(4))


def seen_by(model: Any, name: str, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Input of a module and gradient at its output, with labels drawn from the model."""
    kept: dict[str, torch.Tensor] = {}

    def note(_module: Any, inputs: Any, output: torch.Tensor) -> None:
        output.retain_grad()
        kept.update(inputs=inputs[0].detach(), output=output)

    handle = model.get_submodule(name).register_forward_hook(note)
    logits = model(input_ids=rows[:, :-1]).logits
    handle.remove()
    labels = sample_labels(logits, torch.Generator().manual_seed(CONFIG.seed))
    sequence_loss(logits, labels).sum().backward()
    gradient = kept["output"].grad
    assert gradient is not None
    return kept["inputs"], gradient


def eigenvectors(vectors: torch.Tensor) -> torch.Tensor:
    """Of the mean outer product of vectors [tokens, n]."""
    factor = vectors.T @ vectors / len(vectors)
    return torch.linalg.eigh(factor + JITTER * factor.diagonal().mean() * torch.eye(len(factor)))[1]


def by_hand(inputs: torch.Tensor, outputs: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """Damped inverse of a block's curvature times a gradient [rows, columns]."""
    u, v = eigenvectors(outputs.flatten(0, 1)), eigenvectors(inputs.flatten(0, 1))
    each = [u.T @ (g.T @ x) @ v for g, x in zip(outputs, inputs, strict=True)]
    eigenvalues = torch.stack(each).square().mean(0)
    damped = eigenvalues + CONFIG.damping * eigenvalues.mean()
    return u @ ((u.T @ value @ v) / damped.clamp_min(CONFIG.floor)) @ v.T


def test_a_block_has_the_curvature_of_its_own_slice(rows: torch.Tensor):
    """Queries and keys of one head together, cut out before anything is inverted.

    Inverting the curvature of the whole map and masking afterwards gives something else: that is
    a block of the inverse and not the inverse of the block.
    """
    torch.manual_seed(0)
    model = decoder("gpt_neox", initializer_range=0.3).double()
    layout = head_layout(model)
    (block,) = (spaces := subspaces(layout, [(1, 2)], ("qk",))).blocks
    (fitted,) = fit_curvature(model, spaces, lambda: rows.split(6), CONFIG)
    value = torch.randn(1, 16, 24, dtype=torch.float64)
    found = fitted.solve(value, CONFIG)[0]
    (name,) = block.modules
    inputs, outputs = seen_by(model, name, rows)
    own = torch.cat([part.features[2] for part in block.sources])
    assert torch.allclose(found, by_hand(inputs, outputs[..., own], value[0]), rtol=1e-6)
    whole = torch.zeros(outputs.shape[-1], 24, dtype=torch.float64)
    whole[own] = value[0]
    masked = by_hand(inputs, outputs, whole)[own]
    assert (masked - found).norm() > 0.05 * found.norm()


@pytest.mark.parametrize("kind", ["v", "o"])
def test_values_and_outputs_have_curvatures_of_their_own(kind: str, rows: torch.Tensor):
    """Of the output projection the head's features are inputs."""
    torch.manual_seed(0)
    model = decoder("gpt2", initializer_range=0.3).double()
    spaces = subspaces(head_layout(model), [(0, 1)], (kind,))
    (block,) = spaces.blocks
    (fitted,) = fit_curvature(model, spaces, lambda: rows.split(6), CONFIG)
    (part,) = block.sources
    inputs, outputs = seen_by(model, part.module, rows)
    own = part.features[1]
    shape = (24, 8) if kind == "o" else (8, 24)
    value = torch.randn(1, *shape, dtype=torch.float64)
    cut = (inputs[..., own], outputs) if kind == "o" else (inputs, outputs[..., own])
    assert torch.allclose(fitted.solve(value, CONFIG)[0], by_hand(*cut, value[0]), rtol=1e-6)


def test_heads_in_one_fit_have_each_their_own_curvature(rows: torch.Tensor):
    """Grouped keys and values too: each head's factor holds its own queries."""
    torch.manual_seed(0)
    model = decoder("llama", num_key_value_heads=1, initializer_range=0.3).double()
    layout = head_layout(model)
    together = fit_curvature(model, subspaces(layout, kinds=("qk",)), lambda: [rows], CONFIG)
    alone = fit_curvature(model, subspaces(layout, [(1, 2)], ("qk",)), lambda: [rows], CONFIG)
    value = torch.randn(3, 16, 24, dtype=torch.float64)
    one = together[1].solve(value, CONFIG)[2]
    assert torch.allclose(one, alone[0].solve(value[2:], CONFIG)[0], rtol=1e-6)
