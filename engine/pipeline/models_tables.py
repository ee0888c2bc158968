"""The tables of a map, gathered from the folders of its models."""

from collections.abc import Collection
from pathlib import Path
from typing import Any

import pandas as pd

from engine.able.files import EMBEDDED, check_probes, folder_name, read_facts, read_tables
from engine.able.probes import ProbeSet
from engine.errors import CacheStale
from engine.schema import TableSpec
from engine.schema.model_tables import (
    MODEL_CATALOGUE,
    MODEL_EMBEDDINGS,
    MODEL_OPTIONS,
    MODEL_PROBES,
    MODEL_WORDS,
)
from engine.store import read_parquet, stored_manifest


_OF_MODELS = (MODEL_EMBEDDINGS, MODEL_WORDS, MODEL_OPTIONS)


def map_frames(folder: Path, probes: ProbeSet) -> tuple[dict[str, pd.DataFrame], tuple[str, ...]]:
    """Frames of every table of a map, and a sentence for each model that does not belong to it.

    Args:
        folder: Folder that holds the folders of the models.
        probes: The run's probes; a model attributed over others is left out.

    Raises:
        CacheStale: A model's file is damaged.
    """
    rows: list[dict[str, Any]] = []
    parts: dict[str, list[pd.DataFrame]] = {spec.name: [] for spec in _OF_MODELS}
    problems: list[str] = []
    for place in sorted(folder.iterdir()):
        facts = read_facts(place)
        if facts is None:
            continue
        try:
            check_probes(place, facts, probes)
        except CacheStale as error:
            problems.append(str(error))
            continue
        rows.append(catalogue_row(facts, len(probes)))
        if facts["status"] == EMBEDDED:
            for name, frame in read_tables(place).items():
                parts[name].append(frame)
    frames = {
        MODEL_PROBES.name: probe_frame(probes),
        MODEL_CATALOGUE.name: _frame(MODEL_CATALOGUE, [pd.DataFrame(rows)] if rows else []),
        **{spec.name: _frame(spec, parts[spec.name]) for spec in _OF_MODELS},
    }
    return frames, tuple(problems)


def probe_frame(probes: ProbeSet) -> pd.DataFrame:
    """The table of probes."""
    listed = probes.probes
    return pd.DataFrame(
        {
            "probe": range(len(listed)),
            "key": [probe.id for probe in listed],
            "source": [probe.source for probe in listed],
            "prompt": [probe.prompt for probe in listed],
            "options": [list(probe.options) for probe in listed],
            "answer": [probe.answer for probe in listed],
            "n_words": [probe.n_words for probe in listed],
        }
    )


def catalogue_row(facts: dict[str, Any], n_probes: int) -> dict[str, Any]:
    """A model's row of the catalogue, from what is kept beside its arrays."""
    embedded = facts["status"] == EMBEDDED
    skipped = len(facts.get("skipped", []))
    return {
        "model": facts["model"],
        "place": facts["place"],
        "status": facts["status"],
        "reason": facts["reason"],
        "architecture": facts.get("architecture", ""),
        "n_parameters": facts.get("n_parameters", 0),
        "hook": facts.get("hook", ""),
        "homogeneity": facts.get("homogeneity"),
        "two_parts": facts.get("two_parts", False),
        "dtype": facts.get("dtype", ""),
        "n_probes": n_probes - skipped if embedded else 0,
        "n_skipped": skipped,
        "accuracy": facts.get("accuracy"),
        "seconds": facts.get("seconds", 0.0),
        "bytes": facts.get("bytes", 0),
    }


def _frame(spec: TableSpec, parts: list[pd.DataFrame]) -> pd.DataFrame:
    if not parts:
        return pd.DataFrame({column.name: [] for column in spec.columns})
    return pd.concat(parts, ignore_index=True)


def refuse_losing(path: Path, folder: Path, names: Collection[str]) -> None:
    """Refuse a run whose tables hold models that could not be written into them again.

    Of a map that was published, and of a copy of one, the tables were kept and not the models'
    folders, from which a catalogue run writes all tables anew.

    Args:
        path: Folder of the run, which need not be there.
        folder: Where the models' folders would lie.
        names: Models that are to be embedded.

    Raises:
        CacheStale: There are such models, and they are not among the names.
    """
    manifest = (stored_manifest(path) or {}) if path.is_dir() else {}
    kept = manifest.get("tables", {}).get(MODEL_CATALOGUE.name, {"files": []})["files"]
    rows = [read_parquet(path / file["path"], MODEL_CATALOGUE) for file in kept]
    lost = [
        model
        for frame in rows
        for model in frame["model"][frame["status"] == EMBEDDED].astype(str)
        if model not in names and not (folder / folder_name(model)).is_dir()
    ]
    if lost:
        raise CacheStale(
            f"Run {path.name} keeps no files of its own for {len(lost)} of its models, as a map "
            "that was published does, and embedding a catalogue into it would lose them. Name "
            "another run with --run, or add single models with `headwater models add MODEL "
            f"--run {path.name}`."
        )
