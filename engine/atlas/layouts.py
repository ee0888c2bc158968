"""Pictures of a map in two dimensions, how far they can be trusted, and where a further model goes.

Distances on a picture are not those of embeddings. Three numbers say how far the near ones are kept
(Venna and Kaski 2001): trustworthiness is lost by false neighbours, continuity by torn ones.
"""

from dataclasses import dataclass
from hashlib import sha256

import numpy as np
from jaxtyping import Float
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE, trustworthiness

from engine.atlas.similarity import nearest, unit_rows


UMAP, TSNE_LAYOUT, PLANE = "umap", "tsne", "pca"
LAYOUTS = (UMAP, TSNE_LAYOUT, PLANE)
"""Layouts by name; UMAP runs in a process of its own and is not made here."""
LEAST = 8
"""Models below which neither UMAP nor t-SNE is drawn: there are no neighbourhoods to keep."""
PERPLEXITY = 15.0
"""Effective neighbours of a model in t-SNE."""
NEIGHBOURS = 10
"""Neighbours that quality counts."""
_BACKERS = 5
_SHARPNESS = 0.05
_OFFSET = 0.01


@dataclass(frozen=True)
class Quality:
    """How true a picture is; shares in [0, 1], 1 the best."""

    trustworthiness: float
    """1 less a penalty for neighbours on the picture that are none."""
    continuity: float
    """1 less a penalty for neighbours that are none on the picture."""
    neighbours_kept: float
    """Share of the neighbours that are neighbours on the picture."""
    n_neighbours: int
    """Neighbours that were counted."""


def tsne_plane(vectors: Float[np.ndarray, "models d"], seed: int) -> Float[np.ndarray, "models 2"]:
    """t-SNE of directions, by cosine, started from the principal plane."""
    rows = unit_rows(vectors)
    perplexity = min(PERPLEXITY, (len(rows) - 1) / 3)
    made = TSNE(
        perplexity=perplexity, metric="cosine", init="pca", random_state=seed, n_jobs=1
    ).fit_transform(rows)
    return np.asarray(made, dtype=np.float64)


def principal_plane(vectors: Float[np.ndarray, "models d"]) -> Float[np.ndarray, "models 2"]:
    """First two principal components of directions; a missing one is 0."""
    rows = unit_rows(vectors)
    n = min(2, *rows.shape)
    plane = np.zeros((len(rows), 2))
    plane[:, :n] = PCA(n, svd_solver="full").fit_transform(rows)
    return plane


def quality(
    vectors: Float[np.ndarray, "models d"], plane: Float[np.ndarray, "models 2"]
) -> Quality | None:
    """How far the plane keeps the neighbours by cosine; None for fewer than five models."""
    n = min(NEIGHBOURS, (len(plane) - 1) // 2)
    if n < 2:
        return None
    rows = unit_rows(vectors)
    before, after = nearest(rows @ rows.T, n), nearest(-_squared(plane), n)
    kept = (before[:, :, None] == after[:, None, :]).any(2).mean()
    return Quality(
        trustworthiness=float(trustworthiness(rows, plane, n_neighbors=n)),
        continuity=float(trustworthiness(plane, rows, n_neighbors=n)),
        neighbours_kept=float(kept),
        n_neighbours=n,
    )


def beside_neighbours(
    own: Float[np.ndarray, " models"], plane: Float[np.ndarray, "models 2"], name: str
) -> Float[np.ndarray, "2"]:
    """Place of a further model on a picture that stays as it is.

    The mean of the places of its nearest neighbours by cosine, at most five, weighted by
    exp((c - c_1) / 0.05) with c_1 the largest cosine, so that neighbours clearly less alike have
    no say. A small step aside, by the name alone, keeps two points apart.

    Args:
        own: Its cosine with every model of the picture.
        plane: Where these lie.
        name: Its name.
    """
    order = np.argsort(-own, kind="stable")[:_BACKERS]
    weights = np.exp((own[order] - own[order[0]]) / _SHARPNESS)
    place = (weights[:, None] * plane[order]).sum(0) / weights.sum()
    angle = int.from_bytes(sha256(name.encode()).digest()[:4], "big") / 2**32 * 2 * np.pi
    extent = float((plane.max(0) - plane.min(0)).max())
    return place + _OFFSET * extent * np.array([np.cos(angle), np.sin(angle)])


def _squared(plane: Float[np.ndarray, "models 2"]) -> Float[np.ndarray, "models models"]:
    return ((plane[:, None, :] - plane[None, :, :]) ** 2).sum(2)
