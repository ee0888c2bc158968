"""A synthetic run of the kind `models`: every table of a map, random and never a result."""

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from engine.pipeline.synthetic_models import SyntheticMap, map_tables
from engine.pipeline.synthetic_models_atlas import atlas_tables
from engine.pipeline.synthetic_models_relations import relation_tables
from engine.pipeline.synthetic_models_routing import routing_tables
from engine.pipeline.synthetic_tables import Columns
from engine.store import RunWriter


_PARTS: tuple[Callable[[np.random.Generator, SyntheticMap], Mapping[str, Columns]], ...] = (
    map_tables,
    atlas_tables,
    relation_tables,
    routing_tables,
)
"""Tables by what makes them."""


def all_map_tables(
    generator: np.random.Generator, shape: SyntheticMap | None = None
) -> dict[str, Columns]:
    """Every table of a map, by name."""
    shape = shape or SyntheticMap()
    return {name: rows for part in _PARTS for name, rows in part(generator, shape).items()}


def write_synthetic_models(path: Path, *, seed: int = 0, shape: SyntheticMap | None = None) -> Path:
    """A run of the kind `models` of its own: its tables, no model.

    Args:
        path: Folder of the run.
        seed: Seed of every number.
        shape: Sizes.

    Returns:
        `path`.
    """
    identity = {"synthetic": True, "seed": seed}
    writer = RunWriter.create(path, name="Synthetic models", kind="models", identity=identity)
    if writer.begin_stage("embed", identity):
        return path
    for table, columns in all_map_tables(np.random.default_rng(seed), shape).items():
        writer.write_table(table, columns)
    writer.finish_stage("embed", {"seconds": 0.0})
    return path
