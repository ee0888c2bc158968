"""What a zoo's folder says about its models: catalogue, questions, correctness, answers."""

import csv
import dataclasses
import io
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from engine.pipeline.models_zoo_folder import ZooFolder
from engine.store import write_array_atomic, write_bytes_atomic, write_json_atomic
from engine.zoo.manifest import ModelSpec
from engine.zoo.schedules import Schedules


CATALOGUE, QUESTIONS, CORRECTNESS = "catalogue.csv", "questions.jsonl", "correctness.csv"
ACCURACY, SCORES, MANIFEST = "accuracy.csv", "answers.npy", "manifest.json"
COLUMNS = (
    "id",
    "path",
    "root",
    "parents",
    "derivation",
    "architecture",
    "tokenizer",
    "data_mix",
    "size",
    "hard_negative_group",
    "seed",
    "order_seed",
    "family",
    "variant",
    "target",
    "copies_weights",
    "steps",
    "n_parameters",
    "accuracy",
    "sha256",
)
"""Columns of the catalogue. Several parents, roots or groups are separated by a semicolon; paths
are relative to the catalogue."""


def write_plan(zoo: ZooFolder) -> None:
    """Write plan and questions; they are there before the first model."""
    rows = (json.dumps(q.row(), ensure_ascii=False) for q in zoo.questions)
    _write_text(zoo.path / QUESTIONS, "".join(f"{row}\n" for row in rows))
    write_json_atomic(zoo.path / MANIFEST, plan_json(zoo))


def plan_json(zoo: ZooFolder) -> dict[str, Any]:
    """The plan as JSON: world, training and models."""
    schedules: Schedules = zoo.schedules
    return {
        "plan": zoo.plan.name,
        "world": {"seed": zoo.world.seed, "fingerprint": zoo.world.fingerprint},
        "schedules": _plain(schedules),
        "models": [_plain(spec) for spec in zoo.plan.models],
    }


def _plain(value: Any) -> Any:
    return json.loads(json.dumps(dataclasses.asdict(value)))


def write_tables(zoo: ZooFolder) -> list[dict[str, Any]]:
    """Write the tables of all models that are finished, in the order of the plan.

    Returns:
        Their cards.
    """
    cards = [card for spec in zoo.plan.models if (card := zoo.card(spec)) is not None]
    specs = [zoo.plan.by_id[card["id"]] for card in cards]
    rows = [catalogue_row(card, spec) for card, spec in zip(cards, specs, strict=True)]
    _write_csv(zoo.path / CATALOGUE, COLUMNS, rows)
    domains = list(dict.fromkeys(q.resource for q in zoo.questions))
    rows = [[c["id"], *(f"{c['accuracy'][d]:.4f}" for d in ("all", *domains))] for c in cards]
    _write_csv(zoo.path / ACCURACY, ("id", "all", *domains), rows)
    if cards:
        scores = np.stack([zoo.scores(spec) for spec in specs])
        write_array_atomic(zoo.path / SCORES, scores)
        right = scores.argmax(2) == np.array([q.ans_idx for q in zoo.questions])
        names = ("id", *(q.full_index for q in zoo.questions))
        rows = [[card["id"], *map(int, row)] for card, row in zip(cards, right, strict=True)]
        _write_csv(zoo.path / CORRECTNESS, names, rows)
    return cards


def catalogue_row(card: dict[str, Any], spec: ModelSpec) -> list[Any]:
    """A model as its line of the catalogue."""
    return [
        spec.id,
        f"models/{spec.id}",
        ";".join(spec.roots),
        ";".join(spec.parents),
        spec.derivation,
        spec.architecture,
        spec.tokenizer,
        spec.mix,
        spec.size,
        ";".join(spec.groups),
        spec.seed,
        spec.order_seed,
        spec.family,
        spec.variant,
        spec.target,
        int(spec.copies_weights),
        card["steps"],
        card["n_parameters"],
        f"{card['accuracy']['all']:.4f}",
        card["sha256"],
    ]


def _write_csv(path: Path, names: Iterable[str], rows: Iterable[list[Any]]) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    writer.writerows(rows)
    _write_text(path, text.getvalue())


def _write_text(path: Path, text: str) -> None:
    write_bytes_atomic(path, text.encode())
