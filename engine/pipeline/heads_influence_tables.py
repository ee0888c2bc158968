"""Tables of the influence of samples on the heads of a given model."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from jaxtyping import Float

from engine.corpus.shards import TokenShards
from engine.pipeline.heads_scoring import HeadScoring, all_scores
from engine.pipeline.heads_token_ends import token_ends
from engine.schema import HEAD_TOKENS
from engine.store import Run, RunWriter, open_run, read_json


TOP_SHARE = 0.1
"""Share of the samples that counts as a head's top."""


@dataclass(frozen=True)
class Asked:
    """One kind of head: the head the result is about, and where its scores lie."""

    layer: int
    head: int
    folder: Path
    """Folder of the scores."""


def influence_tables(
    scoring: HeadScoring, shards: TokenShards, asked: Mapping[str, Asked], checkpoint_step: int
) -> dict[str, Any]:
    """Columns by table name.

    Args:
        scoring: samples and their tags.
        shards: the corpus in the model's tokens.
        asked: what was scored, by kind of head.
        checkpoint_step: step of the weights.
    """
    places = scoring.samples.places(scoring.samples.steps)
    scores = {unit: all_scores(one.folder) for unit, one in asked.items()}
    documents, document = np.unique(places["document"], return_inverse=True)
    frame = shards.corpus.documents.iloc[documents].reset_index(drop=True)
    frame["document"] = np.arange(len(frame), dtype=np.int32)
    tags = [tag for number in range(len(scoring.shards())) for tag in scoring.tags(number)]
    samples = {
        "seed": np.zeros(len(places), np.int16),
        "step": places["step"],
        "row": places["row"],
        "domain": frame["domain"].to_numpy()[document],
        "document": document.astype(np.int32),
        # the separator in front, with which a sample may begin, is no token of the document
        "position": np.maximum(places["position"] - 1, 0),
        "segment": np.zeros(len(places), np.int64),
        "loss": _losses(scores.values()),
        "tags": tags,
    }
    return {
        "documents": frame,
        "head_samples": samples,
        "head_influence": _influence(places, scores),
        "head_tokens": _tokens(scoring, places, asked),
        "head_choices": pd.DataFrame(
            [_choice(unit, one, len(places), checkpoint_step) for unit, one in asked.items()]
        ),
    }


def _losses(scores: Any) -> Float[np.ndarray, " samples"]:
    """Loss of each sample; where one kind left it out, that of another."""
    losses, *others = [found[:, 0] for found in scores]
    for other in others:
        losses = np.where(np.isfinite(losses), losses, other)
    return losses


def _influence(
    places: pd.DataFrame, scores: dict[str, Float[np.ndarray, "_samples _columns"]]
) -> dict[str, Any]:
    """Columns of `head_influence`, 4 bytes a sample and head."""
    n = len(places)
    lists = []
    for found in scores.values():
        values = found[:, 1:].astype(np.float32)
        flat = pa.array(values.ravel(), mask=~np.isfinite(values.ravel()))
        offsets = pa.array(np.arange(n + 1, dtype=np.int32) * values.shape[1])
        lists.append(pa.ListArray.from_arrays(offsets, flat))
    return {
        "seed": np.zeros(n * len(scores), np.int16),
        "unit": np.repeat(list(scores), n),
        "step": np.tile(places["step"], len(scores)),
        "row": np.tile(places["row"], len(scores)),
        "influence": pa.chunked_array(lists),
    }


def _tokens(scoring: HeadScoring, places: pd.DataFrame, asked: Mapping[str, Asked]) -> pd.DataFrame:
    """Rows of `head_tokens`: both ends of each head that the result is about."""
    rows = [
        {
            "seed": 0,
            "unit": unit,
            "layer": one.layer,
            "head": one.head,
            "sign": end["sign"],
            "rank": end["rank"],
            **places[["step", "row"]].iloc[end["number"]].to_dict(),
            "influence": np.array(end["influence"], np.float32),
        }
        for unit, one in asked.items()
        for end in token_ends(scoring, one.folder, (one.layer, one.head))
    ]
    return pd.DataFrame(rows, columns=[column.name for column in HEAD_TOKENS.columns])


def _choice(unit: str, asked: Asked, n_samples: int, checkpoint_step: int) -> dict[str, Any]:
    """A row of `head_choices`; nothing was planted among samples of a corpus."""
    facts = read_json(asked.folder / "facts.json")
    return {
        "seed": 0,
        "unit": unit,
        "layer": asked.layer,
        "head": asked.head,
        "checkpoint_step": checkpoint_step,
        "heads": [f"{layer}.{head}" for layer, head in facts["heads"]],
        "n_selected": round(TOP_SHARE * n_samples),
        "n_samples": n_samples,
        "n_planted_selected": 0,
        "n_planted": 0,
        "n_skipped": facts["n_skipped"],
        "seconds": facts["seconds"],
    }


def write_influence(
    writer: RunWriter,
    stage: str,
    identity: dict[str, Any],
    facts: dict[str, Any],
    tables: Callable[[], dict[str, Any]],
) -> Run:
    """Write the tables of the stage and publish it; a stage that says the same is left alone.

    Args:
        writer: the run.
        stage: name of the stage.
        identity: what decides its result, kept with it.
        facts: what else is worth keeping.
        tables: called where they must be written; columns by table name.
    """
    if not writer.begin_stage(stage, identity):
        for name, columns in tables().items():
            writer.write_table(name, columns)
        writer.finish_stage(stage, {**identity, **facts})
    return open_run(writer.path)
