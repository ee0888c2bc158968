"""The attribution pool of the study's run: the very sequences its model was trained on."""

from engine.corpus.documents import Progress, no_progress
from engine.pipeline.attribution import build_pool
from engine.pipeline.attribution_rows import PoolSettings
from engine.pipeline.retraining import Study
from engine.pipeline.retraining_tables import pool_doc_ids
from engine.store import Run, open_run
from engine.store.pools import find_pool, has_pool, pool_home


def index_study_pool(study: Study, progress: Progress = no_progress) -> Run:
    """Store the statistics of the study's pool, facts included, unless that is done.

    A shipped run that brings a part of its pool is left as it is.

    Args:
        study: With its model trained.
        progress: Wraps shards of sequences.

    Returns:
        The folder that holds the pool, opened.
    """
    run = open_run(study.path)
    if pool_home(run) != run.path and has_pool(run):
        return find_pool(run)
    return build_pool(
        study.path,
        PoolSettings(sequences=len(study.data.pool), length=study.config.length),
        progress,
        rows=study.data.pool,
        doc_ids=pool_doc_ids(study.data, study.shards),
    )
