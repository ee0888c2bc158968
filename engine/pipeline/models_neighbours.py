"""What a map says of one model or of two, from its embeddings and cards as they are now."""

import difflib
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from engine.atlas.similarity import cosines, nearest
from engine.atlas.verdicts import CAVEAT, percentiles, verdict
from engine.errors import ConfigError
from engine.pipeline.models_relations_reading import MapData, open_map_data
from engine.store import read_table


LABELS = ("architecture", "tokenizer", "data", "size", "family")


def neighbours(
    run_name: str | Path, model: str, variant: str = "able", count: int = 10
) -> dict[str, Any]:
    """The models most like a model.

    Args:
        run_name: Name or folder of a map.
        model: The model.
        variant: Way of embedding.
        count: Neighbours at most.

    Returns:
        `model`, and `neighbours` with model, cosine, percentile_unrelated, verdict and
        known_relation of each, the most alike first.

    Raises:
        ConfigError: The map has no such model or variant, or count is not positive.
    """
    data = open_map_data(run_name)
    place, similarity = _place(data, model), _similarity(data, variant)
    if count < 1:
        raise ConfigError(f"--count is {count}; ask for one neighbour or more.")
    found = percentiles(similarity[place], similarity[_unrelated(data)])
    rows: list[dict[str, Any]] = []
    for other in nearest(similarity, min(count, len(data.names) - 1))[place]:
        percentile = None if found is None else float(found[other])
        rows.append(
            {
                "model": data.names[other],
                "cosine": float(similarity[place, other]),
                "percentile_unrelated": percentile,
                "verdict": verdict(percentile),
                "known_relation": data.lineage.known(model, data.names[other]),
            }
        )
    return {"model": model, "neighbours": rows}


def compare(run_name: str | Path, a: str, b: str) -> dict[str, Any]:
    """How alike two models are by every variant, and what is documented of them.

    Returns:
        `a`, `b`, `known_relation` (what b is to a), `related` (by the documents; None: unknown),
        `same` (labels that are equal), `comparisons` with method, score, percentile_unrelated and
        verdict of each, and the sentence on what that proves.

    Raises:
        ConfigError: The map has no such model, or they are one.
    """
    data = open_map_data(run_name)
    first, second = _place(data, a), _place(data, b)
    if first == second:
        raise ConfigError(f"{a} was named twice; name two models.")
    unrelated = _unrelated(data)
    found = [
        _judged(name, similarity[first, second], similarity[unrelated])
        for name in data.vectors
        for similarity in (_similarity(data, name),)
    ]
    known = data.lineage.by_name
    return {
        "a": a,
        "b": b,
        "known_relation": data.lineage.known(a, b),
        "related": data.lineage.related(a, b),
        "same": [
            label
            for label in LABELS
            if (value := getattr(known[a], label, "")) and value == getattr(known[b], label, "")
        ],
        "comparisons": found + _stored(data, a, b),
        "caveat": CAVEAT,
    }


def _judged(method: str, score: float, unrelated: Float[np.ndarray, " pairs"]) -> dict[str, Any]:
    found = percentiles(np.array([score]), unrelated)
    percentile = None if found is None else float(found[0])
    return {
        "method": method,
        "score": float(score),
        "percentile_unrelated": percentile,
        "verdict": verdict(percentile),
    }


def _stored(data: MapData, a: str, b: str) -> list[dict[str, Any]]:
    """Comparisons by other methods, where relations of the map were computed."""
    if not data.run.has("model_pairs"):
        return []
    pairs = read_table(data.run, "model_pairs", columns=["pair", "a", "b", "related"])
    own = pairs[pairs["a"].isin([a, b]) & pairs["b"].isin([a, b])]
    if own.empty:
        return []
    number = int(own["pair"].iloc[0])
    mine = read_table(data.run, "model_pair_scores", where={"pair": number})
    mine = mine[~mine["method"].isin([*data.vectors, "random"])]
    rest = pairs.loc[~pairs["related"], "pair"].to_numpy()
    scores = read_table(data.run, "model_pair_scores", where={"method": mine["method"].tolist()})
    found = []
    for method, score in zip(mine["method"], mine["score"], strict=True):
        of_method = scores[scores["method"] == method].set_index("pair")["score"]
        found.append(_judged(method, score, of_method.loc[rest].to_numpy(np.float64)))
    return found


def _place(data: MapData, model: str) -> int:
    if model in data.names:
        return data.names.index(model)
    close = difflib.get_close_matches(model, data.names, n=3)
    hint = f"; did you mean {', '.join(close)}?" if close else "."
    raise ConfigError(f"Run {data.run.name} holds no embedding of {model!r}{hint}")


def _similarity(data: MapData, variant: str) -> Float[np.ndarray, "models models"]:
    if variant not in data.vectors:
        raise ConfigError(
            f"Run {data.run.name} has no variant {variant!r}; it has {', '.join(data.vectors)}."
        )
    return cosines(data.vectors[variant])


def _unrelated(data: MapData) -> Bool[np.ndarray, "models models"]:
    """Pairs that are documented as unrelated, each once."""
    found = np.zeros((len(data.names), len(data.names)), bool)
    for a, first in enumerate(data.names):
        for b in range(a + 1, len(data.names)):
            found[a, b] = data.lineage.related(first, data.names[b]) is False
    return found
