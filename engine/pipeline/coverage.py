"""Coverage of a trained bank on held-out tokens, beside banks that needed no training.

A bank is only worth its training if it covers the states better than random directions and than
k-means, and a model only if its states did not shrink for it: so the same figures of the dense
twin's states stand beside.
"""

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float
from torch import Tensor
from transformers import AutoModelForCausalLM, PreTrainedModel

from engine.config import TrainConfig
from engine.corpus.batches import BatchStream
from engine.corpus.build import open_corpus
from engine.corpus.documents import Progress, no_progress
from engine.corpus.shards import TokenShards, tokenise_corpus
from engine.corpus.tokenizer import load_tokenizer
from engine.devices import resolve_device
from engine.errors import UnsupportedModel
from engine.pipeline.training import held_out_rows
from engine.prism.checkpoints import load_prism
from engine.prism.coverage import Coverage, CoverageReport
from engine.prism.evaluation import evaluate, states_and_logits
from engine.prism.kmeans import bank_from_states
from engine.prism.model import PrismForCausalLM
from engine.store import Run, RunWriter, open_run


logger = logging.getLogger(__name__)

HELD_OUT_TOKENS = 100_000
"""Held-out tokens scanned."""

FIT_TOKENS_PER_PROTOTYPE = 24
"""Training states a prototype of the k-means bank is fitted to."""


@dataclass(frozen=True)
class StateSource:
    """A model and the rows its states are read from."""

    model: PreTrainedModel
    shards: TokenShards
    context: int
    device: torch.device

    def held_out(self) -> dict[str, np.ndarray]:
        """Held-out rows by domain."""
        return held_out_rows(self.shards, self.context, HELD_OUT_TOKENS)

    def held_out_states(self) -> Float[Tensor, "tokens d_model"]:
        """States of the held-out rows."""
        return self._states(np.concatenate(list(self.held_out().values())))

    def training_states(self, tokens: int, seed: int) -> Float[Tensor, "tokens d_model"]:
        """States of the first `tokens` training tokens of a seeded stream."""
        rows = -(-tokens // self.context)
        stream = BatchStream(
            self.shards, split="train", context=self.context, batch_size=rows, seed=seed
        )
        return self._states(stream.batch(0))[:tokens]

    def _states(self, rows: np.ndarray) -> Float[Tensor, "tokens d_model"]:
        found = []
        for start in range(0, len(rows), 32):
            ids = torch.as_tensor(rows[start : start + 32, :-1], device=self.device)
            found.append(states_and_logits(self.model, ids)[0].flatten(0, 1).float())
        return torch.cat(found)


def scan(
    bank: Float[Tensor, "prototypes d_model"],
    states: Float[Tensor, "tokens d_model"],
    n_active: int,
) -> CoverageReport:
    """Coverage of one bank over one set of states."""
    coverage = Coverage(bank, n_active)
    for start in range(0, len(states), 8192):
        coverage.update(states[start : start + 8192])
    return coverage.report()


def compare_banks(source: StateSource, bank: Tensor, n_active: int, seed: int) -> dict[str, Any]:
    """Coverage of the trained bank, a k-means bank and a random bank of the same K.

    The k-means bank is fitted to training states, like the trained one, never to the held-out
    states it is judged on.

    Returns:
        A report by bank name.
    """
    states = source.held_out_states()
    fit = source.training_states(len(bank) * FIT_TOKENS_PER_PROTOTYPE, seed)
    generator = torch.Generator().manual_seed(seed)
    random_bank = torch.randn(bank.shape, generator=generator).to(bank.device)
    random_bank *= bank.norm(dim=-1).mean() / bank.shape[-1] ** 0.5
    kmeans = bank_from_states(fit, len(bank), n_active, seed=seed)
    banks = {"trained": bank, "kmeans": kmeans, "random": random_bank}
    return {name: scan(found, states, n_active) for name, found in banks.items()}


def coverage_row(bank: str, report: CoverageReport) -> dict[str, Any]:
    """A report as a row of the `coverage` table."""
    return {
        "bank": bank,
        "coverage_r1": report.prototype_coverage,
        "coverage_r2": report.token_coverage,
        "residual_share": report.residual_share,
        "pair_cosine": report.pair_cosine,
        "participation_ratio": report.participation_ratio,
        "dead_share": report.dead_share,
        "tokens_scanned": report.tokens,
    }


def measure_coverage(
    run_name: str | Path, twin_name: str | Path | None = None, *, progress: Progress = no_progress
) -> Run:
    """Write `coverage`, and with a twin `validation_loss` of both, on 100,000 held-out tokens.

    Asked again without a twin, what was measured with one is kept: it says all that and more.

    Args:
        run_name: A trained or retrofitted run.
        twin_name: Its dense twin, whose states and loss are measured on the same rows.
        progress: Wraps documents while tokenising.
    """
    started = time.perf_counter()
    run = open_run(run_name)
    if twin_name is None and measured_with_twin(run):
        logger.info("coverage of %s was measured with its dense twin; kept", run.name)
        return run
    twin = open_run(twin_name) if twin_name else None
    writer = RunWriter.resume(run.path)
    marks = [r.manifest["model"].get("fingerprint") for r in (run, twin) if r]
    identity = {"models": marks, "tokens": HELD_OUT_TOKENS}
    if writer.begin_stage("coverage", identity):
        return run
    source = state_source(run, progress)
    seed = settings(run).get("seed", 0)
    model = source.model
    if not isinstance(model, PrismForCausalLM):
        raise UnsupportedModel(f"Run {run.name} is {run.kind}: it has no bank to measure.")
    bank, n_active = model.prototypes.detach(), model.config.n_active
    rows = [
        coverage_row(name, report)
        for name, report in compare_banks(source, bank, n_active, seed).items()
    ]
    if twin is not None:
        dense = state_source(twin, progress)
        fit = dense.training_states(len(bank) * FIT_TOKENS_PER_PROTOTYPE, seed)
        kmeans = bank_from_states(fit, len(bank), n_active, seed=seed)
        rows.append(coverage_row("dense-kmeans", scan(kmeans, dense.held_out_states(), n_active)))
        losses = losses_by_domain({"prism": source, "dense": dense})
        writer.write_table("validation_loss", losses)
    writer.write_table("coverage", pd.DataFrame(rows))
    facts = {"seconds": time.perf_counter() - started, "tokens_scanned": rows[0]["tokens_scanned"]}
    writer.finish_stage("coverage", facts)
    logger.info("coverage of %s: %s", run.name, rows[0])
    return open_run(run_name)


def measured_with_twin(run: Run) -> bool:
    """Whether the coverage of a run stands with its twin's loss beside, of the model it has now.

    Training, when it is done again, takes `validation_loss` back into its own stage.
    """
    losses = run.tables.get("validation_loss", {})
    return run.has("coverage") and losses.get("stage") == "coverage"


def losses_by_domain(sources: Mapping[str, StateSource]) -> pd.DataFrame:
    """Rows of the `validation_loss` table for each model, on the same held-out rows."""
    rows = []
    for name, source in sources.items():
        found = evaluate(source.model, source.held_out(), source.device, bank=False)
        rows += [
            {"model": name, "domain": domain, "loss": loss, "n_tokens": found.tokens[domain]}
            for domain, loss in found.loss.items()
        ]
    return pd.DataFrame(rows)


def settings(run: Run) -> dict[str, Any]:
    """The training or fitting settings of a run, resolved."""
    config = run.manifest["config"]
    return config.get("train") or config.get("retrofit") or {}


def state_source(run: Run, progress: Progress = no_progress) -> StateSource:
    """Load a run's model and the corpus it was trained on."""
    config = settings(run)
    device = resolve_device(str(config.get("device", TrainConfig.device)))
    model: PreTrainedModel
    if run.kind == "dense":
        tokenizer = run.model_path
        model = AutoModelForCausalLM.from_pretrained(tokenizer, device_map={"": device.device})
    else:
        model, tokenizer = load_prism(run.model_path, device=device.device)
    corpus = open_corpus(run.manifest["corpus"]["name"])
    shards = tokenise_corpus(corpus, load_tokenizer(Path(tokenizer) / "tokenizer.json"), progress)
    model.eval()
    return StateSource(model, shards, int(config["context"]), device.device)
