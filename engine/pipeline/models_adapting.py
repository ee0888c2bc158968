"""Adapt every root of a zoo to every target, alike and briefly; each adaptation is kept as it ends.

A root is trained on the lines of one domain, statements and questions with their answers, and asked
the domain's questions before and after. All facts that are asked are among what is read; what
differs between roots is how fast they take them up.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import torch

from engine.config import require
from engine.corpus.documents import Progress, no_progress
from engine.errors import CacheMissing, CacheStale, ConfigError
from engine.jobs import Fan, map_jobs
from engine.pipeline.models_zoo import open_zoo
from engine.pipeline.models_zoo_folder import ZooFolder
from engine.pipeline.models_zoo_tables import MANIFEST
from engine.provenance import fingerprint
from engine.store import read_json, write_json_atomic
from engine.zoo.answers import correctness, option_scores
from engine.zoo.manifest import ModelSpec
from engine.zoo.tokenizers import tokenizer_kind
from engine.zoo.training import RowStream, Schedule, mix_lines, train
from engine.zoo.worlds import mixture


FOLDER = "adaptations"
_ORDER_SEED = 7_000_000
"""Added to an adaptation's seed, so that no model of the zoo was trained in the same order."""


class Adaptation(NamedTuple):
    """One training: a root on a target with a seed."""

    model: str
    target: str
    seed: int


@dataclass(frozen=True, kw_only=True)
class AdaptSettings:
    """Which adaptations there are, and how long each takes."""

    targets: tuple[str, ...] = ()
    """Domains; every domain that is asked unless given."""
    seeds: int = 1
    """Trainings of a root on a target."""
    schedule: Schedule = field(default_factory=lambda: Schedule(steps=40, learning_rate=2e-3))
    """Training, the same for all: four times the rate of the zoo's mild fine-tuning, at which few
    roots take up a domain, in two thirds of its steps."""

    def __post_init__(self) -> None:
        require(self.seeds >= 1, f"--seeds is {self.seeds}; it must be 1 or more.")


@dataclass(frozen=True)
class AdaptJob:
    """The job that adapts one root; it depends on no other."""

    zoo: ZooFolder
    folder: Path
    schedule: Schedule

    def spec(self, item: Adaptation) -> ModelSpec:
        """The root's plan."""
        return self.zoo.plan.by_id[item.model]

    def path(self, item: Adaptation) -> Path:
        """File of an adaptation."""
        return self.folder / f"{item.model}--{item.target}--{item.seed}.json"

    def identity(self, item: Adaptation) -> str:
        """What determines its result: weights, lines, questions, training."""
        return fingerprint([self.zoo.identity(self.spec(item)), item, self.schedule])

    def result(self, item: Adaptation) -> dict[str, Any] | None:
        """What was measured; None where it was not, or of something else."""
        try:
            found = read_json(self.path(item))
        except (CacheMissing, CacheStale):
            return None
        return found if found.get("identity") == self.identity(item) else None

    def is_done(self, item: Adaptation) -> bool:
        """Whether it is measured."""
        return self.result(item) is not None

    def run(self, item: Adaptation) -> float:
        """Train, ask, write.

        Returns:
            Accuracy after.
        """
        spec, zoo = self.spec(item), self.zoo
        places = [i for i, q in enumerate(zoo.questions) if q.resource == item.target]
        asked = [zoo.questions[place] for place in places]
        before = float(correctness(zoo.scores(spec)[places], asked).mean())
        found = zoo.load(spec.id)
        lines = mix_lines(zoo.world, mixture(item.target))
        kind = tokenizer_kind(spec.tokenizer)
        rows = RowStream(lines, found.tokenizer, kind, _ORDER_SEED + item.seed)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(item.seed)
            train(found.model, rows, self.schedule)
        after = float(correctness(option_scores(found.model, found.tokenizer, asked), asked).mean())
        result = {"identity": self.identity(item), **item._asdict()}
        write_json_atomic(self.path(item), {**result, "before": before, "after": after})
        return after


def adapt_roots(
    zoo: ZooFolder,
    folder: Path,
    settings: AdaptSettings,
    fan: Fan | None = None,
    progress: Progress = no_progress,
) -> pd.DataFrame:
    """Rows of `model_adaptations`: what is missing is trained, the rest is read.

    Args:
        zoo: The zoo; all its roots must be built.
        folder: Where adaptations are kept.
        settings: Targets, seeds and training.
        fan: Where jobs run; in this process unless given.
        progress: Wraps the adaptations.

    Raises:
        CacheMissing: A root is not built.
        ConfigError: A target is no domain that is asked.
    """
    roots = [spec for spec in zoo.plan.roots if zoo.is_done(spec)]
    if len(roots) < len(zoo.plan.roots):
        raise CacheMissing(
            f"The zoo {zoo.path} lacks {len(zoo.plan.roots) - len(roots)} of its roots; finish it "
            f"with `headwater models zoo --to {zoo.path}`."
        )
    targets = _targets(zoo, settings.targets)
    items = [
        Adaptation(spec.id, target, seed)
        for spec, target, seed in product(roots, targets, range(settings.seeds))
    ]
    folder.mkdir(parents=True, exist_ok=True)
    job = AdaptJob(zoo, folder, settings.schedule)
    todo = [item for item in items if not job.is_done(item)]
    map_jobs(job.run, progress(todo, label="Adapting roots", total=len(todo)), fan=fan)
    columns = ("model", "target", "seed", "before", "after")
    return pd.DataFrame([{c: (job.result(i) or {})[c] for c in columns} for i in items])


def _targets(zoo: ZooFolder, wanted: Sequence[str]) -> tuple[str, ...]:
    known = tuple(dict.fromkeys(question.resource for question in zoo.questions))
    unknown = [target for target in wanted if target not in known]
    if unknown:
        raise ConfigError(
            f"There is no target {unknown[0]!r}; the zoo asks about {', '.join(known)}."
        )
    return tuple(wanted) or known


def reopened_zoo(path: Path) -> ZooFolder:
    """The zoo of a folder, as it was planned.

    Raises:
        CacheMissing: The folder holds no zoo.
        CacheStale: It is of a plan or training that this version does not make.
    """
    try:
        planned = read_json(path / MANIFEST)
    except CacheMissing as error:
        raise CacheMissing(
            f"{path} holds no zoo; build one with `headwater models zoo --to {path}`."
        ) from error
    zoo = open_zoo(path, only_slice=planned["plan"] == "slice", seed=planned["world"]["seed"])
    if [spec.id for spec in zoo.plan.models] != [model["id"] for model in planned["models"]]:
        raise CacheStale(
            f"The zoo {path} was built from another plan than this version makes; build it again "
            f"with `headwater models zoo --to {path}`."
        )
    return zoo
