"""Paired intervals over question sets: a set's questions are drawn again, and sets count alike."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from engine.questions.reading import MEAN


RESAMPLES = 4000
_BLOCK = 250


@dataclass(frozen=True)
class Interval:
    """A mean with the 95 % percentile interval of its bootstrap."""

    value: float
    low: float
    high: float
    n: int
    """Questions it rests on."""


@dataclass(frozen=True)
class Tested:
    """What is averaged over a set: a sum a question, and how often the question counts."""

    total: Float[np.ndarray, " questions"]
    times: Int[np.ndarray, " questions"]
    """Splits in which the question was tested; 1 without splits."""

    def mean(self) -> float:
        """Total over times."""
        return float(self.total.sum() / self.times.sum())


def by_question(question: Int[np.ndarray, " rows"], value: Float[np.ndarray, " rows"]) -> Tested:
    """Rows of a set gathered by question, so that one question is one unit whatever its splits."""
    _, unit = np.unique(question, return_inverse=True)
    return Tested(np.bincount(unit, weights=value), np.bincount(unit))


def paired_intervals(sets: Mapping[str, Tested], seed: int = 0) -> dict[str, Interval]:
    """Mean of every set, and the mean over sets, each with its interval.

    Questions are resampled within their set. What training on other questions would have changed
    is not in the interval, but for what the splits show of it.

    Args:
        sets: A set's values by its name.
        seed: Seed of the bootstrap.
    """
    generator = np.random.default_rng(seed)
    draws = {name: _resampled(own, generator) for name, own in sets.items()}
    found = {name: _interval(own.mean(), draws[name], len(own.times)) for name, own in sets.items()}
    mean = float(np.mean([own.mean() for own in sets.values()]))
    together = np.mean(list(draws.values()), axis=0)
    found[MEAN] = _interval(mean, together, sum(len(own.times) for own in sets.values()))
    return found


def _resampled(own: Tested, generator: np.random.Generator) -> Float[np.ndarray, " resamples"]:
    count, means = len(own.times), []
    for start in range(0, RESAMPLES, _BLOCK):
        size = (min(_BLOCK, RESAMPLES - start), count)
        drawn = generator.integers(count, size=size)
        means.append(own.total[drawn].sum(1) / own.times[drawn].sum(1))
    return np.concatenate(means)


def _interval(value: float, draws: Float[np.ndarray, " resamples"], n: int) -> Interval:
    low, high = np.quantile(draws, [0.025, 0.975])
    return Interval(value, float(low), float(high), n)
