"""A head's influence as figures draw it: bins on a symmetric-log axis, ranks, tails, shares; pure.

Influence is positive where training more on a sample raises the head's score.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


BINS = 56
"""Bins over both sides of the histogram; an even number, so that 0 is an edge."""
MOST_POINTS = 400
"""Points drawn of a curve over ranks."""

Values = NDArray[np.float64]


@dataclass(frozen=True)
class SymmetricLog:
    """t(v) = sign(v) log10(1 + |v| / threshold): linear near 0, logarithmic beyond."""

    threshold: float
    """Size up to which the axis is nearly linear."""
    reach: float
    """Largest |t| on the axis."""

    @classmethod
    def over(cls, values: Values) -> "SymmetricLog":
        """The axis for these values: linear up to the power of ten below a tenth of the median."""
        sizes = np.abs(values[np.isfinite(values)])
        sizes = sizes[sizes > 0]
        if not len(sizes):
            return cls(1.0, 1.0)
        threshold = float(10 ** np.floor(np.log10(np.median(sizes) / 4)))
        return cls(threshold, float(np.log10(1 + sizes.max() / threshold)))

    def place(self, values: Values) -> Values:
        """Values as places on the axis."""
        return np.sign(values) * np.log10(1 + np.abs(values) / self.threshold)

    def value(self, places: Values) -> Values:
        """Places on the axis as values."""
        return np.sign(places) * self.threshold * (10 ** np.abs(places) - 1)

    def edges(self) -> Values:
        """Edges of the bins, as places, from the most negative to the most positive."""
        return np.linspace(-self.reach, self.reach, BINS + 1)

    def bin_of(self, values: Values) -> NDArray[np.int64]:
        """Bin of each value; -1 where it is no finite number."""
        known = np.isfinite(values)
        places = self.place(np.where(known, values, 0.0))
        found = np.floor((places + self.reach) / (2 * self.reach) * BINS).astype(np.int64)
        # the largest of either sign lie on the outer edges; no rounding may change a sign's side
        negative = values < 0
        low, high = np.where(negative, 0, BINS // 2), np.where(negative, BINS // 2 - 1, BINS - 1)
        return np.where(known, np.clip(found, low, high), -1)

    def ticks(self) -> tuple[list[float], list[str]]:
        """Places and words of the ticks: 0 and powers of ten, five at most of either sign."""
        first = round(np.log10(self.threshold))
        last = int(np.floor(np.log10(self.threshold) + self.reach + 0.02))
        powers = list(range(first, last + 1))
        powers = powers[:: max(1, -(-len(powers) // 5))]
        values = np.array([10.0**p for p in powers])
        places = self.place(values)
        words = [f"10<sup>{p}</sup>".replace("-", "−") for p in powers]
        return (
            [*(-places[::-1]).tolist(), 0.0, *places.tolist()],
            [*("−" + w for w in words[::-1]), "0", *("+" + w for w in words)],
        )


def counts(values: Values, scale: SymmetricLog) -> NDArray[np.int64]:
    """Samples in each bin."""
    bins = scale.bin_of(values)
    return np.bincount(bins[bins >= 0], minlength=BINS)


def opening_bin(values: Values, scale: SymmetricLog, fewest: int = 3) -> int:
    """The most positive bin of `fewest` samples or more, else the most positive that has any."""
    found = counts(values, scale)
    for least in (fewest, 1):
        filled = np.flatnonzero(found >= least)
        if len(filled):
            return int(filled[-1])
    return BINS // 2


def side(values: Values, sign: str) -> Values:
    """Sizes of the values of one sign, largest first."""
    own = values[values > 0] if sign == "positive" else -values[values < 0]
    return np.sort(own)[::-1]


def thinned(n: int, most: int = MOST_POINTS) -> NDArray[np.int64]:
    """Places of `n` ordered points to draw: all of a few, of many evenly spaced on a log axis."""
    if n <= most:
        return np.arange(n)
    return np.unique(np.round(np.geomspace(1, n, most)).astype(np.int64)) - 1


def exceedance(ordered: Values) -> Values:
    """P(X ≥ x) at each of the sizes, largest first."""
    return np.arange(1, len(ordered) + 1) / len(ordered)


def fitted_tail(
    ordered: Values, exponent: float, xmin: float, n_tail: int
) -> tuple[Values, Values] | None:
    """The fitted power law as a line: sizes, and P(X ≥ x) = (n_tail / n) (x / xmin)^(1 − α).

    None where there is no fit.
    """
    finite = np.isfinite([exponent, xmin]).all() and xmin > 0 and n_tail > 0
    if not finite or not len(ordered) or ordered[0] <= xmin:
        return None
    sizes = np.geomspace(xmin, ordered[0], 24)
    return sizes, n_tail / len(ordered) * (sizes / xmin) ** (1 - exponent)


def carried(ordered: Values) -> tuple[Values, Values]:
    """Share of the side's samples, largest first, and share of its sum that they carry."""
    if not len(ordered):
        return np.zeros(1), np.zeros(1)
    share = np.concatenate([[0.0], np.cumsum(ordered) / ordered.sum()])
    return np.linspace(0, 1, len(share)), share


def carried_by(ordered: Values, share: float) -> float:
    """Share of the side's sum that its largest `share` of samples carries."""
    samples, sums = carried(ordered)
    return float(np.interp(share, samples, sums))
