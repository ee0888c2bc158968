"""Units that training samples are traced to: what shows one, where it lies, what is asked of it.

Three things make a unit (MDA, section 3): a *metric* that shows it along training, the *subspace*
of parameters that it is made of, and a differentiable *probe* that its parameters are asked to
raise. `TracedUnit` is these three; the kinds of attention heads below are built in, a neuron
(`engine.mda.neurons`) and a prototype (`engine.mda.prototypes`) are further ones, and
`docs/UNITS.md` shows how to add one's own.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from engine.mda.blocks import head_layout
from engine.mda.patterns import head_scores, random_sequences, repeated_sequences
from engine.mda.probes import CopyProbe, PatternProbe, Probe
from engine.mda.settings import ProbeConfig
from engine.mda.subspaces import KINDS, Kind, Subspaces, subspaces


Vocabulary = Int[np.ndarray, " tokens"]
"""Tokens that probes are drawn from: frequent ones, which the model has seen."""


@dataclass(frozen=True)
class Unit:
    """A kind of attention head."""

    name: str
    """Name of the kind."""
    metric: str
    """Pattern score, one of `PATTERNS`, that shows it."""
    kinds: tuple[Kind, ...]
    """Blocks of a head that the influence is taken over."""
    build: Callable[[Vocabulary, ProbeConfig], Probe] = field(repr=False, compare=False)
    """Its probe over sequences of given tokens."""

    def probe(self, vocabulary: Vocabulary, config: ProbeConfig | None = None) -> Probe:
        """The quantity that a head's blocks are asked to raise.

        Args:
            vocabulary: tokens that the model has seen.
            config: sizes and seed of the random sequences.
        """
        return self.build(vocabulary, config or ProbeConfig())


def _copying(vocabulary: Vocabulary, config: ProbeConfig) -> Probe:
    return CopyProbe(repeated_sequences(vocabulary, config))


def _previous(vocabulary: Vocabulary, config: ProbeConfig) -> Probe:
    return PatternProbe("previous_token", random_sequences(vocabulary, config))


def _duplicate(vocabulary: Vocabulary, config: ProbeConfig) -> Probe:
    return PatternProbe("duplicate_token", repeated_sequences(vocabulary, config))


UNITS = {
    unit.name: unit
    for unit in (
        Unit("induction", "prefix_matching", KINDS, _copying),
        Unit("previous_token", "previous_token", ("qk",), _previous),
        Unit("duplicate_token", "duplicate_token", ("qk",), _duplicate),
    )
}
"""Kinds of heads, by name. Pattern probes are asked of `qk` alone: values and outputs do not move a
head's own pattern."""


@runtime_checkable
class TracedUnit(Protocol):
    """Anything that samples can be traced to, one or several of a kind at once."""

    @property
    def name(self) -> str:
        """Name of the kind."""
        ...

    def measure(self, model: Any) -> Float[Tensor, " units"]:
        """The monitoring metric of each, in the order of `Subspaces.heads`."""
        ...

    def spaces(self, model: Any) -> Subspaces:
        """Their parameters.

        Raises:
            ConfigError: one of them does not exist.
            UnsupportedModel: the model's weights cannot be told apart by unit.
        """
        ...

    def probe(self, model: Any) -> Probe:
        """The quantity that their parameters are asked to raise."""
        ...


@dataclass(frozen=True)
class TracedHeads:
    """Attention heads of one kind: a `TracedUnit`."""

    unit: Unit
    """Their kind."""
    vocabulary: Vocabulary
    """Tokens that the model has seen."""
    config: ProbeConfig = field(default_factory=ProbeConfig)
    """Sizes and seed of the random sequences."""
    heads: tuple[tuple[int, int], ...] | None = None
    """Layer and head of each; every head of the model if None."""

    @property
    def name(self) -> str:
        """Name of the kind."""
        return self.unit.name

    def measure(self, model: Any) -> Float[Tensor, " units"]:
        """Score of each head on the kind's pattern, in [0, 1]."""
        scores = head_scores(model, self.vocabulary, self.config)[self.unit.metric]
        return torch.stack([scores[head] for head in self.spaces(model).heads])

    def spaces(self, model: Any) -> Subspaces:
        """The kind's blocks of each head."""
        return subspaces(head_layout(model), self.heads, self.unit.kinds)

    def probe(self, model: Any) -> Probe:  # noqa: ARG002
        """The kind's probe."""
        return self.unit.probe(self.vocabulary, self.config)
