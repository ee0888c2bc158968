"""Rows of the control tables from trained controllers."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from engine.control.intervals import by_question, paired_intervals
from engine.control.tracing import mean_effect, turned_answers
from engine.pipeline.control_training import TrainedSet, TrainedSplit


Row = dict[str, Any]
PROTOTYPES = "prototypes"
_UNTRAINED = ("none", "per-byte")
COMPARISONS = (
    ("prototypes", "none"),
    ("sae", "none"),
    ("prototypes", "sae"),
    ("prototypes", "per-byte"),
)
"""Pairs of conditions whose difference is reported, where both were measured."""


def control_frames(sets: list[TrainedSet]) -> dict[str, pd.DataFrame]:
    """Every control table by name; tables of prototypes only where they were trained on."""
    answers = pd.DataFrame([row for own in sets for row in _answers(own)])
    frames = {
        "control_questions": question_frame([own.read.questions for own in sets]),
        "control_results": pd.DataFrame([row for own in sets for row in _results(own)]),
        "control_gains": gains_frame(answers),
        "control_answers": answers,
    }
    if PROTOTYPES in sets[0].choices:
        weights = [row for own in sets for row in _weights(own)]
        corrections = [row for own in sets for row in _corrections(own)]
        frames["control_weights"] = pd.DataFrame(weights, columns=_WEIGHT_COLUMNS)
        frames["control_corrections"] = pd.DataFrame(corrections, columns=_CORRECTION_COLUMNS)
    return frames


_WEIGHT_COLUMNS = ["set", "seed", "prototype", "weight", "mean_effect"]
_CORRECTION_COLUMNS = [
    *("set", "seed", "question", "rank", "question_id", "answer", "before", "after"),
    *("prototype", "contribution"),
]


def question_frame(sets: list[tuple[Any, ...]]) -> pd.DataFrame:
    """Set, number, hash, options and answer of every question."""
    rows = [
        {
            "set": question.set,
            "question": question.number,
            "question_id": question.id,
            "n_options": len(question.options),
            "answer": question.answer,
        }
        for questions in sets
        for question in questions
    ]
    return pd.DataFrame(rows)


def _conditions(own: TrainedSet) -> tuple[str, ...]:
    return (*_UNTRAINED, *own.choices)


def _results(own: TrainedSet) -> Iterator[Row]:
    answer = own.bare.answer
    for trained in own.splits:
        split = trained.split
        for condition in _conditions(own):
            right = own.choice(condition, trained) == answer
            controller = trained.controllers.get(condition)
            yield {
                "set": own.read.name,
                "condition": condition,
                "seed": trained.seed,
                "accuracy": right[split.test].mean(),
                "validation_accuracy": right[split.validation].mean(),
                "n_train": len(split.train),
                "n_validation": len(split.validation),
                "n_test": len(split.test),
                "nonzeros": 0 if controller is None else controller.nonzeros,
                "l1": None if controller is None else controller.l1,
            }


def _answers(own: TrainedSet) -> Iterator[Row]:
    for trained in own.splits:
        choices = {name: own.choice(name, trained) for name in _conditions(own)}
        for place in trained.split.test:
            question = own.read.questions[place]
            row: Row = {
                "set": own.read.name,
                "seed": trained.seed,
                "question": question.number,
                "answer": question.answer,
                "prototypes_choice": None,
                "sae_choice": None,
            }
            for name, choice in choices.items():
                row[f"{name.replace('-', '_')}_choice"] = int(choice[place])
            yield row


def gains_frame(answers: pd.DataFrame) -> pd.DataFrame:
    """Paired differences of accuracy in percentage points, from the table of answers."""
    columns = {name: f"{name.replace('-', '_')}_choice" for pair in COMPARISONS for name in pair}
    right = {
        name: (answers[column] == answers["answer"]).to_numpy(np.float64)
        for name, column in columns.items()
        if answers[column].notna().all()
    }
    rows: list[Row] = []
    n_seeds = answers["seed"].nunique()
    for first, second in COMPARISONS:
        if first not in right or second not in right:
            continue
        difference = pd.Series(100 * (right[first] - right[second]), index=answers.index)
        sets = {
            str(name): by_question(own["question"].to_numpy(), difference[own.index].to_numpy())
            for name, own in answers.groupby("set", sort=False)
        }
        rows += [
            {
                "set": name,
                "comparison": f"{first}-{second}",
                "gain": found.value,
                "low": found.low,
                "high": found.high,
                "n_questions": found.n,
                "n_seeds": n_seeds,
            }
            for name, found in paired_intervals(sets).items()
        ]
    return pd.DataFrame(rows)


def _weights(own: TrainedSet) -> Iterator[Row]:
    for trained in own.splits:
        controller = trained.controllers[PROTOTYPES]
        tested_on = own.choices[PROTOTYPES].part(trained.split.test)
        effect = mean_effect(tested_on, controller)
        for prototype in np.flatnonzero(controller.weights):
            yield {
                "set": own.read.name,
                "seed": trained.seed,
                "prototype": int(prototype),
                "weight": controller.weights[prototype],
                "mean_effect": effect[prototype],
            }


def _corrections(own: TrainedSet) -> Iterator[Row]:
    for trained in own.splits:
        yield from _turned(own, trained)


def _turned(own: TrainedSet, trained: TrainedSplit) -> Iterator[Row]:
    tested_on = own.choices[PROTOTYPES].part(trained.split.test)
    for found in turned_answers(tested_on, trained.controllers[PROTOTYPES]):
        question = own.read.questions[trained.split.test[found.question]]
        pairs = zip(found.features, found.contributions, strict=True)
        for rank, (prototype, contribution) in enumerate(pairs):
            yield {
                "set": own.read.name,
                "seed": trained.seed,
                "question": question.number,
                "rank": rank,
                "question_id": question.id,
                "answer": question.answer,
                "before": found.before,
                "after": found.after,
                "prototype": int(prototype),
                "contribution": contribution,
            }
