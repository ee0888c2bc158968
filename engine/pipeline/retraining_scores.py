"""Score matrices of every method on the study's model, each kept in a file of its own."""

import logging
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float

from engine.corpus.documents import Progress, no_progress
from engine.errors import CacheStale, PackageMissing
from engine.influence.methods import METHODS, method_named
from engine.pipeline.retraining import Study
from engine.prism.attribution.gradient import VARIANTS
from engine.store import atomic_file, open_run


logger = logging.getLogger(__name__)

CACHED = VARIANTS
"""Methods that read cached statistics; the default is chosen among them."""

Scores = Float[np.ndarray, "queries pool"]


class ScoreFolder:
    """Score matrices of a study's model; another model has another folder."""

    def __init__(self, study: Study) -> None:
        self._study = study
        model = open_run(study.path).manifest["model"]["fingerprint"]
        self.path = study.folder / f"scores-{model}"

    def file(self, method: str) -> Path:
        """The file of a method's scores."""
        return self.path / f"{method}.npy"

    def has(self, method: str) -> bool:
        """Whether its scores were computed."""
        return self.file(method).is_file()

    def done(self) -> list[str]:
        """Methods whose scores are here, in the order of the registry."""
        return [name for name in METHODS if self.has(name)]

    def read(self, method: str) -> Scores:
        """Scores of a method: float32 [queries, pool].

        Raises:
            CacheStale: The file is damaged or of another pool.
        """
        data = self._study.data
        try:
            scores = np.load(self.file(method))
        except (ValueError, EOFError) as error:
            raise self._damaged(method) from error
        if scores.shape != (len(data.queries), len(data.pool)):
            raise self._damaged(method)
        return scores

    def _damaged(self, method: str) -> CacheStale:
        return CacheStale(
            f"The file {self.file(method)} is damaged or of another pool; remove it and run "
            "`headwater retrain-check --stage score` again."
        )

    def write(self, method: str, scores: Scores) -> None:
        """Keep the scores of a method, in one step."""
        with atomic_file(self.file(method)) as file:
            np.save(file, scores.astype(np.float32), allow_pickle=False)


def score_methods(
    study: Study, methods: Sequence[str] | None = None, progress: Progress = no_progress
) -> list[str]:
    """Compute the score matrices that are not there yet.

    Args:
        study: With its model trained.
        methods: Names; None takes every method whose library is here.
        progress: Wraps the work of each method.

    Returns:
        What was left out because its library is missing, a sentence each.

    Raises:
        ConfigError: There is no such method.
        PackageMissing: The library of a method that was named is not installed.
    """
    wanted = [method_named(name) for name in (METHODS if methods is None else methods)]
    folder, model = ScoreFolder(study), study.open_model()
    left_out = []
    for method in wanted:
        if folder.has(method.name):
            continue
        try:
            scores = method.score(model, study.data.pool, study.data.queries, progress)
        except PackageMissing as error:
            if methods is not None:
                raise
            left_out.append(f"{method.name} is left out. {error}")
            continue
        folder.write(method.name, scores)
        logger.info("scored %s", method.name)
    return left_out
