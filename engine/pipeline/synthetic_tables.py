"""The tables of a synthetic run that are small: what training and the index would have written."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np


Columns = dict[str, Any]
"""Columns of a table by name."""
_N_TOP, _PER_BAND, _N_BANDS = 12, 2, 5
_BEFORE, _AFTER = 24, 8
_N_SIGNATURE, _N_NEIGHBOURS, _VOCABULARY = 20, 12, 257
_CATEGORIES = {
    "Syntax": ("closing bracket", "indentation", "argument list"),
    "Markup": ("opening tag", "list item", "link"),
    "Words": ("function word", "name", "verb ending"),
    "Numbers": ("year", "digit run", "decimal"),
    "Topic": ("cooking", "law", "weather"),
    "Unwanted": ("insult", "explicit"),
}


@dataclass
class Tally:
    """Sums over the activations of all shards."""

    n_prototypes: int
    n_domains: int
    n_bins: int = 40
    histogram: np.ndarray = field(init=False)
    """Active tokens by prototype and bin of activation."""
    by_domain: np.ndarray = field(init=False)
    """Active tokens by prototype and domain."""
    total: np.ndarray = field(init=False)
    """Sum of activations by prototype."""
    largest: np.ndarray = field(init=False)
    """Largest activation by prototype."""

    def __post_init__(self) -> None:
        self.histogram = np.zeros((self.n_prototypes, self.n_bins), dtype=np.int64)
        self.by_domain = np.zeros((self.n_prototypes, self.n_domains), dtype=np.int64)
        self.total = np.zeros(self.n_prototypes)
        self.largest = np.zeros(self.n_prototypes)

    def add(self, prototypes: np.ndarray, activations: np.ndarray, domains: np.ndarray) -> None:
        """Count one shard; the three arrays are flat and parallel."""
        k, bins, n_domains = self.n_prototypes, self.n_bins, self.n_domains
        bin_of = np.minimum((activations * bins).astype(int), bins - 1)
        cells = np.bincount(prototypes * bins + bin_of, minlength=k * bins)
        self.histogram += cells.reshape(k, bins)
        cells = np.bincount(prototypes * n_domains + domains, minlength=k * n_domains)
        self.by_domain += cells.reshape(k, n_domains)
        self.total += np.bincount(prototypes, weights=activations, minlength=k)
        np.maximum.at(self.largest, prototypes, activations)


def training_tables(generator: np.random.Generator, domains: Sequence[str]) -> dict[str, Columns]:
    """What the training stage writes: log, evaluations, losses by domain, coverage, trade-off."""
    steps, evaluated = np.arange(1, 401), np.arange(20, 401, 20)
    fall = 3.2 + 4.5 * np.exp(-steps / 60) + generator.normal(0, 0.03, len(steps))
    bank = np.where(steps > 100, 1.0, np.nan)
    rise = 1 - np.exp(-evaluated / 120)
    empty = np.where(evaluated > 100, 1.0, np.nan)
    n_domains = len(domains)
    losses = 3.2 + generator.normal(0, 0.4, n_domains)
    return {
        "training_log": {
            "step": steps,
            "cross_entropy": fall,
            "reconstruction": bank * (0.3 + 0.5 * np.exp(-steps / 90)),
            "prototype_to_token": bank * (0.1 + 0.5 * np.exp(-steps / 70)),
            "token_to_prototype": bank * (0.1 + 0.4 * np.exp(-steps / 70)),
            "weight_scale": np.clip((steps - 100) / 100, 0, 1),
            "learning_rate": 1e-3 * np.minimum(steps / 40, 1) * (1 - 0.9 * steps / 400),
            "gradient_norm": 0.5 + generator.gamma(2, 0.1, len(steps)),
            "tokens_seen": steps * 8192,
            "seconds": 0.4 + generator.random(len(steps)) * 0.05,
        },
        "evaluations": {
            "step": evaluated,
            "validation_loss": 3.3 + 4.2 * np.exp(-evaluated / 60),
            "coverage_r1": empty * 0.93 * rise,
            "coverage_r2": empty * 0.91 * rise,
            "residual_share": empty * (1 - 0.8 * rise),
            "pair_cosine": 0.12 + 0.05 * rise,
            "participation_ratio": 20 - 4 * rise,
            "dead_share": empty * 0.2 * (1 - rise),
            "tokens_scanned": np.full(len(evaluated), 32_768),
        },
        "validation_loss": {
            "model": ["prism"] * n_domains + ["dense"] * n_domains,
            "domain": [*domains, *domains],
            "loss": np.concatenate([losses + 0.02, losses]),
            "n_tokens": np.full(2 * n_domains, 20_000),
        },
        "coverage": _coverage(),
        "tradeoff": _tradeoff(),
    }


def _coverage() -> Columns:
    return {
        "bank": ["trained", "kmeans", "random", "dense-kmeans"],
        "coverage_r1": [0.94, 0.96, 0.28, 0.95],
        "coverage_r2": [0.92, 0.93, 0.28, 0.92],
        "residual_share": [0.18, 0.25, 0.70, 0.26],
        "pair_cosine": [0.17, 0.17, 0.17, 0.12],
        "participation_ratio": [16.0, 16.0, 16.0, 20.0],
        "dead_share": [0.02, 0.0, 0.31, 0.0],
        "tokens_scanned": [100_000] * 4,
    }


def _tradeoff() -> Columns:
    weights = np.array([0.0, 0.03, 0.1, 0.3, 1.0])
    reach = weights / (weights + 0.05)
    count = len(weights)
    return {
        "arm": [f"weight {weight:g}" for weight in weights],
        "reconstruction_weight": weights,
        "prototype_to_token_weight": weights,
        "token_to_prototype_weight": weights,
        "validation_loss": 3.3 + 0.5 * weights,
        "dense_loss": np.full(count, 3.28),
        "coverage_r1": 0.4 + 0.56 * reach,
        "coverage_r2": 0.4 + 0.55 * reach,
        "residual_share": 0.8 - 0.6 * reach,
        "pair_cosine": 0.12 + 0.25 * weights,
        "participation_ratio": 20 - 14 * weights,
        "dense_participation_ratio": np.full(count, 20.0),
        "dead_share": 0.2 * (1 - reach),
        "tokens_scanned": np.full(count, 32_768),
    }


def prototype_tables(
    generator: np.random.Generator,
    tally: Tally,
    examples: Sequence[np.ndarray],
    n_tokens: int,
    domains: Sequence[str],
) -> dict[str, Columns]:
    """What the index writes of each prototype, from the sums over all shards.

    Args:
        generator: Source of what no activation determines: labels, map, signatures, neighbours.
        tally: Sums over all shards.
        examples: Document, position, prototype and activation of one shard, flat and parallel.
        n_tokens: Tokens scanned.
        domains: Domains by code.
    """
    count, bins = tally.n_prototypes, tally.n_bins
    ids = np.arange(count)
    edges = np.linspace(0, 1, bins + 1)
    unwanted = tally.by_domain[:, domains.index("unwanted")]
    chosen = np.argsort(-unwanted / np.maximum(tally.by_domain.sum(1), 1))[: max(1, count // 64)]
    return {
        "prototypes": _prototypes(generator, tally, n_tokens, domains),
        "prototype_histograms": {
            "prototype": np.repeat(ids, bins),
            "bin": np.tile(np.arange(bins), count),
            "low": np.tile(edges[:-1], count),
            "high": np.tile(edges[1:], count),
            "count": tally.histogram.ravel(),
        },
        "prototype_examples": _examples(generator, count, examples),
        "prototype_signatures": _signatures(generator, count),
        "prototype_domains": _domains(tally, n_tokens, domains),
        "prototype_neighbours": {
            "prototype": np.repeat(ids, _N_NEIGHBOURS),
            "rank": np.tile(np.arange(_N_NEIGHBOURS), count),
            "neighbour": ((ids[:, None] + 1 + 7 * np.arange(_N_NEIGHBOURS)) % count).ravel(),
            "cosine": np.tile(np.linspace(0.9, 0.4, _N_NEIGHBOURS), count),
        },
        "concepts": {
            "concept": ["NSFW"] * len(chosen),
            "prototype": chosen,
            "score": np.sort(generator.gamma(3, 0.5, len(chosen)))[::-1],
            "origin": ["synthetic"] * len(chosen),
        },
    }


def _prototypes(
    generator: np.random.Generator, tally: Tally, n_tokens: int, domains: Sequence[str]
) -> Columns:
    count = tally.n_prototypes
    active = tally.by_domain.sum(1)
    share = tally.by_domain / np.maximum(active, 1)[:, None]
    top = share.argmax(1)
    names = list(_CATEGORIES)
    category = generator.integers(0, len(names), count)
    centres = generator.normal(0, 6, (len(names), 2))
    where = centres[category] + generator.normal(0, 1.2, (count, 2))
    dead = active == 0
    return {
        "prototype": np.arange(count),
        "category": [names[code] for code in category],
        "role": [str(generator.choice(_CATEGORIES[names[code]])) for code in category],
        "label_score": np.where(dead, np.nan, np.clip(generator.normal(0.75, 0.1, count), 0, 1)),
        "random_label_score": np.where(
            dead, np.nan, np.clip(generator.normal(0.5, 0.05, count), 0, 1)
        ),
        "firing_rate": active / n_tokens,
        "n_active_tokens": active,
        "mean_activation": tally.total / np.maximum(active, 1),
        "max_activation": tally.largest,
        "norm": generator.gamma(9, 0.4, count),
        "top_domain": [None if d else domains[t] for d, t in zip(dead, top, strict=True)],
        "top_domain_share": np.where(dead, np.nan, share.max(1)),
        "n_documents": np.minimum(active, n_tokens // 500),
        "unwanted_share": share[:, domains.index("unwanted")],
        "x": where[:, 0],
        "y": where[:, 1],
    }


def _domains(tally: Tally, n_tokens: int, domains: Sequence[str]) -> Columns:
    count, n_domains = tally.by_domain.shape
    active = np.maximum(tally.by_domain.sum(1), 1)[:, None]
    share = tally.by_domain / active
    base = tally.by_domain.sum(0) / max(1, tally.by_domain.sum())
    return {
        "prototype": np.repeat(np.arange(count), n_domains),
        "domain": list(domains) * count,
        "n_active_tokens": tally.by_domain.ravel(),
        "share": share.ravel(),
        "lift": (share / np.maximum(base, 1 / n_tokens)).ravel(),
    }


def _signatures(generator: np.random.Generator, count: int) -> Columns:
    per_side = _N_SIGNATURE
    logits = np.sort(generator.gamma(2, 1.0, (count, 2, per_side)), axis=2)[:, :, ::-1]
    logits = logits * np.array([1, -1])[None, :, None]
    tokens = generator.integers(1, _VOCABULARY, (count, 1)) + 6 * np.arange(2 * per_side)
    return {
        "prototype": np.repeat(np.arange(count), 2 * per_side),
        "side": np.tile(np.repeat(["top", "bottom"], per_side), count),
        "rank": np.tile(np.arange(per_side), 2 * count),
        "token_id": (1 + tokens % (_VOCABULARY - 1)).ravel(),
        "logit": logits.ravel(),
    }


def _examples(generator: np.random.Generator, count: int, flat: Sequence[np.ndarray]) -> Columns:
    """Strongest tokens of one shard for each prototype, then every so many-th for the bands."""
    document, position, prototype, activation = flat
    order = np.lexsort((-activation, prototype))
    starts = np.searchsorted(prototype[order], np.arange(count + 1))
    rows, bands, ranks = [], [], []
    for mine in range(count):
        own = order[starts[mine] : starts[mine + 1]]
        picks = [own[:_N_TOP]]
        picks += [band[:_PER_BAND] for band in np.array_split(own[_N_TOP:], _N_BANDS)]
        for band, pick in enumerate(picks):
            rows.append(pick)
            bands.append(np.full(len(pick), band))
            ranks.append(np.arange(len(pick)))
    chosen = np.concatenate(rows)
    start = np.maximum(position[chosen] - _BEFORE, 0)
    windows = []
    for row, first in zip(chosen, start, strict=True):
        before = position[row] - first
        window = np.where(generator.random(before + 1 + _AFTER) < 0.15, activation[row], 0.0)
        window *= generator.random(len(window))
        window[before] = activation[row]
        windows.append(window.astype(np.float32))
    return {
        "prototype": prototype[chosen],
        "band": np.concatenate(bands),
        "rank": np.concatenate(ranks),
        "document": document[chosen],
        "position": position[chosen],
        "activation": activation[chosen],
        "window_start": start,
        "window_activations": windows,
    }
