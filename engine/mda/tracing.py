"""Trace samples to any unit: curvature, probe, and a pass over the samples."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from jaxtyping import Int
from torch import Tensor

from engine.mda.ekfac import fit_curvature
from engine.mda.influence import BatchScores, precondition, score_samples
from engine.mda.probes import Gradients
from engine.mda.settings import EkfacConfig
from engine.mda.subspaces import Subspaces
from engine.mda.units import TracedUnit


Batches = Callable[[], Iterable[Int[Tensor, "_batch length"]]]
"""Called once a pass; token rows."""


def directions_of(
    model: Any, traced: TracedUnit, fit: Batches, config: EkfacConfig | None = None
) -> tuple[Subspaces, Gradients]:
    """The subspaces of units, and the direction in each that raises its probe: H^-1 grad f.

    Beside the model this holds the curvature of all blocks: for each the squares of its rows and
    columns (once a layer where heads share them), and rows × columns a head.

    Args:
        model: decoder in evaluation mode.
        traced: units.
        fit: samples that the curvature is fitted on.
        config: settings of the curvature.
    """
    spaces = traced.spaces(model)
    curvature = fit_curvature(model, spaces, fit, config)
    gradients = traced.probe(model).gradients(model, spaces)
    return spaces, precondition(curvature, gradients, config)


def trace(
    model: Any,
    traced: TracedUnit,
    fit: Batches,
    samples: Iterable[Int[Tensor, "_batch length"]],
    config: EkfacConfig | None = None,
) -> Iterator[BatchScores]:
    """Influence of samples on units, a batch at a time; positive raises the unit's probe.

    Args:
        model: decoder in evaluation mode.
        traced: units.
        fit: samples that the curvature is fitted on.
        samples: what is scored.
        config: settings of the curvature.
    """
    spaces, directions = directions_of(model, traced, fit, config)
    yield from score_samples(model, spaces, directions, samples)
