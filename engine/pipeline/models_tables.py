"""The tables of a map, gathered from the folders of its models."""

from pathlib import Path
from typing import Any

import pandas as pd

from engine.able.files import EMBEDDED, check_probes, read_facts, read_tables
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
