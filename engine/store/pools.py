"""Where the attribution pool of a run lies: in the run, or beside the shipped run in the cache."""

import os
from pathlib import Path
from typing import Any

from engine.config import assets_root, cache_root
from engine.errors import CacheMissing, CacheStale
from engine.store.runs import DRAFT, MANIFEST, Run, open_run


POOL = "attribution"
"""Stage, group of arrays, and folder of the cache for pools of shipped runs."""

DEFAULT_VARIANT = "path+diagonal+unit"
"""Variant of a pool's statistics that is searched where none is named.

Its LDS is within 0.003 of the best variant's on the queries that choose (`docs/LOG.md`), and it
needs no solve of prototypes by prototypes, which takes seconds.
"""


def pool_home(run: Run) -> Path:
    """Folder a pool of the run is built in: the run's own, or one in the cache if it is shipped.

    A run counts as shipped where it lies among the assets or its folder cannot be written.
    """
    shipped = run.path.resolve().is_relative_to(assets_root().resolve())
    if shipped or not os.access(run.path, os.W_OK):
        return cache_root() / POOL / run.name
    return run.path


def find_pool(run: Run) -> Run:
    """The folder that holds the run's pool, opened; one built here comes before a shipped one.

    Raises:
        CacheMissing: There is none, or it is unfinished.
        CacheStale: There is one, made with another checkpoint of the run's model.
    """
    command = f"`{run.command_of_stage(POOL)}`"
    own = pool_home(run)
    model = (run.manifest.get("model") or {}).get("fingerprint")
    others = []
    for path in dict.fromkeys((own, run.path)):
        if not (path / MANIFEST).is_file():
            continue
        found = open_run(path)
        entry = _finished(found)
        if entry is not None and entry.get("model") == model:
            return found
        others += [entry.get("model")] if entry is not None else []
    if others:
        raise CacheStale(
            f"The attribution pool of run {run.name} was made with another checkpoint of its model "
            f"({others[0]}, and the run's is {model}); make it again with {command}."
        )
    if (own / DRAFT).is_file():
        raise CacheMissing(
            f"Run {run.name} has no finished attribution pool; make it with {command}."
        )
    raise CacheMissing(f"Run {run.name} has no attribution pool; make it with {command}.")


def pool_beside(run: Run) -> Run | None:
    """The folder in the cache that holds, or is to hold, a pool of a shipped run; None without."""
    home = pool_home(run)
    return open_run(home) if home != run.path and (home / MANIFEST).is_file() else None


def has_pool(run: Run) -> bool:
    """Whether the run has a finished pool, here or shipped, that fits its model."""
    try:
        find_pool(run)
    except (CacheMissing, CacheStale):
        return False
    return True


def _finished(run: Run) -> dict[str, Any] | None:
    """Facts of the stage, if it is finished and its arrays are there."""
    entry = run.manifest["stages"].get(POOL)
    whole = entry is not None and "finished" in entry
    return entry if whole and POOL in run.arrays else None
