"""Embed every model of a catalogue: fetch, attribute, keep, free, next. Resumable by model.

Each model is one job that writes a folder of its own below the run; what one does moves no other.
A model that fails is recorded with its reason and the rest goes on.
"""

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from engine.able.embedding import VARIANTS, EmbeddingSettings
from engine.able.estimate import check_room, estimate
from engine.able.files import (
    EMBEDDED,
    FAILED,
    folder_name,
    read_facts,
    write_attribution,
    write_failure,
    write_probes,
)
from engine.able.hub import fetched
from engine.able.loading import adapter_base, load_model
from engine.able.model import AttributionSettings, ModelAttribution, embed_model
from engine.able.partial import PartialWork
from engine.able.probes import ProbeSet
from engine.config import require
from engine.corpus.documents import Progress, no_progress
from engine.devices import memory_given_back
from engine.errors import CacheStale, EngineError, StorageError
from engine.jobs import Fan, map_jobs
from engine.lm.loading import first_line
from engine.lm.packaged import PACKAGED, packaged_path
from engine.pipeline.models_cards import card_frame, merged_cards
from engine.pipeline.models_catalogue import Catalogue, CatalogueEntry
from engine.pipeline.models_tables import map_frames, refuse_losing
from engine.provenance import fingerprint, fingerprint_model
from engine.schema.model_lineage_tables import MODEL_CARDS
from engine.store import RunWriter, read_parquet, stored_manifest


logger = logging.getLogger(__name__)
KIND, STAGE, MODELS, PROBES = "models", "embed", "models", "probes.json"
_FAILURES = (
    *(OSError, RuntimeError, ValueError, TypeError, KeyError, AttributeError, IndexError),
    *(NotImplementedError, AssertionError, ImportError, ArithmeticError, MemoryError),
)
"""What the code of a model may raise; it fails that model and no other."""


@dataclass(frozen=True, kw_only=True)
class EmbedStudy:
    """Settings of a map; every model of a run shares them."""

    attribution: AttributionSettings = field(default_factory=AttributionSettings)
    """How models are attributed."""
    n_dimensions: int = 256
    """Dimensions of embeddings."""
    seed: int = 0
    """Seed of the projection."""
    allow_code: tuple[str, ...] = ()
    """Models, by name or source, whose own Python code may run."""
    keep_fetched: bool = False
    """Leave fetched models in the hub's cache."""
    check_memory: bool = True
    """Fail a model that is estimated not to fit, before it is fetched."""
    part: tuple[int, int] | None = None
    """(i, n): embed every n-th model from the i-th, counted from 1, for several machines that share
    a run's folder; tables are written by a call without it."""

    def __post_init__(self) -> None:
        first, n = self.part or (1, 1)
        require(1 <= first <= n, f"part is {first}/{n}; write i/n with i from 1 to n.")
        EmbeddingSettings(n_dimensions=self.n_dimensions, seed=self.seed)

    @property
    def variants(self) -> dict[str, EmbeddingSettings]:
        """Ways of embedding by name."""
        return {
            name: replace(settings, n_dimensions=self.n_dimensions, seed=self.seed)
            for name, settings in VARIANTS.items()
        }

    def identity(self, probes: ProbeSet) -> dict[str, Any]:
        """What determines every embedding of the run, the models apart."""
        _, dtype = self.attribution.resolve()
        return {
            "probes": {
                "name": probes.name,
                "style": probes.style,
                "count": len(probes),
                "fingerprint": probes.fingerprint,
            },
            "attribution": {
                "dtype": str(dtype).removeprefix("torch."),
                "hook": self.attribution.hook,
            },
            "embedding": {"n_dimensions": self.n_dimensions, "seed": self.seed},
        }


@dataclass(frozen=True)
class EmbedReport:
    """What a call did."""

    path: Path
    """The run's folder."""
    embedded: tuple[str, ...]
    """Models that are embedded now."""
    failed: dict[str, str]
    """Models that failed, with the reason."""
    problems: tuple[str, ...]
    """Lines of the catalogue that were left out, one sentence each."""


def embed_catalogue(
    path: Path,
    catalogue: Catalogue,
    probes: ProbeSet,
    study: EmbedStudy | None = None,
    progress: Progress = no_progress,
    fan: Fan | None = None,
) -> EmbedReport:
    """Embed what is missing of a catalogue into a run.

    Args:
        path: Folder of the run; made, or gone on with.
        catalogue: The models.
        probes: The probe set; that of the run where there is one already.
        study: Settings.
        progress: Wraps the models.
        fan: Where models are embedded; here, one after the other, unless given.

    Raises:
        CacheStale: The run holds models embedded over other probes or with other settings, or
            models that would be lost.
        StorageError: The disk is full or closed to us; what was finished is whole.
    """
    study = study or EmbedStudy()
    refuse_losing(path, path / MODELS, [entry.name for entry in catalogue.entries])
    for problem in catalogue.problems:
        logger.warning("%s", problem)
    writer = open_map(path, probes, study)
    job = EmbedJob(path, probes, study, fingerprint(study.identity(probes)))
    first, n = study.part or (1, 1)
    chosen = catalogue.entries[first - 1 :: n]
    todo = [entry for entry in chosen if not job.is_done(entry)]
    logger.info("%d of %d models are to be embedded", len(todo), len(chosen))
    listed = progress(todo, label="Embedding models", total=len(todo))
    map_jobs(job.run, listed, fan=fan)
    report = _report(job, catalogue, chosen)
    if study.part is None:
        write_map(writer, path, card_frame(catalogue), probes, catalogue.problems)
    return report


def write_map(
    writer: RunWriter,
    path: Path,
    cards: pd.DataFrame,
    probes: ProbeSet,
    left_out: Sequence[str] = (),
) -> None:
    """Write the tables of every model that lies in a run's folder, once for each state of these.

    Args:
        writer: The run's writer.
        path: The run's folder.
        cards: Cards of this call's models; those the run had before are kept.
        probes: The run's probes.
        left_out: Lines of the catalogue that were left out.
    """
    for file in writer.manifest["tables"].get(MODEL_CARDS.name, {"files": []})["files"]:
        cards = merged_cards(read_parquet(path / file["path"], MODEL_CARDS), cards)
    frames, problems = map_frames(path / MODELS, probes)
    for problem in problems:
        logger.warning("%s", problem)
    state = {
        "cards": cards.to_json(),
        "models": frames["model_catalogue"].to_json(),
        "variants": sorted(frames["model_embeddings"]["variant"].unique()),
    }
    if writer.begin_stage(STAGE, state):
        return
    for name, frame in (frames | {MODEL_CARDS.name: cards}).items():
        writer.write_table(name, frame)
    counts = frames["model_catalogue"]["status"].value_counts()
    facts = {name: int(counts.get(name, 0)) for name in (EMBEDDED, FAILED)}
    writer.finish_stage(STAGE, facts | {"left_out": [*left_out, *problems]})


def foreseen(
    path: Path, catalogue: Catalogue, probes: ProbeSet, study: EmbedStudy
) -> list[dict[str, Any]]:
    """What embedding each model would take: state, bytes of disk and memory, and a remark.

    Nothing is written and no model is loaded; sizes are None where they cannot be known.
    """
    job = EmbedJob(path, probes, study, fingerprint(study.identity(probes)))
    device, dtype = study.attribution.resolve()
    room = next(place for place in (path, *path.parents) if place.is_dir())
    rows: list[dict[str, Any]] = []
    for entry in catalogue.entries:
        row: dict[str, Any] = {"model": entry.name, "place": entry.source}
        row |= {"state": "to embed", "disk": None, "memory": None, "remark": ""}
        try:
            if job.is_done(entry):
                row["state"] = EMBEDDED
            needed = estimate(entry.source, dtype, study.attribution.resolved_batch_tokens)
            row |= {"disk": needed.disk, "memory": needed.memory}
            check_room(entry.name, needed, device, room)
        except EngineError as error:
            row["remark"] = str(error)
        rows.append(row)
    return rows


def open_map(path: Path, probes: ProbeSet, study: EmbedStudy) -> RunWriter:
    """Make the run of a map or go on with it.

    Raises:
        CacheStale: It holds models embedded over other probes or with other settings.
        ConfigError: It is no map.
    """
    known = stored_manifest(path) if path.is_dir() else None
    require(
        known is None or known.get("kind") == KIND,
        f"Run {path.name} holds no map of models; name another run with --run.",
    )
    other = (known or {}).get("probes") or {}
    if known is not None and other.get("fingerprint") != probes.fingerprint:
        raise CacheStale(
            f"Run {path.name} holds models embedded over {other.get('name')!r} "
            f"({other.get('count')} probes), and {probes.name!r} ({len(probes)}) was asked for; "
            "columns of different probes do not compare. Name another run with --run."
        )
    writer = RunWriter.create(path, name=path.name, kind=KIND, identity=study.identity(probes))
    (path / MODELS).mkdir(exist_ok=True)
    if not (path / PROBES).is_file():
        write_probes(path / PROBES, probes)
    return writer


@dataclass(frozen=True)
class EmbedJob:
    """The job that embeds one model; its models do not depend on their order."""

    path: Path
    probes: ProbeSet
    study: EmbedStudy
    identity: str

    def folder(self, entry: CatalogueEntry) -> Path:
        """Folder of a model."""
        return self.path / MODELS / folder_name(entry.name)

    def is_done(self, entry: CatalogueEntry) -> bool:
        """Whether a model is embedded with these settings, and its weights are as they were.

        Weights that are not on this machine now count as unchanged.
        """
        facts = read_facts(self.folder(entry))
        if facts is None or facts.get("status") != EMBEDDED:
            return False
        same = facts.get("identity") == self.identity and facts.get("place") == entry.source
        return same and weights_mark(entry.source) in ("", facts.get("weights"))

    @memory_given_back()
    def run(self, entry: CatalogueEntry) -> str:
        """Embed a model, or record why not.

        Returns:
            embedded or failed.

        Raises:
            StorageError: The disk is full or closed to us.
        """
        started = time.perf_counter()
        try:
            attribution, weight_bytes = self.attribute(entry)
            self.write(entry, attribution, weight_bytes, time.perf_counter() - started)
            return EMBEDDED
        except StorageError:
            raise
        except (EngineError, *_FAILURES) as error:
            reason = _sentence(error)
            logger.warning("%s failed: %s", entry.name, reason)
            facts = self._facts(entry, FAILED) | {"reason": reason}
            write_failure(self.folder(entry), facts)
            return FAILED

    def write(
        self, entry: CatalogueEntry, attribution: ModelAttribution, n_bytes: int, seconds: float
    ) -> None:
        """Keep an attributed model in its folder.

        Args:
            entry: The model.
            attribution: What its answers depend on.
            n_bytes: Size of its weights.
            seconds: Time that it took.
        """
        facts = self._facts(entry, EMBEDDED) | attribution.facts
        facts |= {
            "skipped": list(attribution.skipped),
            "accuracy": _accuracy(attribution),
            "bytes": n_bytes,
            "weights": weights_mark(entry.source),
            "seconds": seconds,
        }
        write_attribution(self.folder(entry), attribution, facts, self.study.variants)

    def attribute(
        self,
        entry: CatalogueEntry,
        progress: Progress = no_progress,
        kept: PartialWork | None = None,
    ) -> tuple[ModelAttribution, int]:
        """Fetch a model, attribute it and free it.

        Args:
            entry: The model.
            progress: Wraps its batches.
            kept: Where finished batches are kept.

        Returns:
            The attribution, and the bytes of the model's weights.
        """
        settings = self.study.attribution
        device, dtype = settings.resolve()
        code = bool({entry.name, entry.source} & set(self.study.allow_code))
        needed = estimate(entry.source, dtype, settings.resolved_batch_tokens)
        if self.study.check_memory:
            check_room(entry.name, needed, device, self.path)
        keep = self.study.keep_fetched
        with fetched(entry.source, self.path, keep=keep, code=code) as folder:
            named = adapter_base(folder) or folder
            with fetched(named, self.path, keep=keep, code=code) as base:
                loaded = load_model(
                    folder,
                    name=entry.name,
                    base=base,
                    dtype=dtype,
                    device=device,
                    allow_code=code,
                )
                found = embed_model(loaded, self.probes, settings, progress=progress, kept=kept)
                return found, needed.weights

    def _facts(self, entry: CatalogueEntry, status: str) -> dict[str, Any]:
        return {
            "model": entry.name,
            "place": entry.source,
            "status": status,
            "reason": "",
            "identity": self.identity,
            "probes": self.probes.fingerprint,
        }


def weights_mark(source: str) -> str:
    """Fingerprint of a model that is here, an adapter's base included; empty for one of a hub."""
    folder = Path(packaged_path(source) if source in PACKAGED else source)
    if not folder.is_dir():
        return ""
    base = adapter_base(source)
    own = fingerprint_model(folder)
    return own if base is None else fingerprint([own, weights_mark(base)])


def _report(job: EmbedJob, catalogue: Catalogue, chosen: Sequence[CatalogueEntry]) -> EmbedReport:
    found = {entry.name: read_facts(job.folder(entry)) or {} for entry in chosen}
    return EmbedReport(
        path=job.path,
        embedded=tuple(n for n, facts in found.items() if facts.get("status") == EMBEDDED),
        failed={n: facts["reason"] for n, facts in found.items() if facts.get("status") == FAILED},
        problems=catalogue.problems,
    )


def _accuracy(attribution: ModelAttribution) -> float:
    """Share of right answers among the probes that were read."""
    read = len(attribution.columns.probes) - len(attribution.skipped)
    return float(attribution.correct.sum() / max(1, read))


def _sentence(error: BaseException) -> str:
    if isinstance(error, EngineError):
        return str(error)
    return f"It failed with {type(error).__name__}: {first_line(Exception(str(error)))}."
