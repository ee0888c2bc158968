"""The downstream stage: how a model and its dense twin answer multiple choice, untrained for it.

An option's score is its log-likelihood per byte (the harness's length-normalised accuracy), for
both models alike.
"""

import logging
import time
from dataclasses import asdict, dataclass

import numpy as np
import pandas as pd
from jaxtyping import Int

from engine.control.intervals import Interval, by_question, paired_intervals
from engine.corpus.documents import Progress, no_progress
from engine.errors import ConfigError
from engine.live.opening import Opened, open_model
from engine.pipeline.control import publish_tables
from engine.pipeline.control_reading import ReadSet, read_question_set
from engine.pipeline.control_tables import question_frame
from engine.provenance import fingerprint
from engine.questions import QuestionSet, read_sets
from engine.store import Run, open_run


logger = logging.getLogger(__name__)
STAGE = "downstream"
DEFAULT_SETS = ("mmlu", "commonsense_qa", "openbook_qa", "siqa", "piqa", "logiqa")


@dataclass(frozen=True, kw_only=True)
class DownstreamStudy:
    """Settings of the study."""

    dense_run: str
    """Run of the dense twin."""
    sets: tuple[str, ...] = DEFAULT_SETS
    """Question sets."""
    items: int | None = None
    """Questions of each set; all unless given."""


def study_downstream(
    run_name: str, study: DownstreamStudy, progress: Progress = no_progress
) -> Run:
    """Write `downstream` and `downstream_answers` of a run and its dense twin.

    Raises:
        ConfigError: A set is unknown, or the twin reads other tokens than the run.
        PackageMissing: A package of questions is not here.
    """
    started = time.perf_counter()
    run, twin = open_run(run_name), open_run(study.dense_run)
    found = read_sets(list(study.sets), study.items)
    identity = {
        "sets": {s.name: fingerprint([q.id for q in s]) for s in found},
        "models": [r.manifest.get("model", {}).get("fingerprint") for r in (run, twin)],
    }
    known = run.manifest["stages"].get(STAGE, {})
    if known.get("identity") == fingerprint(identity) and "finished" in known:
        logger.info("%s has these results already", run.name)
        return run
    answers = _answers(open_model(str(run.path)), open_model(str(twin.path)), found, progress)
    frames = {"downstream": accuracy_frame(answers), "downstream_answers": answers}
    facts = {"settings": asdict(study), "seconds": time.perf_counter() - started}
    publish_tables(run, STAGE, identity, frames, facts)
    return open_run(run_name)


def _answers(
    own: Opened, twin: Opened, sets: list[QuestionSet], progress: Progress
) -> pd.DataFrame:
    """Options both models choose, of the questions that fit both."""
    if own.codec.tokenizer.get_vocab() != twin.codec.tokenizer.get_vocab():
        raise ConfigError(
            f"{twin.name} has another vocabulary than {own.name}, so it is no dense twin of it; "
            "name the twin that was trained with the same tokenizer."
        )
    frames = []
    for questions in sets:
        mine = read_question_set(own, questions, progress)
        theirs = read_question_set(twin, questions, progress)
        if mine.questions != theirs.questions:
            raise ConfigError(
                f"{twin.name} reads another number of tokens than {own.name}, so it is no dense "
                "twin of it; name the twin that was trained with the same context."
            )
        frame = question_frame([mine.questions])
        frames.append(frame.assign(prism_choice=chosen(mine), dense_choice=chosen(theirs)))
    return pd.concat(frames, ignore_index=True)


def chosen(read: ReadSet) -> Int[np.ndarray, " questions"]:
    """Option of the highest log-likelihood per byte of every question."""
    scores = read.options.log_likelihood("byte")
    size = np.bincount(read.options.question)
    parts = np.split(scores, np.cumsum(size)[:-1])
    return np.array([int(part.argmax()) for part in parts])


def accuracy_frame(answers: pd.DataFrame) -> pd.DataFrame:
    """Accuracies with intervals, and the paired difference to the twin, from the answers."""
    right = {
        m: (answers[f"{m}_choice"] == answers["answer"]).astype(float) for m in ("prism", "dense")
    }
    found = {model: _intervals(answers, values) for model, values in right.items()}
    difference = _intervals(answers, 100 * (right["prism"] - right["dense"]))
    chance = {
        name: own.value for name, own in _intervals(answers, 1 / answers["n_options"]).items()
    }
    rows = []
    for model, intervals in found.items():
        for name, own in intervals.items():
            other = difference[name] if model == "prism" else None
            rows.append(
                {
                    "set": name,
                    "model": model,
                    "accuracy": own.value,
                    "low": own.low,
                    "high": own.high,
                    "n_questions": own.n,
                    "chance": chance[name],
                    "difference": None if other is None else other.value,
                    "difference_low": None if other is None else other.low,
                    "difference_high": None if other is None else other.high,
                }
            )
    return pd.DataFrame(rows)


def _intervals(answers: pd.DataFrame, values: pd.Series) -> dict[str, Interval]:
    sets = {
        str(name): by_question(own["question"].to_numpy(), values[own.index].to_numpy(np.float64))
        for name, own in answers.groupby("set", sort=False)
    }
    return paired_intervals(sets)
