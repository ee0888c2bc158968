"""The training stage: corpus to token rows, a run trained or resumed, its log and model written."""

import logging
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from accelerate.utils import broadcast_object_list

from engine.config import TrainConfig, resolved
from engine.corpus.batches import BatchStream
from engine.corpus.build import Corpus, open_corpus
from engine.corpus.documents import Progress, no_progress
from engine.corpus.shards import TokenShards, tokenise_corpus
from engine.corpus.tokenizer import (
    corpus_tokenizer,
    load_tokenizer,
    save_tokenizer,
)
from engine.devices import join_processes, resolve_device
from engine.lm.loading import quiet_loading
from engine.pipeline.training_identity import check_fork, run_identity
from engine.prism.evaluation import evaluate
from engine.prism.training import Trainer, TrainingData, make_trainer
from engine.store import Run, RunWriter, atomic_folder, open_run, resolve_run


logger = logging.getLogger(__name__)

FINAL_TOKENS = 100_000
"""Held-out tokens the final loss and coverage are measured on."""


def train_run(
    config: TrainConfig, run: str, *, fork_of: str | None = None, progress: Progress = no_progress
) -> Run:
    """Train a run, or go on with it where it stopped.

    Args:
        config: Settings.
        run: Name or folder of the run.
        fork_of: Run of the same seed and data from whose checkpoint at `bank_start` to start.
        progress: Wraps steps and documents.

    Of several processes the first one tokenises and alone writes; the others wait for it.

    Returns:
        The finished run, with `training_log`, `evaluations`, `validation_loss` and the model.

    Raises:
        CorpusError: The corpus is not built.
        CacheStale: The folder holds a run of other settings.
        ConfigError: The run to fork from is not the same model until there.
    """
    started = time.perf_counter()
    quiet_loading()
    path, trunk = resolve_run(run), resolve_run(fork_of) if fork_of else None
    processes = join_processes(resolve_device(config.device).device)
    progress = progress if processes.is_main_process else no_progress
    with processes.main_process_first():
        shards, tokenizer = training_shards(config, progress)
    kind = "dense" if config.dense else "prism"
    vocabulary = {"fingerprint": shards.manifest["tokenizer"], "vocab_size": shards.vocab_size}
    identity = run_identity(config, trunk, corpus_facts(shards.corpus), vocabulary)
    if trunk is not None:
        check_fork(trunk, config, identity)
    writer = None
    finished = False
    if processes.is_main_process:
        writer = RunWriter.create(path, name=path.name, kind=kind, identity=identity)
        finished = writer.begin_stage("train", identity)
    if broadcast_object_list([finished])[0]:
        return open_run(path)
    trainer = make_trainer(config, training_data(config, shards), path, trunk)
    trainer.run(progress)
    if writer is not None:
        settings = {**identity["config"], "train": resolved(config)}
        writer.update("config", settings)
        _write(writer, trainer, shards, tokenizer, started)
    processes.wait_for_everyone()
    return open_run(path)


def training_shards(config: TrainConfig, progress: Progress) -> tuple[TokenShards, Path]:
    """The corpus of a run as tokens, and the folder of its tokenizer."""
    corpus = open_corpus(config.corpus)
    tokenizer = corpus_tokenizer(corpus, config.vocab_size)
    return tokenise_corpus(corpus, load_tokenizer(tokenizer), progress), tokenizer.parent


def training_data(config: TrainConfig, shards: TokenShards) -> TrainingData:
    """Rows to train on, a few to evaluate on the way, and the separator."""
    stream = BatchStream(
        shards,
        split="train",
        context=config.context,
        batch_size=config.batch_size,
        seed=config.seed,
        domain_weights=config.domain_weights,
    )
    rows = held_out_rows(shards, config.context, config.eval_rows * config.context)
    return TrainingData(stream, rows, shards.separator)


def held_out_rows(shards: TokenShards, context: int, tokens: int) -> dict[str, np.ndarray]:
    """Fixed rows of the validation split, the same number a domain as far as it has them.

    Domains with few held-out rows give what they have; the others share the rest.

    Returns:
        Rows [rows, context + 1] by domain; together at least `tokens` predicted tokens where
        the corpus has them.
    """
    stream = BatchStream(shards, split="validation", context=context, batch_size=1, seed=0)
    available = {domain: rows.rows_per_epoch for domain, rows in stream.rows.items()}
    wanted, share = -(-tokens // context), 1
    while sum(min(share, n) for n in available.values()) < min(wanted, sum(available.values())):
        share += 1
    return stream.evaluation(share)


def corpus_facts(corpus: Corpus) -> dict[str, Any]:
    """What a run remembers of its corpus: name, fingerprint, and each domain's."""
    domains = corpus.manifest["domains"]
    return {"name": corpus.name, "fingerprint": corpus.fingerprint, "domains": domains}


def _write(
    writer: RunWriter, trainer: Trainer, shards: TokenShards, tokenizer: Path, started: float
) -> None:
    config, model = trainer.config, trainer.bare_model
    rows = held_out_rows(shards, config.context, FINAL_TOKENS)
    final = evaluate(model, rows, trainer.accelerator.device, bank=trainer.bank_fitted)
    with atomic_folder(writer.path / "model") as folder:
        model.save_pretrained(folder)
        save_tokenizer(load_tokenizer(tokenizer), folder, config.context)
    writer.write_table("training_log", pd.DataFrame(trainer.log))
    writer.write_table("evaluations", pd.DataFrame(trainer.evaluations))
    name = "dense" if config.dense else "prism"
    losses = [
        {"model": name, "domain": domain, "loss": loss, "n_tokens": final.tokens[domain]}
        for domain, loss in final.loss.items()
    ]
    writer.write_table("validation_loss", pd.DataFrame(losses))
    writer.update("model", model_facts(model))
    facts = {
        "seconds": time.perf_counter() - started,
        "training_seconds": sum(row["seconds"] for row in trainer.log),
        "steps": trainer.step,
        "tokens": trainer.log[-1]["tokens_seen"],
        "validation_loss": final.mean_loss,
        "final": final.row(trainer.step),
        "device": str(trainer.accelerator.device),
    }
    writer.finish_stage("train", facts)
    logger.info("trained %s: held-out loss %.4f", writer.path.name, final.mean_loss)


def model_facts(model: Any) -> dict[str, Any]:
    """Sizes of a model: parameters in all, without embeddings, and of the bank."""
    total = sum(parameter.numel() for parameter in model.parameters())
    bank = model.prototypes.numel() if hasattr(model, "prototypes") else 0
    embedding = model.get_input_embeddings().weight
    head = model.get_output_embeddings().weight
    embeddings = embedding.numel() + (0 if head is embedding else head.numel())
    return {
        "n_parameters": total,
        "n_bank_parameters": bank,
        "n_backbone_parameters": total - bank,
        "n_non_embedding_parameters": total - bank - embeddings,
        "architecture": type(getattr(model, "backbone", model)).__name__,
    }
