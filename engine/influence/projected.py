"""A projected-gradient index by Bergson: gradients of the block linears, each projected at random.

Every linear layer's gradient is projected from both sides to `dimensions` x `dimensions` numbers in
float32, so a sequence costs 4 x layers x dimensions^2 bytes whatever its length. The score is the
inner product of projected gradients, divided by both lengths where `unit`; no curvature. Positive:
weighting the text up lowers the query's loss. Bergson is optional: `make bench-peers`.
"""

import copy
import logging
import os
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from transformers import PreTrainedModel

from engine.config import cache_root
from engine.corpus.documents import Progress, no_progress
from engine.errors import PackageMissing
from engine.influence.decoder import decoder_of, summed_losses, tensors
from engine.influence.ekfac import weights_fingerprint
from engine.influence.frame import Sequences
from engine.prism.model import PrismForCausalLM
from engine.provenance import fingerprint
from engine.store import atomic_folder, read_json, write_json_atomic


DIMENSIONS = 16
"""Rows and columns each layer's gradient is projected to."""
BATCH = 16
"""Sequences of the pool a pass."""
_IGNORED = -100
_TIMES = "build.json"


def score_projected(
    model: PrismForCausalLM,
    pool: Sequences,
    queries: Sequences,
    progress: Progress = no_progress,
    *,
    dimensions: int = DIMENSIONS,
    unit: bool = True,
    folder: Path | None = None,
) -> Float[np.ndarray, "queries pool"]:
    """Products of projected gradients; with `unit` their cosine, in [-1, 1].

    Args:
        model: Its decoder is scored.
        pool: Texts to score.
        queries: What they are scored for.
        progress: Wraps the batches of queries.
        dimensions: Rows and columns each layer's gradient is projected to.
        unit: Divide by both lengths, Bergson's own way of ranking.
        folder: Keeps the index; under the cache where None.

    Raises:
        PackageMissing: Bergson is not installed.
    """
    index = ProjectedIndex(model, pool, dimensions=dimensions, folder=folder)
    index.build()
    opened = index.open(unit=unit)
    batches = list(queries.batches(BATCH))
    found = [
        opened.search(index.query_gradients(queries[rows]))
        for rows in progress(batches, label="Projected gradients", total=len(batches))
    ]
    return np.concatenate(found)


@dataclass(frozen=True)
class OpenedIndex:
    """An index in memory, ready to be searched."""

    attributor: Any

    def search(self, gradients: dict[str, Tensor]) -> Float[np.ndarray, "queries pool"]:
        """Score of every sequence, ranked by Bergson and put back in the pool's order."""
        asked = {name: rows.clone() for name, rows in gradients.items()}
        values, order = self.attributor.search(asked, None)
        scores = torch.zeros_like(values).scatter_(1, order, values)
        return scores.float().cpu().numpy()

    def top(self, gradients: dict[str, Tensor], n: int) -> tuple[Tensor, Tensor]:
        """Scores and rows of the `n` first of each query: what a search is timed on."""
        return self.attributor.search({name: g.clone() for name, g in gradients.items()}, n)


class ProjectedIndex:
    """The index of one pool under one decoder, kept in a folder."""

    def __init__(
        self,
        model: PreTrainedModel,
        pool: Sequences,
        *,
        dimensions: int = DIMENSIONS,
        folder: Path | None = None,
    ) -> None:
        _bergson()
        self.decoder = decoder_of(model)
        self.pool = pool
        self.dimensions = dimensions
        identity = [weights_fingerprint(self.decoder), pool.fingerprint, dimensions]
        self.folder = (folder or cache_root() / "influence" / "projected") / fingerprint(identity)

    @property
    def bytes_a_sequence(self) -> float:
        """Bytes the index holds of a sequence; it must be built."""
        return (self.folder / "index" / "gradients.bin").stat().st_size / len(self.pool)

    @property
    def numbers_a_sequence(self) -> int:
        """Numbers the index holds of a sequence; it must be built."""
        return sum(read_json(self.folder / "index" / "info.json")["grad_sizes"].values())

    def build(self) -> None:
        """Build the index unless it is there; a stopped build starts again."""
        if self.folder.is_dir():
            return
        wall, cpu = time.perf_counter(), time.process_time()
        with atomic_folder(self.folder) as folder, _quiet():
            _save_decoder(self.decoder, self.pool.tokens.shape[1] * BATCH, folder / "model")
            _save_pool(self.pool, folder / "pool")
            self._build(folder)
            spent = {"cpu_s": time.process_time() - cpu, "wall_s": time.perf_counter() - wall}
            write_json_atomic(folder / _TIMES, spent)

    def build_seconds(self) -> dict[str, float]:
        """`cpu_s` and `wall_s` of the build, as it ran."""
        return read_json(self.folder / _TIMES)

    def _build(self, folder: Path) -> None:
        _, build, config = _bergson()
        settings = config.IndexConfig(
            run_path=str(folder / "index"),
            model=str(folder / "model"),
            precision="fp32",
            projection_dim=self.dimensions,
            token_batch_size=self.pool.tokens.shape[1] * BATCH,
            loss_reduction="sum",
            overwrite=True,
            data=config.DataConfig(dataset=str(folder / "pool"), truncation=False),
        )
        build.build(settings, config.PreprocessConfig())

    def open(self, *, unit: bool = True) -> OpenedIndex:
        """Read the index into memory."""
        attributor, _, _ = _bergson()
        device = str(self.decoder.device)
        with _quiet():
            opened = attributor.Attributor(self.folder / "index", device=device, unit_norm=unit)
        return OpenedIndex(opened)

    def query_gradients(self, queries: Sequences) -> dict[str, Tensor]:
        """Projected gradient of each query's summed loss, by layer: [queries, dimensions^2]."""
        collectors = import_module("bergson.collector.gradient_collectors")
        gradients = import_module("bergson.gradients")
        processor = gradients.GradientProcessor.load(self.folder / "index")
        tokens, predicted = tensors(queries, self.decoder.device)
        collector = collectors.TraceCollector(
            model=self._frozen.base_model,
            processor=processor,
            device=self.decoder.device,
            dtype=torch.float32,
        )
        with collector, torch.enable_grad():
            summed_losses(self._frozen, tokens, predicted).sum().backward()
        return {name: torch.cat(parts, dim=1) for name, parts in collector.mod_grads.items()}

    @cached_property
    def _frozen(self) -> PreTrainedModel:
        """A copy whose embedding alone asks for a gradient, so that the layers' hooks run."""
        frozen = copy.deepcopy(self.decoder).eval().requires_grad_(False)
        embedding: nn.Module = frozen.get_input_embeddings()
        embedding.requires_grad_(True)
        return frozen


def _save_decoder(decoder: PreTrainedModel, tokens: int, folder: Path) -> None:
    """The decoder as a folder that Bergson opens, with a tokenizer that it asks for and never uses.

    Bergson takes no batch of more tokens than the model's context. Rotary positions reach as far as
    they are asked to, so there the saved configuration names a context as long as a batch.
    """
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    decoder.save_pretrained(folder)
    words = models.WordLevel({f"w{i}": i for i in range(decoder.config.vocab_size)}, unk_token="w0")
    PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(words), unk_token="w0", pad_token="w0", eos_token="w0"
    ).save_pretrained(folder)
    config = copy.deepcopy(decoder.config)
    if getattr(config, "rope_parameters", None):
        config.max_position_embeddings = max(config.max_position_embeddings, tokens)
        config.save_pretrained(folder)


def _save_pool(pool: Sequences, folder: Path) -> None:
    """The pool as a data set on disk, its labels masked where nothing is predicted."""
    from datasets import Dataset

    labels = np.full_like(pool.tokens, _IGNORED)
    labels[:, 1:] = np.where(pool.predicted, pool.tokens[:, 1:], _IGNORED)
    lengths = pool.length.tolist()
    Dataset.from_dict(
        {
            "input_ids": [row[:n].tolist() for row, n in zip(pool.tokens, lengths, strict=True)],
            "labels": [row[:n].tolist() for row, n in zip(labels, lengths, strict=True)],
            "length": lengths,
        }
    ).save_to_disk(str(folder))


def _bergson() -> tuple[Any, Any, Any]:
    """Bergson's attributor, `build` and configuration.

    Raises:
        PackageMissing: It is not installed.
    """
    try:
        attributor, build, config = (
            import_module(f"bergson.{name}")
            for name in ("query.attributor", "build", "config.config")
        )
    except ImportError as error:
        raise PackageMissing(
            f"The projected index needs the package bergson, which is not installed ({error}); run "
            "`make bench-peers`."
        ) from error
    return attributor, build, config


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence what Bergson and its libraries print, log and warn of; errors come through."""
    before = logging.root.manager.disable
    with warnings.catch_warnings(), Path(os.devnull).open("w") as nowhere:
        warnings.simplefilter("ignore")
        logging.disable(logging.WARNING)
        try:
            with redirect_stdout(nowhere), redirect_stderr(nowhere):
                yield
        finally:
            logging.disable(before)
