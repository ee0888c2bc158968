"""The folder of one embedded model, written whole or not at all, and the probes beside it.

    words.npy  paper_words.npy  slot.npy  log_probabilities.npy     exact, float32
    embeddings.parquet  words.parquet  options.parquet              `engine.schema.model_tables`
    facts.json                                                      status, hook, seconds, ...

A model that failed has a folder with facts alone. A folder that comes from another run is told by
the fingerprint of its probes.
"""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Int8

from engine.able.columns import Columns
from engine.able.embedding import VARIANTS, EmbeddingSettings, embed_variants
from engine.able.model import ModelAttribution
from engine.able.probes import Probe, ProbeSet
from engine.errors import CacheMissing, CacheStale
from engine.provenance import fingerprint_bytes
from engine.schema import TableSpec
from engine.schema.model_tables import MODEL_EMBEDDINGS, MODEL_OPTIONS, MODEL_WORDS
from engine.store import (
    atomic_folder,
    read_json,
    read_parquet,
    write_array_atomic,
    write_json_atomic,
    write_parquet,
)


FACTS = "facts.json"
EMBEDDED, FAILED = "embedded", "failed"
_ARRAYS = ("words", "paper_words", "slot", "log_probabilities")
_TABLES: dict[str, TableSpec] = {
    "embeddings": MODEL_EMBEDDINGS,
    "words": MODEL_WORDS,
    "options": MODEL_OPTIONS,
}
_LEVELS = 127
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


def folder_name(model: str) -> str:
    """A file name for a model's name: readable, and different for different names."""
    readable = _UNSAFE.sub("-", model).strip("-.")[:60] or "model"
    return f"{readable}-{fingerprint_bytes(model.encode())[:8]}"


def write_attribution(
    folder: Path,
    attribution: ModelAttribution,
    facts: dict[str, Any],
    variants: dict[str, EmbeddingSettings] | None = None,
) -> None:
    """Write an embedded model.

    Args:
        folder: Where; an older one is replaced.
        attribution: What its answers depend on.
        facts: Identity and catalogue row; kept beside the attribution's own facts.
        variants: Ways of embedding by name; all unless given.
    """
    frames = model_frames(attribution, variants or VARIANTS)
    with atomic_folder(folder) as made:
        for name in _ARRAYS:
            write_array_atomic(made / f"{name}.npy", getattr(attribution, name))
        for name, spec in _TABLES.items():
            write_parquet(made / f"{name}.parquet", frames[spec.name], spec)
        write_json_atomic(made / FACTS, facts)


def write_failure(folder: Path, facts: dict[str, Any]) -> None:
    """Write that a model failed, and why; what was made of other weights before goes."""
    with atomic_folder(folder) as made:
        write_json_atomic(made / FACTS, facts)


def read_facts(folder: Path) -> dict[str, Any] | None:
    """What is known of a model; None where its folder is not there or not whole."""
    try:
        found = read_json(folder / FACTS)
    except (CacheMissing, CacheStale):
        return None
    return found if isinstance(found, dict) else None


def read_attribution(folder: Path, probes: ProbeSet) -> ModelAttribution:
    """An embedded model as it was attributed, exactly.

    Raises:
        CacheMissing: The folder holds no embedded model.
        CacheStale: It was attributed over other probes, or is damaged.
    """
    facts = read_facts(folder)
    if facts is None or facts.get("status") != EMBEDDED:
        raise CacheMissing(
            f"{folder} holds no embedded model; run `headwater models embed` again to make it."
        )
    check_probes(folder, facts, probes)
    columns = Columns(probes)
    try:
        arrays = {name: np.load(folder / f"{name}.npy", allow_pickle=False) for name in _ARRAYS}
    except (OSError, ValueError) as error:
        raise CacheStale(f"{folder} is damaged; remove it and embed the model again.") from error
    if len(arrays["words"]) != columns.n_columns:
        raise CacheStale(f"{folder} is damaged; remove it and embed the model again.")
    skipped = tuple(facts["skipped"])
    return ModelAttribution(
        name=facts["model"], columns=columns, **arrays, skipped=skipped, facts=facts
    )


def check_probes(folder: Path, facts: dict[str, Any], probes: ProbeSet) -> None:
    """Refuse a model that was attributed over other probes than its neighbours.

    Raises:
        CacheStale: It was.
    """
    if facts.get("probes") != probes.fingerprint:
        raise CacheStale(
            f"{folder} was attributed over other probes ({facts.get('probes')}) than this run "
            f"({probes.fingerprint}), so its columns do not compare; embed the model again."
        )


def read_tables(folder: Path) -> dict[str, pd.DataFrame]:
    """Rows of an embedded model by table.

    Raises:
        CacheStale: A file is damaged.
        SchemaMismatch: A file was written under another schema version.
    """
    return {
        spec.name: read_parquet(folder / f"{name}.parquet", spec) for name, spec in _TABLES.items()
    }


def model_frames(
    attribution: ModelAttribution, variants: dict[str, EmbeddingSettings]
) -> dict[str, pd.DataFrame]:
    """Rows of the tables of embeddings, words and options."""
    columns, name = attribution.columns, attribution.name
    probes = columns.probes.probes
    read = [number for number in range(len(probes)) if number not in set(attribution.skipped)]
    words = [compact(attribution.of_probe(number).ravel()) for number in read]
    slots = [attribution.slot[columns.options_of(number)] for number in read]
    scores = [attribution.log_probabilities[columns.options_of(number)] for number in read]
    vectors = embed_variants(attribution, variants)
    return {
        MODEL_EMBEDDINGS.name: pd.DataFrame(
            {"model": name, "variant": list(vectors), "vector": list(vectors.values())}
        ),
        MODEL_WORDS.name: pd.DataFrame(
            {
                "model": name,
                "probe": read,
                "scale": [scale for scale, _ in words],
                "values": [values for _, values in words],
                "slot": slots,
            }
        ),
        MODEL_OPTIONS.name: pd.DataFrame(
            {
                "model": name,
                "probe": read,
                "log_probabilities": scores,
                "choice": attribution.choices[read],
                "correct": attribution.correct[read],
            }
        ),
    }


def compact(
    values: Float[np.ndarray, " columns"],
) -> tuple[float, Int8[np.ndarray, " columns"]]:
    """Attributions in 8 bits each: a scale, and levels of the signed square root.

    Equal steps of the root rather than of the value keep small attributions apart.
    """
    scale = float(np.abs(values).max(initial=0.0))
    if scale == 0:
        return 0.0, np.zeros(len(values), np.int8)
    roots = np.sign(values) * np.sqrt(np.abs(values) / scale)
    return scale, np.rint(roots * _LEVELS).astype(np.int8)


def expand(scale: float, values: Int8[np.ndarray, " columns"]) -> Float[np.ndarray, " columns"]:
    """Attributions from what `compact` made of them, in nats."""
    roots = values.astype(np.float64) / _LEVELS
    return np.sign(roots) * roots * roots * scale


def write_probes(path: Path, probes: ProbeSet) -> None:
    """Write a probe set, exactly."""
    rows = [
        {"source": p.source, "prompt": p.prompt, "options": list(p.options), "answer": p.answer}
        for p in probes.probes
    ]
    write_json_atomic(path, {"name": probes.name, "style": probes.style, "probes": rows})


def read_probe_set(path: Path) -> ProbeSet:
    """Read what `write_probes` wrote.

    Raises:
        CacheMissing: There is no such file.
        CacheStale: It is damaged.
    """
    found = read_json(path)
    try:
        probes = tuple(
            Probe(row["source"], row["prompt"], tuple(row["options"]), row["answer"])
            for row in found["probes"]
        )
        return ProbeSet(found["name"], probes, found["style"])
    except (KeyError, TypeError) as error:
        raise CacheStale(f"{path} is damaged; embed the models into another run.") from error
