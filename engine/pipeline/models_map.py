"""Pictures of a map of models: UMAP, t-SNE and principal plane of each way of embedding."""

import logging
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from engine.atlas.layouts import (
    LEAST,
    PLANE,
    TSNE_LAYOUT,
    UMAP,
    principal_plane,
    quality,
    tsne_plane,
)
from engine.config import require
from engine.corpus.documents import Progress, no_progress
from engine.errors import ConfigError
from engine.pipeline.map import BankMap
from engine.provenance import fingerprint
from engine.schema.model_atlas_tables import MODEL_LAYOUT_RESULTS, MODEL_LAYOUTS
from engine.store import Run, RunWriter, open_run, read_table


logger = logging.getLogger(__name__)
STAGE = "layouts"
_VERSION = 1
"""Goes up when a layout is computed otherwise."""


def embeddings(run: Run, variant: str) -> tuple[list[str], Float[np.ndarray, "models d"]]:
    """Models of a map in the order of their names, and their embeddings of one variant.

    Raises:
        CacheMissing: The run holds no embeddings.
        ConfigError: It holds none of this variant.
    """
    found = read_table(run, "model_embeddings", where={"variant": variant})
    if found.empty:
        known = read_table(run, "model_embeddings", columns=["variant"])["variant"].unique()
        raise ConfigError(
            f"Run {run.name} holds no embeddings of the variant {variant!r}; it holds "
            f"{', '.join(sorted(known))}."
        )
    return found["model"].tolist(), np.stack(found["vector"].tolist()).astype(np.float64)


def variants_of(run: Run) -> list[str]:
    """Ways of embedding that a run holds of every embedded model, by name."""
    rows = read_table(run, "model_embeddings", columns=["model", "variant"])
    counts = rows["variant"].value_counts()
    return sorted(str(name) for name in counts.index[counts == rows["model"].nunique()])


def write_layouts(
    name: str,
    variants: Sequence[str] = (),
    *,
    seed: int = 0,
    progress: Progress = no_progress,
) -> Run:
    """Lay out every model of a map anew, those that were added too, and say how true it is.

    Args:
        name: Run of a map.
        variants: Ways of embedding; all that the run holds unless given.
        seed: Seed of UMAP and t-SNE.
        progress: Wraps variants and layouts.

    Raises:
        CacheMissing: The run is not there or holds no embeddings.
        ConfigError: A variant is not there, or there is one model alone.
    """
    run = open_run(name)
    require(0 <= seed < 2**32, f"--seed is {seed}; it must be 0 or more, and {2**32 - 1} at most.")
    held = variants_of(run)
    chosen = list(dict.fromkeys(variants)) or held
    drawn = {variant: embeddings(run, variant) for variant in chosen}
    n_models = len(drawn[chosen[0]][0])
    if n_models < 2:
        raise ConfigError(f"Run {run.name} holds {n_models} embedded model; a picture needs two.")
    writer = RunWriter.resume(run.path)
    marks = {v: fingerprint([names, vectors.tolist()]) for v, (names, vectors) in drawn.items()}
    if writer.begin_stage(STAGE, {"seed": seed, "embeddings": marks, "version": _VERSION}):
        return run
    started = time.perf_counter()
    rows: list[pd.DataFrame] = []
    results: list[dict[str, Any]] = []
    planes = _planes({v: vectors for v, (_, vectors) in drawn.items()}, seed, progress)
    for (variant, layout), plane in planes.items():
        names, vectors = drawn[variant]
        keys = {"variant": variant, "layout": layout}
        columns = {"model": names, "x": plane[:, 0], "y": plane[:, 1], "added": False}
        rows.append(pd.DataFrame({**keys, **columns}))
        found = quality(vectors, plane)
        if found is not None:
            results.append({**keys, **vars(found), "n": n_models})
    columns = [column.name for column in MODEL_LAYOUT_RESULTS.columns]
    writer.write_table(MODEL_LAYOUTS.name, pd.concat(rows, ignore_index=True))
    writer.write_table(MODEL_LAYOUT_RESULTS.name, pd.DataFrame(results, columns=columns))
    facts = {"seconds": time.perf_counter() - started, "seed": seed, "variants": chosen}
    writer.finish_stage(STAGE, facts)
    return open_run(run.path)


def _planes(
    vectors: dict[str, Float[np.ndarray, "models d"]], seed: int, progress: Progress
) -> dict[tuple[str, str], Float[np.ndarray, "models 2"]]:
    """Places by variant and layout, centred; UMAP lays out all variants in one process."""
    found = {(variant, PLANE): principal_plane(rows) for variant, rows in vectors.items()}
    if len(next(iter(vectors.values()))) < LEAST:
        return found
    drawing = BankMap(np.stack(list(vectors.values())), seed, least=LEAST)
    try:
        for variant, rows in progress(vectors.items(), label="Drawing the map", total=len(vectors)):
            plane = tsne_plane(rows, seed)
            found[variant, TSNE_LAYOUT] = plane - plane.mean(0)
        for variant, plane in zip(vectors, drawing.coordinates(), strict=True):
            found[variant, UMAP] = plane.astype(np.float64)
    finally:
        drawing.stop()
    return found
