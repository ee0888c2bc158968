"""Counts, means and histograms of every prototype, summed over shards exactly."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from engine.pipeline.examples import Pairs


FINE_BINS = 1024
"""Bins over [0, 1] from which quantiles are read."""


@dataclass(frozen=True)
class Bands:
    """Quantile band of every activation of every prototype."""

    band: Int[np.ndarray, "prototypes fine_bins"]
    """0 for the highest activations; by the middle of the fine bin's own quantiles."""
    n_bands: int

    def groups(self, pairs: Pairs) -> Int[np.ndarray, " n"]:
        """Prototype * n_bands + band of each pair."""
        band = self.band[pairs.prototype, bin_of(pairs.activation, FINE_BINS)]
        return pairs.prototype.astype(np.int64) * self.n_bands + band


def bin_of(activation: Float[np.ndarray, " n"], n_bins: int) -> Int[np.ndarray, " n"]:
    """Bin of an activation over [0, 1]; the last bin holds 1 and what rounding puts above."""
    return np.minimum((activation.astype(np.float32) * n_bins).astype(np.int64), n_bins - 1)


class PrototypeStatistics:
    """Sums over all active pairs.

    Activations are float16, so multiples of 2^-24: their float64 sums are exact and do not depend
    on how the stream is cut.
    """

    def __init__(self, n_prototypes: int, n_domains: int, n_bins: int) -> None:
        self.n_tokens = 0
        self.n_bins = n_bins
        self.counts = np.zeros(n_prototypes, np.int64)
        self.total = np.zeros(n_prototypes)
        self.largest = np.zeros(n_prototypes, np.float32)
        self.histogram = np.zeros((n_prototypes, n_bins), np.int64)
        self.fine = np.zeros((n_prototypes, FINE_BINS), np.int32)
        self.domain_counts = np.zeros((n_prototypes, n_domains), np.int64)
        self.domain_mass = np.zeros((n_prototypes, n_domains))
        self.domain_tokens = np.zeros(n_domains, np.int64)
        self.n_documents = np.zeros(n_prototypes, np.int64)
        self._last_document = np.full(n_prototypes, -1, np.int64)

    def update(
        self,
        pairs: Pairs,
        pair_domain: Int[np.ndarray, " n"],
        token_domain: Int[np.ndarray, " tokens"],
    ) -> None:
        """Add a shard; its documents come after those of earlier shards (one may continue)."""
        n_prototypes, n_domains = self.domain_counts.shape
        self.n_tokens += len(token_domain)
        self.domain_tokens += np.bincount(token_domain, minlength=n_domains)
        prototype = pairs.prototype.astype(np.int64)
        activation = pairs.activation.astype(np.float64)
        self.counts += np.bincount(prototype, minlength=n_prototypes)
        self.total += np.bincount(prototype, weights=activation, minlength=n_prototypes)
        np.maximum.at(self.largest, prototype, pairs.activation.astype(np.float32))
        for table, n_bins in ((self.histogram, self.n_bins), (self.fine, FINE_BINS)):
            cells = prototype * n_bins + bin_of(pairs.activation, n_bins)
            table += (
                np.bincount(cells, minlength=table.size).reshape(table.shape).astype(table.dtype)
            )
        cells = prototype * n_domains + pair_domain
        shape = self.domain_counts.shape
        self.domain_counts += np.bincount(cells, minlength=n_prototypes * n_domains).reshape(shape)
        self.domain_mass += np.bincount(
            cells, weights=activation, minlength=n_prototypes * n_domains
        ).reshape(shape)
        self._count_documents(prototype, pairs.document.astype(np.int64))

    def _count_documents(
        self, prototype: Int[np.ndarray, " n"], document: Int[np.ndarray, " n"]
    ) -> None:
        """Count documents a prototype has not been seen in; documents only rise."""
        small = len(self.counts) <= 2**16
        key = prototype.astype(np.uint16) if small else prototype
        order = np.argsort(key, kind="stable")
        prototype, document = prototype[order], document[order]
        if len(order) == 0:
            return
        starts = np.concatenate([[True], prototype[1:] != prototype[:-1]])
        before = np.where(starts, self._last_document[prototype], np.roll(document, 1))
        self.n_documents += np.bincount(
            prototype[document != before], minlength=len(self.n_documents)
        )
        ends = np.concatenate([starts[1:], [True]])
        self._last_document[prototype[ends]] = document[ends]

    @property
    def mean(self) -> Float[np.ndarray, " prototypes"]:
        """Mean activation where active; 0 for a prototype that never is."""
        return self.total / np.maximum(self.counts, 1)

    def bands(self, n_bands: int) -> Bands:
        """Quantile bands with equal counts as far as whole fine bins allow."""
        above = np.cumsum(self.fine[:, ::-1], axis=1)[:, ::-1] - self.fine
        middle = (above + self.fine / 2) / np.maximum(self.counts, 1)[:, None]
        band = np.minimum((middle * n_bands).astype(np.int16), n_bands - 1)
        return Bands(band, n_bands)

    def lift(self) -> Float[np.ndarray, "prototypes domains"]:
        """Firing rate in a domain over the firing rate overall; 0 where nothing fires."""
        rate = self.domain_counts / np.maximum(self.domain_tokens, 1)
        overall = self.counts / max(self.n_tokens, 1)
        return np.where(overall[:, None] > 0, rate / np.maximum(overall, 1e-300)[:, None], 0.0)
