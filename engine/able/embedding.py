"""From attribution to embedding: the paper's way and what can be changed about it.

    v = all word attributions of all options;  e = project(v / ‖v‖)

The length is taken away before the projection, as in the paper; since the projection is linear,
taking it away afterwards would change no cosine. Lengths are exactly rounded sums, so they too
depend on no order.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Float32

from engine.able.columns import Columns
from engine.able.projection import project
from engine.able.words import WordRule
from engine.config import MAX_SEED, require, require_within
from engine.errors import UnsupportedModel


if TYPE_CHECKING:
    from engine.able.model import ModelAttribution

ABLE, PAPER, CONTRAST = "able", "paper", "contrast"


@dataclass(frozen=True, kw_only=True)
class EmbeddingSettings:
    """How a model's attribution becomes its embedding."""

    words: WordRule = "stripped"
    """Rule for spaces and for tokens that span nothing."""
    square_root: bool = False
    """Take the signed square root of every entry first, so that no few of them dominate."""
    per_probe: bool = False
    """Bring the entries of every probe to length 1 first."""
    contrast: bool = False
    """Take the mean over a probe's options from every option's entries first: what raises all of
    them alike goes, what speaks for one against another stays. Not of the paper."""
    correct_only: bool = False
    """Keep the entries of the right option alone."""
    n_dimensions: int = 256
    """Dimensions of the embedding (paper: K)."""
    seed: int = 0
    """Seed of the projection's signs."""

    def __post_init__(self) -> None:
        require(
            self.n_dimensions >= 1, f"n_dimensions is {self.n_dimensions}; it must be 1 or more."
        )
        require_within(self, 0, MAX_SEED, "seed")


VARIANTS: dict[str, EmbeddingSettings] = {
    ABLE: EmbeddingSettings(),
    PAPER: EmbeddingSettings(words="paper"),
    "square_root": EmbeddingSettings(square_root=True),
    "per_probe": EmbeddingSettings(per_probe=True),
    "correct_only": EmbeddingSettings(correct_only=True),
    CONTRAST: EmbeddingSettings(contrast=True, square_root=True),
}
"""The embedding, the paper's own rule for spaces, ablations, and what tells relatives best, by
name."""


def vector(
    attribution: "ModelAttribution", settings: EmbeddingSettings
) -> Float[np.ndarray, " columns"]:
    """The long vector of length 1 that is projected; also the ablation without a projection.

    Columns that the settings leave out are 0.

    Raises:
        UnsupportedModel: Every entry is 0.
    """
    columns = attribution.columns
    values = attribution.of_rule(settings.words).astype(np.float64)
    if settings.correct_only:
        values = np.where(columns.correct, values, 0.0)
    if settings.contrast:
        values = option_contrast(values, columns)
    if settings.square_root:
        values = np.sign(values) * np.sqrt(np.abs(values))
    if settings.per_probe:
        values = _per_probe(values, columns)
    length = exact_length(values)
    if length == 0:
        raise UnsupportedModel(
            f"No attribution of {attribution.name} differs from 0, so it has no direction to embed."
        )
    return values / length


def embed(
    attribution: "ModelAttribution", settings: EmbeddingSettings | None = None
) -> Float32[np.ndarray, " dimensions"]:
    """The embedding of one model; about length 1.

    Raises:
        UnsupportedModel: Every attribution is 0.
    """
    settings = settings or EmbeddingSettings()
    long = vector(attribution, settings)
    keys = attribution.columns.keys
    return project(long[None], keys, settings.n_dimensions, settings.seed)[0]


def embed_variants(
    attribution: "ModelAttribution", variants: dict[str, EmbeddingSettings]
) -> dict[str, Float32[np.ndarray, " dimensions"]]:
    """Embeddings by name, bit for bit those of `embed`; signs are hashed once for all of them.

    Raises:
        UnsupportedModel: Every attribution is 0.
    """
    found: dict[str, Float32[np.ndarray, " dimensions"]] = {}
    for shape in {(settings.n_dimensions, settings.seed) for settings in variants.values()}:
        names = [n for n, each in variants.items() if (each.n_dimensions, each.seed) == shape]
        long = np.stack([vector(attribution, variants[name]) for name in names])
        short = project(long, attribution.columns.keys, *shape)
        found |= dict(zip(names, short, strict=True))
    return {name: found[name] for name in variants}


def option_contrast(
    values: Float[np.ndarray, "*models columns"], columns: Columns
) -> Float[np.ndarray, "*models columns"]:
    """Entries less their mean over the options of the probe, word by word."""
    found = np.array(values, dtype=np.float64)
    for probe in range(len(columns.probes)):
        own = columns.block(probe)
        shape = (*found.shape[:-1], int(columns.n_options[probe]), int(columns.n_words[probe]))
        block = found[..., own].reshape(shape)
        centred = block - block.mean(-2, keepdims=True)
        found[..., own] = centred.reshape(*found.shape[:-1], -1)
    return found


def principal_components(
    vectors: Float[np.ndarray, "models columns"], share: float = 0.95
) -> Float[np.ndarray, "models components"]:
    """Coordinates on the fewest principal components that hold `share` of the variance.

    An ablation: every model's coordinates depend on all the others. By the models' own products, so
    columns may be many. The sign of a component is that of its largest coordinate.
    """
    require(0 < share <= 1, f"The share of variance is {share}; it must lie in (0, 1].")
    centred = vectors - vectors.mean(0)
    values, directions = np.linalg.eigh(centred @ centred.T)
    values, directions = np.maximum(values[::-1], 0), directions[:, ::-1]
    total = values.sum()
    if total == 0:
        return np.zeros((len(vectors), 1))
    kept = int(np.searchsorted(np.cumsum(values) / total, share - 1e-12)) + 1
    found = directions[:, :kept] * np.sqrt(values[:kept])
    largest = found[np.abs(found).argmax(0), np.arange(kept)]
    return found * np.where(largest < 0, -1.0, 1.0)


def centred_log_probabilities(
    log_probabilities: Float[np.ndarray, "models options"], columns: Columns
) -> Float[np.ndarray, "models options"]:
    """The output-side baseline: log-probabilities less their mean over a probe's options."""
    centred = log_probabilities.astype(np.float64)
    for probe in range(len(columns.probes)):
        own = columns.options_of(probe)
        centred[:, own] -= centred[:, own].mean(1, keepdims=True)
    return centred


def exact_length(values: Float[np.ndarray, " columns"]) -> float:
    """Euclidean length, its sum of squares rounded once and so in no order."""
    return math.sqrt(math.fsum((values * values).tolist()))


def _per_probe(values: Float[np.ndarray, " columns"], columns: Columns) -> np.ndarray:
    found = values.copy()
    for probe in range(len(columns.probes)):
        own = columns.block(probe)
        length = exact_length(values[own])
        if length > 0:
            found[own] /= length
    return found
