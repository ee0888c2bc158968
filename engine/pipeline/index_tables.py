"""Columns of the index's tables, from what the passes found."""

from typing import Any

import numpy as np
from jaxtyping import Float

from engine.pipeline.examples import Examples
from engine.pipeline.index_examples import WindowActivations
from engine.pipeline.index_statistics import PrototypeStatistics
from engine.pipeline.index_windows import UNWANTED
from engine.prism.labels.label import Label
from engine.prism.neighbours import Nearest, Signature


LEAST_DOMAIN_TOKENS = 3
"""Active tokens a domain needs before its lift counts as a prototype's largest."""


def prototype_columns(
    statistics: PrototypeStatistics,
    domains: tuple[str, ...],
    labels: list[Label],
    norms: Float[np.ndarray, " prototypes"],
    coordinates: Float[np.ndarray, "prototypes 2"],
) -> dict[str, Any]:
    """Columns of `prototypes`."""
    counts = statistics.counts
    shares = statistics.domain_counts / np.maximum(counts, 1)[:, None]
    # A domain in which a prototype fired once or twice may have a huge lift that means nothing.
    enough = np.minimum(LEAST_DOMAIN_TOKENS, statistics.domain_counts.max(axis=1, initial=1))
    lift = np.where(statistics.domain_counts >= enough[:, None], statistics.lift(), -1.0)
    best = lift.argmax(axis=1)
    active = counts > 0
    rows = np.arange(len(counts))
    top_share = shares[rows, best].astype(np.float32)
    unwanted = domains.index(UNWANTED) if UNWANTED in domains else None
    return {
        "prototype": rows.astype(np.int32),
        "category": [label.category for label in labels],
        "role": [label.role for label in labels],
        "label_score": _optional([label.score for label in labels]),
        "random_label_score": _optional([label.random_score for label in labels]),
        "firing_rate": counts / max(statistics.n_tokens, 1),
        "n_active_tokens": counts,
        "mean_activation": statistics.mean,
        "max_activation": statistics.largest,
        "norm": norms,
        "top_domain": [domains[b] if a else None for a, b in zip(active, best, strict=True)],
        "top_domain_share": np.where(active, top_share, np.nan),
        "n_documents": statistics.n_documents,
        "unwanted_share": np.zeros(len(counts)) if unwanted is None else shares[:, unwanted],
        "x": coordinates[:, 0],
        "y": coordinates[:, 1],
    }


def _optional(values: list[float | None]) -> Float[np.ndarray, " n"]:
    return np.array([np.nan if value is None else value for value in values], np.float32)


def histogram_columns(statistics: PrototypeStatistics) -> dict[str, Any]:
    """Columns of `prototype_histograms`: every bin of every prototype."""
    n_prototypes, n_bins = statistics.histogram.shape
    bins = np.tile(np.arange(n_bins), n_prototypes)
    return {
        "prototype": np.repeat(np.arange(n_prototypes, dtype=np.int32), n_bins),
        "bin": bins.astype(np.int16),
        "low": bins / n_bins,
        "high": (bins + 1) / n_bins,
        "count": statistics.histogram.ravel(),
    }


def domain_columns(statistics: PrototypeStatistics, domains: tuple[str, ...]) -> dict[str, Any]:
    """Columns of `prototype_domains`: domains in which a prototype is active at all."""
    counts, lift = statistics.domain_counts, statistics.lift()
    prototype, domain = np.nonzero(counts)
    return {
        "prototype": prototype.astype(np.int32),
        "domain": [domains[number] for number in domain],
        "n_active_tokens": counts[prototype, domain],
        "share": counts[prototype, domain] / statistics.counts[prototype],
        "lift": lift[prototype, domain],
    }


def example_columns(examples: Examples, windows: WindowActivations) -> dict[str, Any]:
    """Columns of `prototype_examples`."""
    pairs = examples.pairs
    return {
        "prototype": pairs.prototype.astype(np.int32),
        "band": examples.band.astype(np.int8),
        "rank": examples.rank.astype(np.int16),
        "document": pairs.document.astype(np.int32),
        "position": pairs.position.astype(np.int32),
        "activation": pairs.activation.astype(np.float32),
        "window_start": examples.start.astype(np.int32),
        "window_activations": windows.column(),
    }


def neighbour_columns(nearest: Nearest) -> dict[str, Any]:
    """Columns of `prototype_neighbours`."""
    n_prototypes, n = nearest.neighbour.shape
    return {
        "prototype": np.repeat(np.arange(n_prototypes, dtype=np.int32), n),
        "rank": np.tile(np.arange(n, dtype=np.int16), n_prototypes),
        "neighbour": nearest.neighbour.cpu().numpy().ravel().astype(np.int32),
        "cosine": nearest.cosine.cpu().numpy().ravel(),
    }


def signature_columns(signature: Signature) -> dict[str, Any]:
    """Columns of `prototype_signatures`."""
    n_prototypes, n = signature.top_tokens.shape
    sides = {
        "bottom": (signature.bottom_tokens, signature.bottom_logits),
        "top": (signature.top_tokens, signature.top_logits),
    }
    tokens = np.stack([t.cpu().numpy() for t, _ in sides.values()], axis=1)
    logits = np.stack([x.cpu().numpy() for _, x in sides.values()], axis=1)
    return {
        "prototype": np.repeat(np.arange(n_prototypes, dtype=np.int32), 2 * n),
        "side": np.tile(np.repeat(list(sides), n), n_prototypes),
        "rank": np.tile(np.arange(n, dtype=np.int16), 2 * n_prototypes),
        "token_id": tokens.ravel().astype(np.int32),
        "logit": logits.ravel(),
    }
