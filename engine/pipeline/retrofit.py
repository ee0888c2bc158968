"""The retrofit stage: states of an existing causal LM, a bank fitted to them, a run written."""

import logging
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float
from tokenizers import Tokenizer
from torch import Tensor, nn
from transformers import AutoTokenizer, PreTrainedModel

from engine.config import RetrofitConfig, resolved
from engine.corpus.batches import BatchStream
from engine.corpus.build import open_corpus
from engine.corpus.documents import Progress, no_progress
from engine.corpus.shards import TokenShards, tokenise_corpus
from engine.corpus.tokenizer import save_tokenizer, tokenizer_fingerprint
from engine.devices import resolve_device
from engine.errors import ConfigError, CorpusError, UnsupportedModel
from engine.lm.loading import load_weights, model_reference
from engine.pipeline.training import corpus_facts, model_facts
from engine.prism.checkpoints import save_bank
from engine.prism.configuration import PrismConfig
from engine.prism.coverage import Coverage, CoverageReport
from engine.prism.model import PrismForCausalLM, check_exact
from engine.prism.retrofit import BankFit, fit_bank
from engine.store import (
    Run,
    RunWriter,
    atomic_folder,
    open_run,
    read_json,
    resolve_run,
    write_json_atomic,
)


logger = logging.getLogger(__name__)

ROWS = 16
"""Windows of a forward pass."""


def retrofit_run(config: RetrofitConfig, run: str, *, progress: Progress = no_progress) -> Run:
    """Fit a bank to a model's states, or go on where an earlier call stopped.

    Returns:
        The run: its `model` folder holds the bank, the configuration and the reference to the
        decoder's own weights; `training_log` holds the losses of the fit.

    Raises:
        PackageMissing, CacheMissing, UnsupportedModel: the decoder cannot be had or used.
        CorpusError: the corpus is not built.
        CacheStale: the folder holds a run of other settings.
    """
    started = time.perf_counter()
    path = resolve_run(run)
    reference = model_reference(config.model)
    device = resolve_device(config.device)
    backbone, source = load_weights(reference)
    nn.Module.to(backbone.requires_grad_(requires_grad=False), device.device)
    tokenizer = model_tokenizer(source)
    corpus = open_corpus(config.corpus)
    identity = {
        "config": {"retrofit": resolved(config)},
        "corpus": corpus_facts(corpus),
        "tokenizer": {
            "fingerprint": tokenizer_fingerprint(tokenizer),
            "vocab_size": int(backbone.config.get_text_config().vocab_size),
        },
        "base": reference,
    }
    writer = RunWriter.create(path, name=path.name, kind="retrofit", identity=identity)
    if writer.begin_stage("retrofit", identity):
        return open_run(path)
    model = around(backbone, config)
    shards = tokenise_corpus(corpus, tokenizer, progress)
    states = cached_states(backbone, shards, config, path / "states.partial", progress)
    fit = fit_bank(states, config, progress)
    model.prototypes.data = fit.prototypes.to(device.device)
    with atomic_folder(path / "model") as folder:
        save_bank(model, folder, reference)
        if "package" not in reference:
            save_tokenizer(tokenizer, folder)
    log = fit_log(fit, config, len(states), time.perf_counter() - started)
    writer.write_table("training_log", log)
    writer.update("model", model_facts(model))
    facts = {
        "seconds": time.perf_counter() - started,
        "tokens": len(states),
        "final": scan(fit.prototypes, states, config).as_dict(),
        "kmeans": scan(fit.start, states, config).as_dict(),
    }
    writer.finish_stage("retrofit", facts)
    forget_states(path / "states.partial")
    logger.info("fitted %s: %s", path.name, facts["final"])
    return open_run(path)


def model_tokenizer(source: str) -> Tokenizer:
    """The tokenizer of a model's folder or hub id, as the corpus uses it."""
    try:
        found = AutoTokenizer.from_pretrained(source, trust_remote_code=False)
    except (OSError, ValueError, KeyError) as error:
        raise UnsupportedModel(
            f"{source} has no tokenizer that can be read; a retrofit needs the model's own."
        ) from error
    backend = getattr(found, "backend_tokenizer", None)
    if not isinstance(backend, Tokenizer):
        raise UnsupportedModel(
            f"{source} has no fast tokenizer (tokenizer.json); a retrofit needs one."
        )
    return backend


def around(backbone: PreTrainedModel, config: RetrofitConfig) -> PrismForCausalLM:
    """A prototype model around the decoder, after a check that it will not move a logit."""
    settings = PrismConfig.for_backbone(
        backbone.config,
        weights=config.weights,
        n_prototypes=config.n_prototypes,
        n_active=config.n_active,
    )
    model = PrismForCausalLM.around(backbone, settings)
    check_exact(model)
    return model


def cached_states(
    backbone: PreTrainedModel,
    shards: TokenShards,
    config: RetrofitConfig,
    folder: Path,
    progress: Progress = no_progress,
) -> Float[Tensor, "tokens d_model"]:
    """States of `fit_tokens` training tokens, memory-mapped in float32.

    A pass that was interrupted goes on where it stopped.

    Rows are drawn by the seed from the training split, each domain by its share of tokens.
    """
    n_rows = max(1, config.fit_tokens // config.context)
    n_tokens = n_rows * config.context
    if n_tokens < config.n_prototypes:
        raise ConfigError(
            f"fit_tokens is {config.fit_tokens}; {config.n_prototypes} prototypes need at least "
            "as many states."
        )
    limit = getattr(backbone.config.get_text_config(), "max_position_embeddings", None)
    if limit is not None and config.context > limit:
        raise ConfigError(f"context is {config.context}; the model reads at most {limit} tokens.")
    stream = BatchStream(
        shards, split="train", context=config.context, batch_size=n_rows, seed=config.seed
    )
    rows = stream.batch(0)[:, :-1]
    width = int(backbone.config.get_text_config().hidden_size)
    folder.mkdir(parents=True, exist_ok=True)
    file, mark = folder / "states.f32", folder / "done.json"
    fresh = not (file.is_file() and mark.is_file())
    cache = np.memmap(file, np.float32, "w+" if fresh else "r+", shape=(n_tokens, width))
    done = 0 if fresh else int(read_json(mark)["rows"])
    starts = range(done, n_rows, ROWS)
    for start in progress(starts, label="Reading states", total=len(starts)):
        ids = torch.as_tensor(rows[start : start + ROWS], device=backbone.device)
        with torch.no_grad():
            found = backbone.base_model(input_ids=ids, use_cache=False).last_hidden_state
        flat = found.flatten(0, 1).float().cpu().numpy()
        if not np.isfinite(flat).all():
            raise CorpusError("The model gave states that are not finite; check its weights.")
        cache[start * config.context : start * config.context + len(flat)] = flat
        cache.flush()
        write_json_atomic(mark, {"rows": min(start + ROWS, n_rows)})
    return torch.from_numpy(cache)


def forget_states(folder: Path) -> None:
    """Remove the cached states, which only an unfinished fit needs."""
    for file in (folder / "states.f32", folder / "done.json"):
        file.unlink(missing_ok=True)
    folder.rmdir()


def scan(
    bank: Float[Tensor, "prototypes d_model"],
    states: Float[Tensor, "tokens d_model"],
    config: RetrofitConfig,
) -> CoverageReport:
    """Coverage of a bank over the states it was fitted to."""
    coverage = Coverage(bank.cpu(), config.n_active)
    for start in range(0, len(states), 8192):
        coverage.update(states[start : start + 8192])
    return coverage.report()


def fit_log(fit: BankFit, config: RetrofitConfig, n_states: int, seconds: float) -> pd.DataFrame:
    """The losses of the fit as rows of `training_log`; there is no cross-entropy to learn."""
    rows: list[dict[str, Any]] = [
        {
            **row,
            "cross_entropy": None,
            "weight_scale": 1.0,
            "gradient_norm": None,
            "tokens_seen": row["step"] * min(config.batch_tokens, n_states),
            "seconds": seconds / max(len(fit.log), 1),
        }
        for row in fit.log
    ]
    return pd.DataFrame(rows)
