"""The control and downstream tables of a synthetic run: random answers, consistent with each other.

Accuracies and gains are counted from the answers drawn here, so pages can be tested against them.
"""

from typing import Any

import numpy as np
import pandas as pd


Columns = dict[str, Any]
SETS = {"commonsense_qa": 5, "mmlu": 4, "openbook_qa": 4, "siqa": 3}
"""Sets and their options."""
_QUESTIONS, _SEEDS, _WEIGHTS, _TRACED = 90, 3, 12, 4
_CHOICES = ("none", "per_byte", "prototypes", "sae")
_SKILL = {"none": 0.2, "per_byte": 0.24, "prototypes": 0.3, "sae": 0.22}
"""Share of questions that each condition knows; the others it guesses."""


def control_tables(generator: np.random.Generator, n_prototypes: int) -> dict[str, Columns]:
    """Columns of every control table by name.

    Args:
        generator: Source of every number.
        n_prototypes: Prototypes in the bank.
    """
    questions = _questions(generator)
    answers = _answers(generator, questions)
    weights = _weights(generator, n_prototypes)
    downstream = questions.assign(
        prism_choice=_choose(generator, questions, 0.2),
        dense_choice=_choose(generator, questions, 0.2),
    )
    tables = {
        "control_questions": questions,
        "control_results": _results(answers),
        "control_gains": _gains(answers),
        "control_weights": weights,
        "control_answers": answers,
        "control_corrections": _corrections(generator, answers, questions, weights),
        "downstream": _downstream(downstream),
        "downstream_answers": downstream,
    }
    return {
        name: {str(column): frame[column] for column in frame} for name, frame in tables.items()
    }


def _questions(generator: np.random.Generator) -> pd.DataFrame:
    names = np.repeat(list(SETS), _QUESTIONS)
    options = np.repeat(list(SETS.values()), _QUESTIONS)
    return pd.DataFrame(
        {
            "set": names,
            "question": np.tile(np.arange(_QUESTIONS), len(SETS)),
            "question_id": [generator.bytes(8).hex() for _ in names],
            "n_options": options,
            "answer": generator.integers(0, options),
        }
    )


def _choose(generator: np.random.Generator, rows: pd.DataFrame, skill: float) -> np.ndarray:
    """An option a row: the right one with probability `skill`, otherwise a guess."""
    guess = generator.integers(0, rows["n_options"].to_numpy())
    return np.where(generator.random(len(rows)) < skill, rows["answer"].to_numpy(), guess)


def _answers(generator: np.random.Generator, questions: pd.DataFrame) -> pd.DataFrame:
    """Choices on the test questions of each split; without a controller no split matters."""
    fixed = {f"{name}_choice": _choose(generator, questions, _SKILL[name]) for name in _CHOICES[:2]}
    known = questions.assign(**fixed)
    splits = []
    for seed in range(_SEEDS):
        tested = known[generator.random(len(known)) < 0.3].copy()
        tested["seed"] = seed
        for name in _CHOICES[2:]:
            changed = generator.random(len(tested)) < 0.4
            new = _choose(generator, tested, _SKILL[name])
            tested[f"{name}_choice"] = np.where(changed, new, tested["none_choice"])
        splits.append(tested)
    columns = ["set", "seed", "question", "answer", *(f"{name}_choice" for name in _CHOICES)]
    return pd.concat(splits)[columns]


def _results(answers: pd.DataFrame) -> pd.DataFrame:
    rows = []
    for (name, seed), tested in answers.groupby(["set", "seed"]):
        for condition in _CHOICES:
            right = tested[f"{condition}_choice"] == tested["answer"]
            trained = condition in _CHOICES[2:]
            rows.append(
                {
                    "set": name,
                    "condition": condition.replace("_", "-"),
                    "seed": seed,
                    "accuracy": right.mean(),
                    "validation_accuracy": right.mean(),
                    "n_train": _QUESTIONS // 2,
                    "n_validation": _QUESTIONS - _QUESTIONS // 2 - len(tested),
                    "n_test": len(tested),
                    "nonzeros": _WEIGHTS if trained else 0,
                    "l1": 0.01 if trained else None,
                }
            )
    return pd.DataFrame(rows)


def _gains(answers: pd.DataFrame) -> pd.DataFrame:
    pairs = [("prototypes", "none"), ("sae", "none"), ("prototypes", "sae")]
    rows = []
    for first, second in [*pairs, ("prototypes", "per_byte")]:
        right = [answers[f"{name}_choice"] == answers["answer"] for name in (first, second)]
        difference = (right[0].astype(float) - right[1]) * 100
        of_set = difference.groupby(answers["set"]).mean()
        for name, gain in [*of_set.items(), ("mean", of_set.mean())]:
            tested = answers if name == "mean" else answers[answers["set"] == name]
            rows.append(
                {
                    "set": name,
                    "comparison": f"{first}-{second.replace('_', '-')}",
                    "gain": gain,
                    "low": gain - 4.0,
                    "high": gain + 4.0,
                    "n_questions": len(tested[["set", "question"]].drop_duplicates()),
                    "n_seeds": _SEEDS,
                }
            )
    return pd.DataFrame(rows)


def _weights(generator: np.random.Generator, n_prototypes: int) -> pd.DataFrame:
    frames = []
    count = min(_WEIGHTS, n_prototypes)
    for name in SETS:
        for seed in range(_SEEDS):
            weight = generator.normal(0, 0.5, count)
            frames.append(
                pd.DataFrame(
                    {
                        "set": name,
                        "seed": seed,
                        "prototype": generator.choice(n_prototypes, count, replace=False),
                        "weight": weight,
                        "mean_effect": np.abs(weight) * generator.random(count),
                    }
                )
            )
    return pd.concat(frames)


def _corrections(
    generator: np.random.Generator,
    answers: pd.DataFrame,
    questions: pd.DataFrame,
    weights: pd.DataFrame,
) -> pd.DataFrame:
    """Prototypes of the controller behind every answer that turned right or wrong."""
    before = answers["none_choice"] == answers["answer"]
    after = answers["prototypes_choice"] == answers["answer"]
    turned = answers[before != after].merge(questions[["set", "question", "question_id"]])
    rows = turned.rename(columns={"none_choice": "before", "prototypes_choice": "after"})
    columns = ["set", "seed", "question", "question_id", "answer", "before", "after"]
    rows = rows[columns].merge(
        weights[["set", "seed", "prototype"]].groupby(["set", "seed"]).head(_TRACED)
    )
    rows["rank"] = rows.groupby(["set", "seed", "question"]).cumcount()
    sign = np.where(generator.random(len(rows)) < 0.8, 1, -1)
    rows["contribution"] = 0.6 * sign / (1 + rows["rank"])
    return rows


def _downstream(answers: pd.DataFrame) -> pd.DataFrame:
    rows = [
        _accuracy(name, model, answers[answers["set"] == name])
        for name in SETS
        for model in ("prism", "dense")
    ]
    frame = pd.DataFrame(rows)
    means = (
        frame.groupby("model", sort=False).mean(numeric_only=True).reset_index().assign(set="mean")
    )
    means["n_questions"] = len(answers)
    return pd.concat([frame, means]).astype({"n_questions": int})


def _accuracy(name: str, model: str, answers: pd.DataFrame) -> Columns:
    right = {m: (answers[f"{m}_choice"] == answers["answer"]).mean() for m in ("prism", "dense")}
    difference = (right["prism"] - right["dense"]) * 100 if model == "prism" else None
    return {
        "set": name,
        "model": model,
        "accuracy": right[model],
        "low": max(0.0, right[model] - 0.05),
        "high": min(1.0, right[model] + 0.05),
        "n_questions": len(answers),
        "chance": 1 / SETS[name],
        "difference": difference,
        "difference_low": None if difference is None else difference - 5.0,
        "difference_high": None if difference is None else difference + 5.0,
    }
