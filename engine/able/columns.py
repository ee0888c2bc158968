"""Columns of a model's vector: one for each question, option and word, each with a name of its own.

The name depends on nothing but the question's id, the option's place and the word's place. So two
sets of probes that share a question share its columns, in whatever order they stand.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Int, UInt64

from engine.able.probes import ProbeSet


GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""2^64 over the golden ratio, odd: the step of SplitMix64."""
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_SHIFTS = (np.uint64(30), np.uint64(27), np.uint64(31))


def mixed(values: UInt64[np.ndarray, "..."]) -> UInt64[np.ndarray, "..."]:
    """The finaliser of SplitMix64 (Steele, Lea and Flood 2014): a bijection that scatters bits."""
    values = (values ^ (values >> _SHIFTS[0])) * _FIRST
    values = (values ^ (values >> _SHIFTS[1])) * _SECOND
    return values ^ (values >> _SHIFTS[2])


@dataclass(frozen=True)
class Columns:
    """Columns of a probe set: by probe, then by option, then by word."""

    probes: ProbeSet

    @cached_property
    def n_options(self) -> Int[np.ndarray, " probes"]:
        """Options of each probe."""
        return np.array([len(probe.options) for probe in self.probes.probes])

    @cached_property
    def n_words(self) -> Int[np.ndarray, " probes"]:
        """Words of each probe."""
        return np.array([probe.n_words for probe in self.probes.probes])

    @cached_property
    def starts(self) -> Int[np.ndarray, " bounds"]:
        """First column of each probe, and the number of columns."""
        return np.concatenate([[0], np.cumsum(self.n_options * self.n_words)])

    @cached_property
    def option_starts(self) -> Int[np.ndarray, " bounds"]:
        """Place of each probe's first option among all options, and their number."""
        return np.concatenate([[0], np.cumsum(self.n_options)])

    @cached_property
    def probe(self) -> Int[np.ndarray, " columns"]:
        """Probe of each column."""
        return np.repeat(np.arange(len(self.probes)), self.n_options * self.n_words)

    @cached_property
    def option(self) -> Int[np.ndarray, " columns"]:
        """Option of each column, counted from 0 within its probe."""
        return self._within // np.repeat(self.n_words, self.n_options * self.n_words)

    @cached_property
    def word(self) -> Int[np.ndarray, " columns"]:
        """Word of each column, counted from 0 within its prompt."""
        return self._within % np.repeat(self.n_words, self.n_options * self.n_words)

    @cached_property
    def correct(self) -> np.ndarray:
        """Whether each column is of the right option: bool [columns]."""
        answers = np.array([probe.answer for probe in self.probes.probes])
        return self.option == answers[self.probe]

    @cached_property
    def keys(self) -> UInt64[np.ndarray, " columns"]:
        """A 64-bit name for each column, from question, option and word alone."""
        ids = np.array([int(probe.id, 16) for probe in self.probes.probes], dtype=np.uint64)
        with np.errstate(over="ignore"):
            named = mixed(ids)[self.probe]
            named = mixed(named + GOLDEN * (self.option.astype(np.uint64) + np.uint64(1)))
            return mixed(named + GOLDEN * (self.word.astype(np.uint64) + np.uint64(1)))

    @property
    def n_columns(self) -> int:
        """Columns in all."""
        return int(self.starts[-1])

    def block(self, probe: int) -> slice:
        """Columns of a probe, by option and then by word."""
        return slice(int(self.starts[probe]), int(self.starts[probe + 1]))

    def options_of(self, probe: int) -> slice:
        """Places of a probe's options among all options."""
        return slice(int(self.option_starts[probe]), int(self.option_starts[probe + 1]))

    @cached_property
    def _within(self) -> Int[np.ndarray, " columns"]:
        return np.arange(self.n_columns) - self.starts[:-1][self.probe]
