"""The control stage: controllers over prototypes and over an autoencoder, on held-out questions."""

import logging
import time
from dataclasses import asdict, dataclass
from typing import Any

import pandas as pd
from scipy import sparse

from engine.config import require
from engine.control.features import Dictionary, option_features
from engine.control.sae import SaeReport
from engine.corpus.documents import Progress, no_progress
from engine.errors import UnsupportedModel
from engine.live.opening import Opened, open_model
from engine.pipeline.control_reading import ReadSet, read_question_set
from engine.pipeline.control_sae import autoencoder_of
from engine.pipeline.control_tables import control_frames
from engine.pipeline.control_training import Budget, TrainedSet, train_set
from engine.prism.activation import prototype_activations
from engine.provenance import fingerprint
from engine.questions import QuestionSet, read_sets
from engine.store import Run, RunWriter, open_run


logger = logging.getLogger(__name__)
STAGE = "control"
DEFAULT_SETS = ("mmlu", "commonsense_qa", "openbook_qa", "siqa")
PROTOTYPES, SAE = "prototypes", "sae"
KINDS = {PROTOTYPES: (PROTOTYPES,), SAE: (SAE,), "both": (PROTOTYPES, SAE)}
"""Kinds of features by what a user asks for."""


@dataclass(frozen=True, kw_only=True)
class ControlStudy:
    """Settings of the study."""

    sets: tuple[str, ...] = DEFAULT_SETS
    """Question sets, as `engine.questions` names them."""
    items: int | None = None
    """Questions of each set, chosen by their hashes; all unless given."""
    features: str = "both"
    """prototypes, sae or both."""
    seeds: int = 5
    """Splits, numbered from 0."""
    max_nonzeros: int = 64
    """Most weights of a controller, whatever its features."""

    def __post_init__(self) -> None:
        require(
            self.features in KINDS,
            f"--features is {self.features!r}; it must be one of {', '.join(KINDS)}.",
        )
        require(self.seeds >= 1, f"--seeds is {self.seeds}; it must be 1 or more.")
        require(self.max_nonzeros >= 1, f"--budget is {self.max_nonzeros}; it must be 1 or more.")


def study_control(run_name: str, study: ControlStudy, progress: Progress = no_progress) -> Run:
    """Write the control tables of a run.

    What the model reads is kept by chunks of questions and an autoencoder once it is trained, so a
    study that was stopped goes on where it was; one that is done with the same settings, questions
    and model is not repeated.

    Args:
        run_name: A run with a bank.
        study: Settings.
        progress: Wraps every long loop.

    Raises:
        UnsupportedModel: The run has no bank.
        PackageMissing: A package of questions is not here, or SAELens is asked for and missing.
        ConfigError: A set is unknown or too small to be split.
    """
    started = time.perf_counter()
    run = open_run(run_name)
    if run.kind == "dense":
        raise UnsupportedModel(
            f"Run {run.name} is {run.kind}: it has no prototypes to control. Name a run that "
            "`headwater train` or `headwater retrofit` made."
        )
    found = read_sets(list(study.sets), study.items)
    identity = {
        "study": asdict(study),
        "questions": {s.name: fingerprint([q.id for q in s]) for s in found},
        "model": run.manifest.get("model", {}).get("fingerprint"),
    }
    if _is_done(run, identity):
        logger.info("%s has these results already", run.name)
        return run
    sets, facts = _train(run, found, study, progress)
    frames = control_frames(sets)
    gains = frames["control_gains"]
    facts |= {
        "settings": asdict(study),
        "seconds": time.perf_counter() - started,
        "gains": {
            comparison: float(gain)
            for name, comparison, gain in gains[["set", "comparison", "gain"]].itertuples(
                index=False, name=None
            )
            if name == "mean"
        },
    }
    publish_tables(run, STAGE, identity, frames, facts)
    return open_run(run_name)


def publish_tables(
    run: Run,
    stage: str,
    identity: dict[str, Any],
    frames: dict[str, pd.DataFrame],
    facts: dict[str, Any],
) -> None:
    """Write a stage's tables in one go, so that the run's writer is held for a moment only."""
    writer = RunWriter.resume(run.path)
    writer.begin_stage(stage, identity)
    for table, frame in frames.items():
        writer.write_table(table, frame)
    writer.finish_stage(stage, facts)


def _is_done(run: Run, identity: dict[str, Any]) -> bool:
    known = run.manifest["stages"].get(STAGE, {})
    same = known.get("identity") == fingerprint(identity)
    return same and "finished" in known and run.has("control_results")


def _train(
    run: Run, found: list[QuestionSet], study: ControlStudy, progress: Progress
) -> tuple[list[TrainedSet], dict[str, Any]]:
    """Controllers of every set and split, and facts for the manifest."""
    opened = open_model(str(run.path))
    read = [read_question_set(opened, questions, progress) for questions in found]
    kinds = KINDS[study.features]
    dictionaries: dict[str, Dictionary] = {}
    report: SaeReport | None = None
    if PROTOTYPES in kinds:
        dictionaries[PROTOTYPES] = bank_dictionary(opened)
    if SAE in kinds:
        autoencoder, report = autoencoder_of(opened, run, progress)
        dictionaries[SAE] = autoencoder.dictionary()
    budget = Budget(study.seeds, study.max_nonzeros)
    sets = [
        train_set(questions, _features(opened, questions, dictionaries), budget)
        for questions in progress(read, label="Training controllers", total=len(read))
    ]
    facts: dict[str, Any] = {
        "sets": {
            q.name: {
                "questions": len(r.questions),
                "left_out": r.n_left_out,
                "malformed": q.n_malformed,
                "duplicates": q.n_duplicates,
            }
            for q, r in zip(found, read, strict=True)
        },
        "sae": None if report is None else report.as_dict(),
    }
    return sets, facts


def _features(
    opened: Opened, questions: ReadSet, dictionaries: dict[str, Dictionary]
) -> dict[str, sparse.csr_array]:
    head = opened.model.head.weight.detach()
    return {
        kind: option_features(questions.options, dictionary, head, opened.model.factor)
        for kind, dictionary in dictionaries.items()
    }


def bank_dictionary(opened: Opened) -> Dictionary:
    """The prototypes of a loaded model as a controller reads them.

    Raises:
        UnsupportedModel: It has none.
    """
    model = opened.model
    if model.prototypes is None:
        raise UnsupportedModel(
            f"{opened.name} has no prototypes to control; fit a bank with `headwater retrofit`."
        )
    bank = model.prototypes

    def encode(states: Any) -> Any:
        return prototype_activations(states, bank, model.n_active, model.chunk)

    return Dictionary(encode, bank)
