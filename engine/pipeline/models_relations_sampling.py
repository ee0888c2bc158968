"""What models write behind the same beginnings, one file a model, so that a call goes on."""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from engine.able.files import folder_name
from engine.able.loading import load_model
from engine.able.probes import ProbeSet
from engine.atlas.sampling import Alleles, SamplingSettings, genes, sample_alleles
from engine.corpus.documents import Progress, no_progress
from engine.errors import CacheMissing, CacheStale
from engine.jobs import map_jobs
from engine.pipeline.models_embed import weights_mark
from engine.provenance import fingerprint
from engine.store import read_json, write_json_atomic


logger = logging.getLogger(__name__)
FOLDER = "relations"


@dataclass(frozen=True)
class SamplingJob:
    """The job that lets one model write; models do not depend on their order."""

    path: Path
    """Folder of the run."""
    beginnings: tuple[str, ...]
    settings: SamplingSettings

    def file(self, name: str) -> Path:
        """File of a model."""
        return self.path / FOLDER / f"{folder_name(name)}.json"

    def identity(self, place: Path) -> str:
        """What determines a model's samples."""
        return fingerprint([self.settings, self.beginnings, weights_mark(str(place))])

    def read(self, name: str, place: Path) -> Alleles | None:
        """Samples of an earlier call; None where there are none of this kind."""
        try:
            found = read_json(self.file(name))
        except (CacheMissing, CacheStale):
            return None
        return found["alleles"] if found.get("identity") == self.identity(place) else None

    def run(self, item: tuple[str, Path]) -> str:
        """Let a model write and keep what it wrote."""
        name, place = item
        loaded = load_model(str(place), name=name, dtype=torch.float32)
        alleles = sample_alleles(loaded, self.beginnings, self.settings)
        found = {"model": name, "identity": self.identity(place), "alleles": alleles}
        write_json_atomic(self.file(name), found)
        return name


def sample_models(
    path: Path,
    names: Sequence[str],
    places: Iterable[Path],
    probes: ProbeSet,
    settings: SamplingSettings,
    progress: Progress = no_progress,
) -> list[Alleles]:
    """Samples of every model, those of an earlier call as they are.

    Args:
        path: Folder of the run.
        names: The models.
        places: Folders of their weights.
        probes: Probes that beginnings are cut from.
        settings: How many, and what is compared.
        progress: Wraps the models.

    Raises:
        EngineError: A model cannot be loaded or does not write.
    """
    (path / FOLDER).mkdir(exist_ok=True)
    job = SamplingJob(path, genes(probes.probes, settings), settings)
    items = list(zip(names, places, strict=True))
    todo = [item for item in items if job.read(*item) is None]
    logger.info("%d of %d models are to write", len(todo), len(items))
    map_jobs(job.run, progress(todo, label="Sampling texts", total=len(todo)))
    return [found for item in items if (found := job.read(*item)) is not None]
