"""The study by retraining: its model on the whole pool, then one model a subset and seed."""

import logging
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from engine.config import cache_root, resolved
from engine.corpus.build import open_corpus
from engine.corpus.documents import Progress, no_progress
from engine.corpus.shards import TokenShards, tokenise_corpus
from engine.corpus.tokenizer import corpus_tokenizer, load_tokenizer, save_tokenizer
from engine.lm.loading import quiet_loading
from engine.pipeline.retraining_fit import fit
from engine.pipeline.retraining_outcomes import (
    OutcomeFolder,
    planned_retrainings,
    retrain,
)
from engine.pipeline.retraining_pool import StudyData, study_data
from engine.pipeline.retraining_settings import RetrainConfig
from engine.pipeline.training import corpus_facts, model_facts
from engine.pipeline.training_identity import run_identity
from engine.prism.checkpoints import load_prism
from engine.prism.model import PrismForCausalLM
from engine.provenance import fingerprint
from engine.store import Run, RunWriter, atomic_folder, open_run, resolve_run, stored_manifest


logger = logging.getLogger(__name__)

OUTCOMES = "retraining"
"""Folder of the cache that keeps outcomes and scores of studies; it is no run."""

_CHOSEN_LATER = frozenset({"subsets", "seeds", "removed_share", "removal_domains"})
"""Settings that change no training: more subsets leave those that are done as they were."""


@dataclass(frozen=True)
class Study:
    """An opened study: settings, data and where things are kept."""

    config: RetrainConfig
    path: Path
    """Folder of its run."""
    shards: TokenShards
    tokenizer: Path
    """`tokenizer.json` of the corpus."""
    data: StudyData

    @property
    def identity(self) -> dict[str, Any]:
        """What determines every training of the study."""
        settings = resolved(self.config)
        kept = {name: value for name, value in settings.items() if name not in _CHOSEN_LATER}
        return {"study": kept, "data": self.data.fingerprint}

    @property
    def folder(self) -> Path:
        """Folder of outcomes and scores; other settings have another one."""
        return cache_root() / OUTCOMES / self.path.name / fingerprint(self.identity)

    @property
    def outcomes(self) -> OutcomeFolder:
        """Outcomes of its retrainings."""
        return OutcomeFolder(self.folder / "outcomes")

    def open_model(self) -> PrismForCausalLM:
        """The model trained on the whole pool: the one whose attribution is judged."""
        return load_prism(open_run(self.path).model_path)[0]


def open_study(config: RetrainConfig, run: str, progress: Progress = no_progress) -> Study:
    """Tokenise the corpus where that is not done, and draw pool and queries.

    Args:
        config: Settings.
        run: Name or folder of the study's run.
        progress: Wraps documents.

    Raises:
        CorpusError: The corpus is not built, or smaller than the pool that was asked for.
    """
    quiet_loading()
    path = resolve_run(run)
    corpus = open_corpus(config.corpus)
    file = corpus_tokenizer(corpus, config.vocab_size)
    tokenizer = load_tokenizer(file)
    shards = tokenise_corpus(corpus, tokenizer, progress)
    return Study(config, path, shards, file, study_data(config, shards, tokenizer))


def train_study_model(study: Study) -> Run:
    """Train the study's model on the whole pool, as a run that opens like any other.

    Raises:
        CacheStale: The run exists and was made with other settings.
    """
    config, shards, data = study.config, study.shards, study.data
    if _is_trained(study):
        return open_run(study.path)
    started = time.perf_counter()
    training = config.training(config.steps_of(len(data.pool)), config.seed)
    vocabulary = {"fingerprint": shards.manifest["tokenizer"], "vocab_size": shards.vocab_size}
    identity = run_identity(training, None, corpus_facts(shards.corpus), vocabulary)
    identity["config"] |= study.identity
    writer = RunWriter.create(study.path, name=study.path.name, kind="prism", identity=identity)
    if writer.begin_stage("train", identity):
        return open_run(study.path)
    log: list[dict[str, Any]] = []
    everything = np.ones(len(data.pool), bool)
    model = fit(
        data.pool.tokens, everything, config, config.seed, separator=shards.separator, log=log
    )
    with atomic_folder(study.path / "model") as folder:
        model.save_pretrained(folder)
        save_tokenizer(load_tokenizer(study.tokenizer), folder, config.length)
    writer.write_table("training_log", pd.DataFrame(log))
    writer.update("model", model_facts(model))
    facts = {
        "seconds": time.perf_counter() - started,
        "steps": training.steps,
        "tokens": log[-1]["tokens_seen"],
        "device": "cpu",
    }
    writer.finish_stage("train", facts)
    logger.info("trained %s on %d sequences", study.path.name, len(data.pool))
    return open_run(study.path)


def retrain_subsets(study: Study, progress: Progress = no_progress) -> None:
    """Retrain every subset with every seed, as far as that is not done."""
    jobs = planned_retrainings(study.config, len(study.data.pool))
    retrain(
        jobs,
        study.data,
        study.config,
        study.outcomes,
        separator=study.shards.separator,
        progress=progress,
    )


def _is_trained(study: Study) -> bool:
    """Whether the run, or a published copy of it, has the model of this very study."""
    manifest = stored_manifest(study.path)
    if manifest is None or not (study.path / "model" / "config.json").is_file():
        return False
    known = {name: manifest.get("config", {}).get(name) for name in study.identity}
    finished = "finished" in manifest["stages"].get("train", {})
    return finished and fingerprint(known) == fingerprint(study.identity)
