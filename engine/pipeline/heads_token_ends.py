"""Which tokens carry the influence of the samples at both ends of a head's list."""

from pathlib import Path
from typing import Any

import numpy as np
import torch

from engine.mda.influence import only, token_scores
from engine.mda.units import UNITS, TracedHeads
from engine.pipeline.heads_scoring import (
    Head,
    HeadScoring,
    all_scores,
    kept_directions,
    scored_heads,
)
from engine.store import read_json, write_json_atomic


def token_ends(scoring: HeadScoring, folder: Path, head: Head) -> list[dict[str, Any]]:
    """Influence by token of the samples at both ends; kept beside the scores.

    Args:
        scoring: samples and model.
        folder: folder of the scores.
        head: one of the heads that are scored there.

    Returns:
        Of each sample its `sign`, its `rank` on that side, its `number` among all samples, and its
        `influence` token by token; they add up to its score.
    """
    path = folder / f"tokens-{head[0]}.{head[1]}-{scoring.config.top}.json"
    if not path.is_file():
        write_json_atomic(path, _ends(scoring, folder, head))
    return read_json(path)


def _ends(scoring: HeadScoring, folder: Path, head: Head) -> list[dict[str, Any]]:
    heads = scored_heads(folder)
    unit = UNITS[read_json(folder / "facts.json")["unit"]]
    spaces = TracedHeads(unit, scoring.vocabulary, scoring.probe, heads).spaces(scoring.model)
    alone = only(spaces, kept_directions(folder, scoring.model), head)
    scores = all_scores(folder)[:, 1 + heads.index(head)]
    places = scoring.samples.places(scoring.samples.steps)
    found = []
    for sign, side in (("positive", scores), ("negative", -scores)):
        order = np.argsort(-np.where(side > 0, side, -np.inf), kind="stable")
        first = order[: min(scoring.config.top, int((side > 0).sum()))]
        for rank, number in enumerate(first):
            step, row = places[["step", "row"]].iloc[int(number)]
            tokens = torch.as_tensor(scoring.samples.order.rows(int(step))[int(row)])
            split = token_scores(scoring.model, *alone, tokens)[0].cpu().tolist()
            found.append({"sign": sign, "rank": rank, "number": int(number), "influence": split})
    return found
