"""A bank from warm states: directions by spherical k-means, lengths by least squares."""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from engine.errors import ConfigError
from engine.numerics import full_precision, unit_vectors
from engine.prism.activation import DEFAULT_CHUNK, nearest_prototypes, reconstruct, scatter_sum


SHORTEST = 0.25
"""Shortest prototype a fit may choose, as a share of the common length."""

RIDGE = 0.05
"""Pull of each length towards the common one, as a share of the mean curvature."""


def spherical_kmeans(
    states: Float[Tensor, "tokens d_model"],
    n_clusters: int,
    *,
    iterations: int = 15,
    seed: int = 0,
    chunk: int = DEFAULT_CHUNK,
) -> Float[Tensor, "clusters d_model"]:
    """Unit centroids that make the mean cosine of each state with its nearest one large.

    Lloyd's algorithm on directions, started from distinct states drawn with `seed`. A cluster
    left empty restarts at one of the states that are worst covered.
    """
    if len(states) < n_clusters:
        raise ConfigError(
            f"{n_clusters} prototypes cannot be fitted to {len(states)} states; "
            "use more tokens or fewer prototypes."
        )
    units = unit_vectors(full_precision(states))
    generator = torch.Generator().manual_seed(seed)
    start = torch.randperm(len(units), generator=generator)[:n_clusters].to(units.device)
    centroids = units[start].clone()
    for _ in range(iterations):
        cosines, nearest = nearest_prototypes(units, centroids, 1, chunk)
        centroids = _move(units, nearest, cosines[:, 0], n_clusters)
    return centroids


def _move(
    units: Float[Tensor, "tokens d_model"],
    nearest: Int[Tensor, "tokens 1"],
    cosines: Float[Tensor, " tokens"],
    n_clusters: int,
) -> Float[Tensor, "clusters d_model"]:
    """Centroids of the assigned states; empty clusters go to the worst covered states."""
    sums = scatter_sum(torch.ones_like(cosines)[:, None], nearest, units, n_clusters)
    empty = torch.bincount(nearest[:, 0], minlength=n_clusters) == 0
    if bool(empty.any()):
        worst = cosines.topk(int(empty.sum()), largest=False).indices
        sums[empty] = units[worst]
    return unit_vectors(sums)


def bank_from_states(
    states: Float[Tensor, "tokens d_model"],
    n_prototypes: int,
    n_active: int,
    *,
    iterations: int = 15,
    seed: int = 0,
    chunk: int = DEFAULT_CHUNK,
) -> Float[Tensor, "prototypes d_model"]:
    """Bank whose directions are k-means centroids and whose k-term sums rebuild the states."""
    units = spherical_kmeans(states, n_prototypes, iterations=iterations, seed=seed, chunk=chunk)
    return units * fit_lengths(states, units, n_active, chunk=chunk)[:, None]


@torch.no_grad()
def fit_lengths(
    states: Float[Tensor, "tokens d_model"],
    unit_prototypes: Float[Tensor, "prototypes d_model"],
    n_active: int,
    *,
    iterations: int = 40,
    chunk: int = DEFAULT_CHUNK,
) -> Float[Tensor, " prototypes"]:
    """Lengths s that make mean_t |z_t - sum_i a_ti s_i q_i|^2 / |z_t|^2 small.

    The activations depend on directions alone, so this is least squares, solved by conjugate
    gradients from the best common length c, with a small ridge towards c (a prototype that is
    rarely active stays there) and a floor of `SHORTEST` times c.
    """
    states = full_precision(states)
    targets = unit_vectors(states)
    cosines, indices = nearest_prototypes(targets, unit_prototypes, n_active, chunk)
    scale = states.norm(dim=-1).clamp_min(torch.finfo(states.dtype).tiny)
    relative = cosines.clamp_min(0) / scale[:, None]

    def rebuild(lengths: Tensor) -> Tensor:
        return reconstruct(relative * lengths[indices], indices, unit_prototypes)

    def project(vectors: Tensor) -> Tensor:
        return (
            scatter_sum(relative, indices, vectors, len(unit_prototypes)) * unit_prototypes
        ).sum(-1)

    ones = torch.ones_like(unit_prototypes[:, 0])
    together = rebuild(ones)
    common = (together * targets).sum() / together.square().sum()
    ridge = RIDGE * project(together).mean()
    offset = _conjugate_gradients(
        lambda x: project(rebuild(x)) + ridge * x,
        project(targets - common * together),
        iterations,
    )
    return (common + offset).clamp_min(SHORTEST * common)


def _conjugate_gradients(
    apply: Callable[[Tensor], Tensor], target: Tensor, iterations: int
) -> Tensor:
    """Solve apply(x) = target for a symmetric positive definite `apply`, from x = 0."""
    solution = torch.zeros_like(target)
    residual = target.clone()
    direction = residual.clone()
    squared = residual.square().sum()
    limit = squared * 1e-10
    for _ in range(iterations):
        if bool(squared <= limit):
            break
        image = apply(direction)
        step = squared / (direction * image).sum()
        solution += step * direction
        residual -= step * image
        previous, squared = squared, residual.square().sum()
        direction = residual + squared / previous * direction
    return solution
