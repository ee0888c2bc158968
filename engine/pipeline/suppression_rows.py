"""Rows of a suppression study's tables, from the figures of its generations."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.pipeline.suppression_figures import Condition, bucket_rows, quality_rows
from engine.pipeline.suppression_generating import Rows, ScorerPool
from engine.pipeline.suppression_prompts import Prompt


CONDITIONS = ("baseline", "suppressed", "random")
TableRows = dict[str, list[dict[str, Any]]]


@dataclass(frozen=True)
class Shape:
    """What the rows need to know of the study."""

    strength: float
    """Strength of the suppressed and the random conditions."""
    random_sets: int
    """Random sets that generations take in turn."""
    margin: float
    """Equivalence margin of quality."""


def measured_rows(
    prompts: Mapping[str, Sequence[Prompt]],
    figures: Mapping[str, Mapping[str, Rows]],
    scorers: ScorerPool,
    shape: Shape,
) -> TableRows:
    """Rows of generations, scores, scorers, buckets and quality.

    Args:
        prompts: Of each kind, one a generation.
        figures: Of each kind and condition, in the order of the prompts.
        scorers: Which of them worked.
        shape: Of the study.
    """
    working = [name for name in scorers.names if name not in scorers.failed]
    names = ("generations", "scores", "buckets", "quality")
    rows: TableRows = {f"suppression_{name}": [] for name in names}
    for kind, own in prompts.items():
        documents = [prompt.doc_id for prompt in own]
        conditions = {name: Condition.of(documents, figures[kind][name]) for name in CONDITIONS}
        for condition in CONDITIONS:
            shared = {"prompts": kind, "condition": condition}
            columns = figures[kind][condition]
            rows["suppression_generations"] += _generations(own, columns, shared, shape)
            for name in working:
                rows["suppression_scores"] += [
                    {**shared, "scorer": name, "generation": number, "score": score}
                    for number, score in enumerate(columns[f"score:{name}"])
                ]
        for name in working:
            found = bucket_rows(name, conditions, split=kind == "unwanted")
            rows["suppression_buckets"] += [{"prompts": kind, **row} for row in found]
        found = quality_rows(conditions, shape.margin)
        rows["suppression_quality"] += [{"prompts": kind, **row} for row in found]
    total = sum(len(own) for own in prompts.values()) * len(CONDITIONS)
    return {**rows, "suppression_scorers": _scorers(scorers, total)}


def _generations(
    prompts: Sequence[Prompt], columns: Rows, shared: dict[str, Any], shape: Shape
) -> list[dict[str, Any]]:
    """Rows of `suppression_generations` of one condition."""
    kept = [name for name in columns if not name.startswith("score:")]
    condition = shared["condition"]
    return [
        {
            **shared,
            "generation": number,
            "doc_id": prompt.doc_id,
            "domain": prompt.domain,
            "seed": prompt.seed,
            "draw": number % shape.random_sets if condition == "random" else 0,
            "strength": 0.0 if condition == "baseline" else shape.strength,
            **{name: columns[name][number] for name in kept},
        }
        for number, prompt in enumerate(prompts)
    ]


def _scorers(scorers: ScorerPool, total: int) -> list[dict[str, Any]]:
    """Rows of `suppression_scorers`."""
    return [
        {
            "scorer": name,
            "chose": name == scorers.names[0],
            "failed": name in scorers.failed,
            "reason": scorers.failed.get(name, ""),
            "meaning": scorers.meaning(name),
            "n_scored": 0 if name in scorers.failed else total,
        }
        for name in scorers.names
    ]
