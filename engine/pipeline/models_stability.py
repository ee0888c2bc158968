"""The stability suite: how far embeddings move when something is done otherwise.

Curves over probes, dimensions and rules are computed from the attributions of all models of a map;
passes that read models again take a sample of them, and a part of the probes.
"""

import logging
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from engine.able.columns import Columns
from engine.able.files import folder_name, read_attribution, read_facts, read_probe_set
from engine.able.probes import ProbeSet
from engine.atlas.similarity import shared_roots
from engine.config import MAX_SEED, require, require_within
from engine.corpus.documents import Progress, no_progress
from engine.errors import CacheMissing, ConfigError
from engine.jobs import Fan, map_jobs
from engine.lm.packaged import PACKAGED, is_converted
from engine.pipeline import models_stability_rows as made
from engine.pipeline.models_embed import MODELS, PROBES
from engine.pipeline.models_stability_passes import (
    FOLDER,
    NOISE,
    WHOLE,
    PassJob,
    Suite,
    columns_of,
    part_of,
    read_passes,
)
from engine.pipeline.models_stability_rows import MapVectors, Row
from engine.provenance import fingerprint
from engine.schema.model_atlas_tables import MODEL_STABILITY
from engine.store import Run, RunWriter, open_run, read_json, read_table


logger = logging.getLogger(__name__)
STAGE = "stability"
SLOW = 4.0
"""A model that took so many times the median to embed is not sampled."""
_VERSION = 1
"""Goes up when a study is computed otherwise."""


@dataclass(frozen=True, kw_only=True)
class StabilityStudy:
    """How much is sampled."""

    sample: int = 24
    """Models that are read again."""
    n_probes: int = 104
    """Probes that these are asked."""
    seed: int = 0
    """Seed of the sample, of orders and of noise."""
    noise: tuple[float, ...] = NOISE
    """Standard deviations of noise on every matrix, as shares of the matrix's own."""
    device: str = "cpu"
    """Where models compute."""

    def __post_init__(self) -> None:
        require(self.sample >= 3, f"--sample is {self.sample}; it must be 3 models or more.")
        require(self.n_probes >= 1, f"--probes is {self.n_probes}; it must be 1 or more.")
        require_within(self, 0, MAX_SEED, "seed")


def measure_stability(
    name: str,
    study: StabilityStudy | None = None,
    *,
    fan: Fan | None = None,
    progress: Progress = no_progress,
) -> Run:
    """Measure the stability of a map's embeddings; a killed call goes on where it stopped.

    Args:
        name: Run of a map whose models' attributions lie in its folder.
        study: How much is sampled.
        fan: Where passes run.
        progress: Wraps the sampled models.

    Raises:
        CacheMissing: The run, its attributions or the models are not on this machine.
        CacheStale: A model's folder is damaged.
    """
    study = study or StabilityStudy()
    run = open_run(name)
    probes = _probes(run)
    given = map_vectors(run, probes)
    catalogue = read_table(run, "model_catalogue", where={"status": "embedded"})
    sample = choose_sample(catalogue, study)
    job, places = _job(run, probes, study)
    writer = RunWriter.resume(run.path)
    identity = [study.sample, study.seed, job.identity, _map_mark(given), _VERSION, sample]
    if writer.begin_stage(STAGE, identity):
        return run
    started = time.perf_counter()
    listed = progress(sample, label="Attributing again", total=len(sample))
    map_jobs(job.run, listed, done=job.is_done, fan=fan)
    cards = read_table(run, "model_cards") if run.has("model_cards") else None
    rows = [*_array_rows(given, catalogue, cards), *_pass_rows(job, sample, given, probes, places)]
    columns = [column.name for column in MODEL_STABILITY.columns]
    writer.write_table(MODEL_STABILITY.name, pd.DataFrame(rows, columns=columns))
    facts = {
        "seconds": time.perf_counter() - started,
        "sample": [model for model, _ in sample],
        "n_probes": len(job.suite.probes),
        "n_models": len(given.models),
        "seed": study.seed,
        "left_out": _left_out(job, sample),
    }
    writer.finish_stage(STAGE, facts)
    shutil.rmtree(job.path, ignore_errors=True)
    return open_run(run.path)


def choose_sample(catalogue: pd.DataFrame, study: StabilityStudy) -> list[tuple[str, str]]:
    """Models to read again, with their places: architectures take turns, in a seeded order.

    Models that are not on this machine, and those much slower than the others, are left out.

    Raises:
        CacheMissing: Fewer than three are left.
    """
    limit = SLOW * float(catalogue["seconds"].median())
    rows: list[dict[Any, Any]] = catalogue.sort_values("model").to_dict("records")
    here = [row for row in rows if _is_here(row["place"]) and row["seconds"] <= limit]
    by_kind: dict[str, list[dict[Any, Any]]] = {}
    for place in np.random.default_rng(study.seed).permutation(len(here)):
        by_kind.setdefault(here[place]["architecture"], []).append(here[place])
    turns = sorted(
        (turn, kind, own["model"], own["place"])
        for kind, rows in by_kind.items()
        for turn, own in enumerate(rows)
    )
    chosen = [(model, place) for _, _, model, place in turns[: study.sample]]
    if len(chosen) < 3:
        raise CacheMissing(
            f"{len(chosen)} of the map's models are on this machine, and the suite reads three at "
            "least again; run it where the models are."
        )
    return chosen


def map_vectors(run: Run, probes: ProbeSet) -> MapVectors:
    """Attributions of every model of a map.

    Raises:
        CacheMissing: The folders of the models are not here.
    """
    names = read_table(run, "model_catalogue", columns=["model"], where={"status": "embedded"})
    models = [m for m in names["model"] if read_facts(run.path / MODELS / folder_name(m))]
    if len(models) < 3:
        raise CacheMissing(
            f"Run {run.name} holds the full attributions of {len(models)} models, and stability "
            "needs three; a shipped map holds compact ones. Embed the models here."
        )
    folders = [run.path / MODELS / folder_name(model) for model in models]
    found = [read_attribution(folder, probes) for folder in folders]
    columns = Columns(probes)
    cards = _cards(run, models)
    return MapVectors(
        models=tuple(models),
        words=np.stack([each.words for each in found]).astype(np.float64),
        paper_words=np.stack([each.paper_words for each in found]).astype(np.float64),
        probe_of=columns.probe,
        keys=columns.keys,
        related=shared_roots([list(roots) for roots, _ in cards]),
        tokenizers=tuple(tokenizer for _, tokenizer in cards),
        n_dimensions=int(run.manifest["embedding"]["n_dimensions"]),
    )


def _array_rows(
    given: MapVectors, catalogue: pd.DataFrame, cards: pd.DataFrame | None
) -> Iterator[Row]:
    """Studies that read no model."""
    yield from made.probe_rows(given)
    yield from made.projection_rows(given)
    yield from made.space_rows(given)
    yield from made.homogeneity_rows(catalogue)
    if cards is not None:
        yield from made.rewritten_rows(given, cards)


def _pass_rows(
    job: PassJob,
    sample: list[tuple[str, str]],
    given: MapVectors,
    probes: ProbeSet,
    places: list[int],
) -> Iterator[Row]:
    """Studies that read the sampled models again."""
    whole = given.words[:, columns_of(probes, places)]
    question = whole[:, job.suite.question_words]
    for found in read_passes(job, [model for model, _ in sample]):
        pool = whole if found.each.columns == WHOLE else question
        yield from made.pass_rows(found, pool, given.models)


def _job(run: Run, probes: ProbeSet, study: StabilityStudy) -> tuple[PassJob, list[int]]:
    part, places = part_of(probes, study.n_probes)
    settings = run.manifest["attribution"]
    suite = Suite(
        probes=part,
        dtype=settings["dtype"],
        hook=settings["hook"],
        noise=study.noise,
        seed=study.seed,
        device=study.device,
    )
    path = run.path / FOLDER
    path.mkdir(exist_ok=True)
    return PassJob(path, suite, suite.identity), places


def _probes(run: Run) -> ProbeSet:
    if run.kind != "models" or not (run.path / PROBES).is_file():
        raise ConfigError(
            f"Run {run.name} holds no map of models with its probes; make one with "
            "`headwater models embed --catalogue FILE`."
        )
    return read_probe_set(run.path / PROBES)


def _cards(run: Run, models: list[str]) -> list[tuple[list[str], str]]:
    """Roots and tokenizer of each model; empty where nothing is documented."""
    if not run.has("model_cards"):
        return [([], "") for _ in models]
    found = read_table(run, "model_cards", columns=["model", "roots", "tokenizer"])
    rows = found.to_dict("records")
    known = {row["model"]: (list(row["roots"]), str(row["tokenizer"])) for row in rows}
    return [known.get(model, ([], "")) for model in models]


def _map_mark(given: MapVectors) -> str:
    return fingerprint([given.models, given.words.sum(1).tolist(), given.related.sum(1).tolist()])


def _is_here(place: str) -> bool:
    return is_converted(place) if place in PACKAGED else Path(place).is_dir()


def _left_out(job: PassJob, sample: list[tuple[str, str]]) -> dict[str, int]:
    """Models that did not allow a pass, by pass."""
    counts: dict[str, int] = {}
    for model, _ in sample:
        for number in read_json(job.folder(model) / "facts.json")["left_out"]:
            each = job.suite.passes[int(number)]
            name = f"{each.study}: {each.setting}"
            counts[name] = counts.get(name, 0) + 1
    return counts
