"""The autoencoder beside a run's bank: the same states, the same width, the same activations."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from safetensors import SafetensorError
from safetensors.numpy import load_file, save
from torch import Tensor

from engine.config import RetrofitConfig, TrainConfig
from engine.control.sae import (
    SaeReport,
    SaeSettings,
    SparseAutoencoder,
    train_autoencoder,
)
from engine.corpus.batches import BatchStream
from engine.corpus.documents import Progress, no_progress
from engine.corpus.shards import tokenise_corpus
from engine.errors import CacheStale
from engine.live.opening import Opened
from engine.live.records import run_corpus
from engine.pipeline.control_reading import model_folder
from engine.provenance import fingerprint
from engine.store import Run, read_json, write_json_atomic
from engine.store.files import atomic_file


logger = logging.getLogger(__name__)
MOST_STATES = 500_000
"""States read at most; a bank trained on more shares its first ones with the autoencoder."""
MOST_SAMPLES = 1_250_000
"""States shown at most, repetitions counted."""
_CHUNK_TOKENS = 16_384


@dataclass(frozen=True)
class BankData:
    """Rows of training tokens that a run's bank was fitted to, and how often it saw them."""

    context: int
    first_row: int
    """Row of the training stream at which the bank's fit began."""
    n_rows: int
    """Rows of the fit."""
    samples: int
    """States the bank saw, repetitions counted."""
    seed: int
    domain_weights: dict[str, float]

    @property
    def n_states(self) -> int:
        """States the autoencoder is trained on."""
        return min(self.n_rows * self.context, MOST_STATES // self.context * self.context)


def bank_data(run: Run) -> BankData:
    """What a run's bank was fitted to, by its settings."""
    config: dict[str, Any] = run.manifest["config"]
    if "retrofit" in config:
        fit = RetrofitConfig(**_known(config["retrofit"], "weights"))
        rows = max(1, fit.fit_tokens // fit.context)
        samples = fit.steps * min(fit.batch_tokens, rows * fit.context)
        return BankData(fit.context, 0, rows, samples, fit.seed, {})
    train = TrainConfig(**_known(config["train"], "weights"))
    per_step = train.batch_size * train.accumulate
    rows = (train.steps - train.bank_start) * per_step
    first = train.bank_start * per_step
    samples = rows * train.context
    return BankData(train.context, first, rows, samples, train.seed, train.domain_weights)


def _known(settings: dict[str, Any], *left_out: str) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if name not in left_out}


def autoencoder_of(
    opened: Opened, run: Run, progress: Progress = no_progress
) -> tuple[SparseAutoencoder, SaeReport]:
    """The autoencoder of a run's states, trained if it was not; kept beside the states of options.

    Its width is the bank's K and its active features the bank's k.

    Raises:
        PackageMissing: SAELens is not installed.
        CacheMissing, CorpusError: The corpus of the run is not here.
    """
    data = bank_data(run)
    settings = SaeSettings(
        width=opened.model.n_prototypes,
        n_active=opened.model.n_active,
        samples=min(data.samples, MOST_SAMPLES),
        batch=min(1024, data.n_states // 4),
        seed=data.seed,
    )
    mark = fingerprint([settings, data, data.n_states])
    weights = model_folder(opened) / f"sae-{mark}.safetensors"
    report = weights.with_suffix(".json")
    device = opened.model.device
    if weights.is_file() and report.is_file():
        return SparseAutoencoder.load(weights, device), SaeReport(**read_json(report))
    states = bank_states(opened, run, data, progress)
    trained, measured = train_autoencoder(states, settings, device, progress)
    trained.save(weights)
    write_json_atomic(report, measured.as_dict())
    _forget_states(model_folder(opened))
    logger.info("autoencoder of %s: %s", run.name, measured.as_dict())
    return trained, measured


def bank_states(
    opened: Opened, run: Run, data: BankData, progress: Progress = no_progress
) -> Float[Tensor, "states d_model"]:
    """States of the tokens the bank was fitted to, read in chunks that are kept until they serve.

    Args:
        opened: The model.
        run: Its run, whose corpus must be built.
        data: What the bank was fitted to.
        progress: Wraps chunks.
    """
    shards = tokenise_corpus(run_corpus(run, run.name), opened.codec.tokenizer, progress)
    stream = BatchStream(
        shards,
        split="train",
        context=data.context,
        batch_size=1,
        seed=data.seed,
        domain_weights=data.domain_weights,
    )
    rows = range(data.first_row, data.first_row + data.n_states // data.context)
    size = max(1, _CHUNK_TOKENS // data.context)
    chunks = [rows[start : start + size] for start in range(0, len(rows), size)]
    folder = model_folder(opened)
    found = [
        _chunk(opened, stream, chunk, folder / f"states-{chunk.start}-{len(chunk)}.safetensors")
        for chunk in progress(chunks, label="Reading states", total=len(chunks))
    ]
    return torch.from_numpy(np.concatenate(found))


def _chunk(
    opened: Opened, stream: BatchStream, rows: range, path: Path
) -> Float[np.ndarray, "states d_model"]:
    if path.is_file():
        try:
            return load_file(path)["states"]
        except (SafetensorError, KeyError):
            logger.info("%s is damaged and is read anew", path.name)
    ids = np.concatenate([stream.batch(row)[:, :-1] for row in rows])
    states = np.concatenate(list(_states(opened, ids)))
    if not np.isfinite(states).all():
        raise CacheStale(f"{opened.name} gave states that are not finite; check its weights.")
    with atomic_file(path) as file:
        file.write(save({"states": states}))
    return states


@torch.inference_mode()
def _states(opened: Opened, ids: Int[np.ndarray, "rows pos"]) -> Iterator[np.ndarray]:
    for start in range(0, len(ids), 16):
        rows = torch.from_numpy(ids[start : start + 16]).to(opened.model.device)
        found = opened.model.backbone.base_model(input_ids=rows, use_cache=False)
        yield found.last_hidden_state.flatten(0, 1).float().cpu().numpy()


def _forget_states(folder: Path) -> None:
    for file in folder.glob("states-*.safetensors"):
        file.unlink(missing_ok=True)
