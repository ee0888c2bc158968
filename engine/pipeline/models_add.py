"""Add one model to a map: attribute it over the map's probes, put it beside its neighbours.

Rows of the new model go into files of their own, so that those of the others stay as they are, byte
for byte. A call that was stopped goes on where it stopped and ends with the same bits.
"""

import logging
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from engine.able.estimate import check_room, estimate
from engine.able.files import folder_name, read_facts, read_tables
from engine.able.partial import PartialWork
from engine.atlas.layouts import beside_neighbours
from engine.atlas.similarity import unit_rows
from engine.config import assets_root, cache_root
from engine.corpus.documents import Progress, no_progress
from engine.pipeline.models_adding import Adding, open_adding, open_map_run, refuse_taken
from engine.pipeline.models_embed import MODELS, weights_mark
from engine.pipeline.models_neighbours import neighbours
from engine.pipeline.models_tables import catalogue_row
from engine.provenance import fingerprint
from engine.schema.model_atlas_tables import MODEL_LAYOUTS
from engine.schema.model_lineage_tables import MODEL_CARDS
from engine.schema.model_tables import MODEL_CATALOGUE, MODEL_EMBEDDINGS
from engine.store import Run, RunWriter, atomic_folder, one_at_a_time, open_run, read_table


logger = logging.getLogger(__name__)
STAGE = "add"
ADDED = "added"
"""Relation of a model that was added: nothing is documented of its lineage."""
PARTIAL = ".adding-"


@dataclass(frozen=True)
class Added:
    """A model that is on the map now."""

    run: str
    """The map's run."""
    path: Path
    """Its folder."""
    model: str
    """Name of the model."""
    seconds: float
    """Time that it took; 0 where it was there."""
    n_skipped: int
    """Probes longer than its context."""
    neighbours: list[dict[str, Any]]
    """Models most like it: model, cosine, percentile_unrelated, verdict, known_relation."""


def add_model(
    name: str,
    source: str,
    model: str | None = None,
    *,
    allow_code: bool = False,
    device: str = "auto",
    progress: Progress = no_progress,
) -> Added:
    """Embed a model into a map and place it; the rows of the others are not written again.

    A map that ships is copied into the cache first, as `NAME-own`, and goes on there.

    Args:
        name: Run of a map.
        source: Folder, hub id or packaged model.
        model: What to call it; the last part of the source unless given.
        allow_code: Whether Python code that comes with it may run.
        device: Where it computes.
        progress: Wraps its batches of probes.

    Raises:
        ConfigError: The name is taken, the run holds no map, or the model will not fit.
        EngineError: The model cannot be loaded or attributed; one sentence.
    """
    run = own_copy(open_map_run(name))
    adding = open_adding(run, source, model, allow_code=allow_code, device=device)
    refuse_taken(run, adding)
    started = time.perf_counter()
    seconds = 0.0
    if not adding.job.is_done(adding.entry):
        _attribute(adding, progress, started)
        seconds = time.perf_counter() - started
    with one_at_a_time(adding.path):
        _write_rows(adding)
    return _report(adding, seconds)


def own_copy(run: Run) -> Run:
    """The run itself, or a copy in the cache of one that ships: what ships is not changed."""
    if not run.path.resolve().is_relative_to(assets_root().resolve()):
        return run
    target = cache_root() / f"{run.path.name}-own"
    target.parent.mkdir(parents=True, exist_ok=True)
    with one_at_a_time(target.parent):  # a second copy would replace one that has grown
        if not target.is_dir():
            with atomic_folder(target) as made:
                shutil.copytree(run.path, made, dirs_exist_ok=True)
    return open_run(target)


def _attribute(adding: Adding, progress: Progress, started: float) -> None:
    entry, job = adding.entry, adding.job
    chosen, dtype = job.study.attribution.resolve()
    needed = estimate(entry.source, dtype, job.study.attribution.resolved_batch_tokens)
    check_room(entry.name, needed, chosen, adding.path)
    mark = fingerprint([job.identity, entry.source, weights_mark(entry.source)])
    kept = PartialWork(adding.path / MODELS / f"{PARTIAL}{folder_name(entry.name)}", mark)
    attribution, n_bytes = job.attribute(entry, progress, kept)
    job.write(entry, attribution, n_bytes, time.perf_counter() - started)
    kept.drop()


def _write_rows(adding: Adding) -> None:
    """Add the model's rows to the tables that lack them, and say so in the manifest."""
    run = open_run(adding.path)
    name = adding.entry.name
    writer = RunWriter.resume(adding.path)
    earlier = writer.manifest["stages"].get(STAGE, {}).get("models", [])
    models = sorted({*earlier, name})
    facts = {"models": models}
    for make in (_own_frames, _neighbour_frames):
        frames = {
            table: frame
            for table, frame in make(adding, run).items()
            if run.has(table) and read_table(run, table, where={"model": name}, limit=1).empty
        }
        if frames:
            writer.begin_stage(STAGE, {"models": models, "tables": sorted(frames)})
            for table, frame in frames.items():
                writer.append_rows(table, adding.part, frame)
            writer.finish_stage(STAGE, facts)
            run = open_run(adding.path)


def _own_frames(adding: Adding, run: Run) -> dict[str, pd.DataFrame]:
    """Rows that depend on the model alone, and its places on the pictures."""
    facts = read_facts(adding.folder)
    assert facts is not None
    frames = read_tables(adding.folder)
    row = catalogue_row(facts, len(adding.job.probes))
    vectors = _of_known_variants(frames[MODEL_EMBEDDINGS.name], run)
    frames[MODEL_EMBEDDINGS.name] = vectors
    own = dict(zip(vectors["variant"], vectors["vector"], strict=True))
    frames[MODEL_CATALOGUE.name] = pd.DataFrame([row])
    frames[MODEL_CARDS.name] = pd.DataFrame([_card(row)])
    if run.has(MODEL_LAYOUTS.name):
        frames[MODEL_LAYOUTS.name] = _places(run, adding.entry.name, own)
    return frames


def _of_known_variants(vectors: pd.DataFrame, run: Run) -> pd.DataFrame:
    """Its embeddings of the variants that the map holds; this engine may know more."""
    known = read_table(run, MODEL_EMBEDDINGS.name, columns=["variant"])["variant"].unique()
    return vectors[vectors["variant"].isin(known)].reset_index(drop=True)


def _card(row: dict[str, Any]) -> dict[str, Any]:
    """What is documented of it: nothing but what it is."""
    texts = dict.fromkeys(("family", "evidence", "tokenizer", "data", "size", "target"), "")
    lists = {name: [] for name in ("parents", "roots", "groups")}
    found = {name: row[name] for name in ("model", "place", "architecture", "n_parameters")}
    return {**texts, **lists, **found, "relation": ADDED, "copies_weights": False}


def _places(run: Run, name: str, own: dict[str, np.ndarray]) -> pd.DataFrame:
    """Where it goes on every picture: beside its nearest neighbours by cosine."""
    drawn = read_table(run, MODEL_LAYOUTS.name)
    rows: list[dict[str, Any]] = []
    for (variant, layout), points in drawn.groupby(["variant", "layout"], sort=True):
        if variant not in own:
            continue
        known = read_table(run, "model_embeddings", where={"variant": str(variant)})
        vectors = dict(zip(known["model"], known["vector"], strict=True))
        models = [model for model in points["model"] if model in vectors and model != name]
        plane = points.set_index("model").loc[models, ["x", "y"]].to_numpy(np.float64)
        matrix = unit_rows(np.stack([vectors[model] for model in models]))
        cosine = matrix @ unit_rows(own[str(variant)][None])[0]
        x, y = beside_neighbours(cosine, plane, name)
        place = {"model": name, "x": x, "y": y, "added": True}
        rows.append({"variant": variant, "layout": layout, **place})
    return pd.DataFrame(rows, columns=[column.name for column in MODEL_LAYOUTS.columns])


def _neighbour_frames(adding: Adding, run: Run) -> dict[str, pd.DataFrame]:
    """Its neighbours by every variant that the run lists neighbours of and has embeddings of.

    Those by attributions without projection need the attributions of all models, which a map that
    ships does not hold; `models relate` computes them where they are.
    """
    if not run.has("model_neighbours"):
        return {}
    own = read_table(run, "model_embeddings", where={"model": adding.entry.name})
    listed = read_table(run, "model_neighbours", columns=["variant", "rank"])
    rows: list[dict[str, Any]] = []
    for variant, ranks in listed[listed["variant"].isin(own["variant"])].groupby("variant"):
        count = int(ranks["rank"].max()) + 1
        found = neighbours(run.path, adding.entry.name, str(variant), count)["neighbours"]
        rows += [
            {
                "variant": variant,
                "model": adding.entry.name,
                "rank": rank,
                "neighbour": each["model"],
                **{key: value for key, value in each.items() if key != "model"},
            }
            for rank, each in enumerate(found)
        ]
    return {"model_neighbours": pd.DataFrame(rows)} if rows else {}


def _report(adding: Adding, seconds: float) -> Added:
    facts = read_facts(adding.folder) or {}
    run = open_run(adding.path)
    found = neighbours(run.path, adding.entry.name)["neighbours"]
    return Added(
        run=run.name,
        path=run.path,
        model=adding.entry.name,
        seconds=seconds,
        n_skipped=len(facts.get("skipped", [])),
        neighbours=found,
    )
