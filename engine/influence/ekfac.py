"""EK-FAC influence by Kronfluence, on the linear layers of the decoder's blocks.

    score = <grad L(text), (H + damping)^-1 grad L(query)>,    H: EK-FAC of the true Fisher

Positive: weighting the text up lowers the query's loss. Factors are fitted with labels sampled from
the model (seeded), on the sequences that are handed in, and kept in a folder with what they were
made from: each of the three steps and each part of the scores is kept once done, so a stopped call
goes on there. Kronfluence is optional: `make bench-peers`. EK-FAC: George et al. 2018; for language
models Grosse et al. 2023 (arXiv 2308.03296).
"""

import copy
import logging
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from safetensors.numpy import load_file, save
from torch import Tensor
from torch.utils.data import Dataset
from transformers import PreTrainedModel

from engine.config import cache_root
from engine.corpus.documents import Progress, no_progress
from engine.errors import PackageMissing
from engine.influence.decoder import block_linears, decoder_of, label_losses, tensors
from engine.influence.frame import Sequences
from engine.numerics import full_precision
from engine.prism.model import PrismForCausalLM
from engine.provenance import fingerprint, fingerprint_bytes
from engine.store import atomic_file, read_json, write_json_atomic


PART = 1000
"""Sequences of the pool whose scores are kept in one file."""
HEURISTIC_DAMPING = 0.1
"""Kronfluence's damping where none is given: so much of the mean eigenvalue of each layer."""
_STEPS = ("covariance", "eigendecomposition", "lambda")


@dataclass(frozen=True, kw_only=True)
class EkfacSettings:
    """Settings of factors and scores."""

    label_seed: int = 0
    """Seed of the labels sampled from the model."""
    damping: float | None = None
    """Added to every eigenvalue; `HEURISTIC_DAMPING` times their mean, by layer, where None."""
    batch_size: int = 16
    """Sequences of the pool a pass; it changes no score."""
    query_batch: int = 32
    """Queries that share a pass over the pool; it changes no score."""


def score_ekfac(
    model: PrismForCausalLM,
    pool: Sequences,
    queries: Sequences,
    progress: Progress = no_progress,
    *,
    fit_on: Sequences | None = None,
    settings: EkfacSettings | None = None,
    folder: Path | None = None,
) -> Float[np.ndarray, "queries pool"]:
    """EK-FAC influence of every sequence on every query, in nats to first order.

    Args:
        model: Its decoder is scored.
        pool: Texts to score.
        queries: What they are scored for.
        progress: Wraps the steps of fitting and the parts of the pool.
        fit_on: Sequences the factors are fitted on; the pool where None.
        settings: Seed, damping, batches.
        folder: Keeps factors and scores; under the cache where None.

    Raises:
        PackageMissing: Kronfluence is not installed.
    """
    ekfac = Ekfac(model, pool if fit_on is None else fit_on, settings or EkfacSettings(), folder)
    ekfac.fit(progress)
    return ekfac.score(pool, queries, progress)


class Ekfac:
    """EK-FAC of one decoder over one set of sequences, kept in a folder."""

    def __init__(
        self,
        model: PreTrainedModel,
        fit_on: Sequences,
        settings: EkfacSettings,
        folder: Path | None = None,
    ) -> None:
        _kronfluence()
        self.decoder = decoder_of(model)
        self.fit_on = fit_on
        self.settings = settings
        self.modules = block_linears(self.decoder)
        identity = [weights_fingerprint(self.decoder), fit_on.fingerprint, settings.label_seed]
        root = folder or cache_root() / "influence" / "ekfac"
        self.folder = root / fingerprint(identity)

    def fit(self, progress: Progress = no_progress) -> dict[str, dict[str, float]]:
        """Fit what is not fitted yet; returns the `cpu_s` and `wall_s` of each step as it ran."""
        seconds = {}
        for step in progress(_STEPS, label="EK-FAC factors", total=len(_STEPS)):
            note = self.folder / f"{step}.json"
            if not note.is_file():
                wall, cpu = time.perf_counter(), time.process_time()
                self._fit_step(step)
                spent = {"cpu_s": time.process_time() - cpu, "wall_s": time.perf_counter() - wall}
                write_json_atomic(note, spent)
            seconds[step] = read_json(note)
        return seconds

    def _fit_step(self, step: str) -> None:
        _, arguments, _ = _kronfluence()
        settings = arguments.FactorArguments(strategy="ekfac", use_empirical_fisher=False)
        common = {"factors_name": "ekfac", "factor_args": settings, "overwrite_output_dir": True}
        data = {
            "dataset": _Rows(self.fit_on),
            "per_device_batch_size": self.settings.batch_size,
        }
        with _quiet():
            self.task.seed(self.settings.label_seed)
            if step == "covariance":
                self.analyzer.fit_covariance_matrices(**data, **common)
            elif step == "eigendecomposition":
                self.analyzer.perform_eigendecomposition(**common)
            else:
                self.analyzer.fit_lambda_matrices(**data, **common)

    def score(
        self,
        pool: Sequences,
        queries: Sequences,
        progress: Progress = no_progress,
        *,
        keep: bool = True,
    ) -> Float[np.ndarray, "queries pool"]:
        """Scores, part by part of the pool; `fit` must have run.

        Args:
            pool: Texts to score.
            queries: What they are scored for.
            progress: Wraps the parts.
            keep: Keep the parts in the folder, and read those that are there.
        """
        parts = list(pool.batches(PART))
        found = [
            self._part(pool[rows], queries, keep)
            for rows in progress(parts, label="EK-FAC scores", total=len(parts))
        ]
        return np.concatenate(found, axis=1)

    def _part(
        self, pool: Sequences, queries: Sequences, keep: bool
    ) -> Float[np.ndarray, "queries part"]:
        marks = [pool.fingerprint, queries.fingerprint, self.settings.damping]
        path = self.folder / "parts" / f"{fingerprint(marks)}.safetensors"
        if keep and path.is_file():
            return load_file(path)["scores"]
        blocks = [self._pairs(pool, queries[r]) for r in queries.batches(self.settings.query_batch)]
        scores = np.concatenate(blocks)
        if keep:
            with atomic_file(path) as file:
                file.write(save({"scores": scores}))
        return scores

    def _pairs(self, pool: Sequences, queries: Sequences) -> Float[np.ndarray, "queries part"]:
        """One pass over a part for one batch of queries."""
        _, arguments, _ = _kronfluence()
        with _quiet():
            found = self.analyzer.compute_pairwise_scores(
                scores_name="part",
                factors_name="ekfac",
                query_dataset=_Rows(queries),
                train_dataset=_Rows(pool),
                per_device_query_batch_size=len(queries),
                per_device_train_batch_size=self.settings.batch_size,
                score_args=arguments.ScoreArguments(damping_factor=self.settings.damping),
                overwrite_output_dir=True,
            )
            scores = found or self.analyzer.load_pairwise_scores("part")
        return scores["all_modules"].float().cpu().numpy()

    @cached_property
    def task(self) -> Any:
        """Losses as Kronfluence asks for them."""
        return _task(self.modules, self.decoder.device)

    @cached_property
    def analyzer(self) -> Any:
        """Kronfluence's analyzer around a copy of the decoder; it wraps the layers in place."""
        analyzer, _, _ = _kronfluence()
        prepared = analyzer.prepare_model(copy.deepcopy(self.decoder), self.task)
        return analyzer.Analyzer(
            analysis_name="decoder",
            model=prepared,
            task=self.task,
            cpu=self.decoder.device.type == "cpu",
            log_level=logging.WARNING,
            output_dir=str(self.folder),
            disable_tqdm=True,
            disable_model_save=True,
        )


def weights_fingerprint(decoder: PreTrainedModel) -> str:
    """Sixteen hex digits of a decoder's weights as they are in memory."""
    marks = []
    for name, value in sorted(decoder.state_dict().items()):
        plain = value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
        marks.append((name, fingerprint_bytes(plain.tobytes())))
    return fingerprint(marks)


class _Rows(Dataset[dict[str, Tensor]]):
    """Sequences as a data set of Kronfluence."""

    def __init__(self, sequences: Sequences) -> None:
        self.tokens, self.predicted = tensors(sequences, "cpu")
        place = np.arange(sequences.tokens.shape[1])
        self.mask = torch.from_numpy(place < sequences.length[:, None])

    def __len__(self) -> int:
        return len(self.tokens)

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        return {
            "tokens": self.tokens[index],
            "predicted": self.predicted[index],
            "mask": self.mask[index],
        }


def _task(modules: list[str], device: torch.device) -> Any:
    """A task of Kronfluence: summed losses over predicted tokens, labels drawn from a seed."""
    _, _, task = _kronfluence()

    class SummedLoss(task.Task):
        def __init__(self) -> None:
            self.seed(0)

        def seed(self, number: int) -> None:
            self.generator = torch.Generator(device).manual_seed(number)

        def compute_train_loss(self, batch: Any, model: Any, sample: bool = False) -> Tensor:
            tokens = batch["tokens"]
            logits = full_precision(model(input_ids=tokens, use_cache=False).logits)[:, :-1]
            labels = self.drawn(logits) if sample else tokens[:, 1:]
            return label_losses(logits, labels, batch["predicted"]).sum()

        def compute_measurement(self, batch: Any, model: Any) -> Tensor:
            return self.compute_train_loss(batch, model)

        def drawn(self, logits: Tensor) -> Tensor:
            chances = torch.softmax(logits.detach(), dim=-1).flatten(0, 1)
            found = torch.multinomial(chances, 1, generator=self.generator)
            return found.view(logits.shape[:2])

        def get_influence_tracked_modules(self) -> list[str]:
            return modules

        def get_attention_mask(self, batch: Any) -> Tensor:
            return batch["mask"]

    return SummedLoss()


def _kronfluence() -> tuple[Any, Any, Any]:
    """The modules `analyzer`, `arguments` and `task` of Kronfluence.

    Raises:
        PackageMissing: It is not installed.
    """
    try:
        analyzer, arguments, task = (
            import_module(f"kronfluence.{name}") for name in ("analyzer", "arguments", "task")
        )
    except ImportError as error:
        raise PackageMissing(
            f"EK-FAC needs the package kronfluence, which is not installed ({error}); run "
            "`make bench-peers`."
        ) from error
    return analyzer, arguments, task


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence what Kronfluence says of names that torch has moved."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        yield
