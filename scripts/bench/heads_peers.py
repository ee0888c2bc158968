"""The same blocks of the same heads by Kronfluence: seconds, and how far the scores agree.

Kronfluence knows whole linear layers alone, so the fused projections are taken apart: per head a
map to query and key, one to the value, and one from the head to the stream, each without its bias,
which stays outside. Damping is 0.1 of the mean eigenvalue in both, without a floor, and the labels
of the curvature are the same, so the scores must be.
"""

import copy
import logging
import tempfile
import warnings
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import Dataset

from engine.mda.blocks import HeadLayout
from engine.mda.ekfac import sample_labels, sequence_loss
from engine.mda.influence import precondition
from engine.mda.probes import CopyProbe
from engine.mda.settings import EkfacConfig
from engine.pipeline.claims_heads_speed import KRONFLUENCE
from engine.pipeline.measurements import record_measurement
from scripts.bench.clock import device_clock, timed
from scripts.bench.heads import BATCH, HeadsBench, Work


SHAPE = (3, 128)
_KINDS = ("query_key", "value", "output")


class ReadingHeads(nn.Module):
    """A fused projection of GPT-NeoX, head by head: query and key jointly, and the value."""

    def __init__(self, fused: nn.Linear, n_heads: int) -> None:
        super().__init__()
        d_head, width = fused.out_features // (3 * n_heads), fused.in_features
        weights = fused.weight.detach().view(n_heads, 3 * d_head, width)
        self.query_key = nn.ModuleList(_linear(weight[: 2 * d_head]) for weight in weights)
        self.value = nn.ModuleList(_linear(weight[2 * d_head :]) for weight in weights)
        self.bias = nn.Parameter(fused.bias.detach().clone(), requires_grad=False)

    def forward(self, states: Tensor) -> Tensor:
        """Queries, keys and values in the order of the fused map."""
        pairs = zip(self.query_key, self.value, strict=True)
        return torch.cat([part(states) for pair in pairs for part in pair], dim=-1) + self.bias


class WritingHeads(nn.Module):
    """An output projection as a sum over heads."""

    def __init__(self, dense: nn.Linear, n_heads: int) -> None:
        super().__init__()
        parts = dense.weight.detach().chunk(n_heads, dim=1)
        self.output = nn.ModuleList(_linear(part) for part in parts)
        self.bias = nn.Parameter(dense.bias.detach().clone(), requires_grad=False)

    def forward(self, mixed: Tensor) -> Tensor:
        """What the heads write, together."""
        parts = mixed.chunk(len(self.output), dim=-1)
        written = [head(part) for head, part in zip(self.output, parts, strict=True)]
        return torch.stack(written).sum(0) + self.bias


def _linear(weight: Tensor) -> nn.Linear:
    linear = nn.Linear(weight.shape[1], weight.shape[0], bias=False)
    linear.weight.data.copy_(weight)
    return linear


def split_heads(model: Any, layout: HeadLayout) -> tuple[Any, list[list[str]]]:
    """A copy of a decoder with its heads apart, and the names of each head's three maps."""
    split = copy.deepcopy(model)
    names = []
    for number, layer in enumerate(split.gpt_neox.layers):
        attention = layer.attention
        attention.query_key_value = ReadingHeads(attention.query_key_value, layout.n_heads)
        attention.dense = WritingHeads(attention.dense, layout.n_heads)
        base = f"gpt_neox.layers.{number}.attention"
        for head in range(layout.n_heads):
            reads = [f"{base}.query_key_value.{kind}.{head}" for kind in _KINDS[:2]]
            names.append([*reads, f"{base}.dense.{_KINDS[2]}.{head}"])
    return split.eval(), names


def measure_kronfluence(bench: HeadsBench, shape: tuple[int, int] = SHAPE) -> dict[str, Any]:
    """Time both on the same blocks, and compare their scores; the record is `heads-kronfluence`.

    relative_difference: norm of the difference of all scores over the norm of ours.

    Raises:
        ImportError: Kronfluence is not installed.
    """
    work = Work.make(shape, bench)
    work.fit(work.spaces(), 1)  # warms up
    ours, theirs, seconds = compare(work, bench.device)
    n = len(work.rows) * BATCH
    row = {
        **seconds,
        "samples_a_s": n / seconds["score_s"],
        "kronfluence_samples_a_s": n / seconds["kronfluence_score_s"],
        "relative_difference": float(np.linalg.norm(ours - theirs) / np.linalg.norm(ours)),
    }
    heads = work.layout.n_layers * work.layout.n_heads
    setting = {"layers": shape[0], "d_model": shape[1], "heads": heads, **work.setting(bench)}
    record_measurement(KRONFLUENCE, setting, [row])
    print(
        f"heads: {row['samples_a_s']:.1f} samples a second, Kronfluence "
        f"{row['kronfluence_samples_a_s']:.1f}; curvature {row['fit_s']:.1f} s, Kronfluence "
        f"{row['kronfluence_fit_s']:.1f} s; scores differ by {row['relative_difference']:.1e}"
    )
    return row


def compare(work: Work, device: str) -> tuple[np.ndarray, np.ndarray, dict[str, float]]:
    """Influence by both, [samples, heads], with our sign; seconds of curvature and of scoring."""
    clock = device_clock(device)
    ours, own = _ours(work, clock)
    theirs, peer = _theirs(work, device, clock)
    return ours, theirs, own | peer


def _ours(work: Work, clock: Any) -> tuple[np.ndarray, dict[str, float]]:
    spaces = work.spaces()
    found: dict[str, Any] = {}

    def fit() -> None:
        found["curvature"] = work.fit(spaces, len(work.rows))

    def score() -> None:
        gradients = work.probe.gradients(work.model, spaces)
        directions = precondition(found["curvature"], gradients, EkfacConfig(floor=1e-30))
        found["scores"] = work.score(spaces, directions)

    seconds = {"fit_s": timed(clock, fit), "score_s": timed(clock, score)}
    return found["scores"].numpy(), seconds


def _theirs(work: Work, device: str, clock: Any) -> tuple[np.ndarray, dict[str, float]]:
    """Kronfluence's influence with our sign, [samples, heads]; the probe's gradients are summed."""
    analysis = import_module("kronfluence.analyzer")
    arguments = import_module("kronfluence.arguments")
    split, names = split_heads(work.model, work.layout)
    task = _task([name for own in names for name in own], work.probe, _drawn_labels(work))
    rows, queries = _Rows(torch.cat(work.rows).cpu()), _Rows(work.probe.tokens)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        analyzer = analysis.Analyzer(
            analysis_name="heads",
            model=analysis.prepare_model(split, task),
            task=task,
            cpu=not device.startswith("cuda"),
            log_level=logging.ERROR,
            output_dir=str(Path(folder)),
            disable_tqdm=True,
            disable_model_save=True,
        )
        fit = partial(_fit, analyzer, task, rows)
        score = partial(
            analyzer.compute_pairwise_scores,
            scores_name="scores",
            factors_name="ekfac",
            query_dataset=queries,
            train_dataset=rows,
            per_device_query_batch_size=len(queries),
            per_device_train_batch_size=BATCH,
            score_args=arguments.ScoreArguments(
                damping_factor=None,  # a tenth of the mean eigenvalue
                aggregate_query_gradients=True,
                compute_per_module_scores=True,
            ),
        )
        seconds = {"kronfluence_fit_s": timed(clock, fit)}
        seconds["kronfluence_score_s"] = timed(clock, score)
        by_module: Any = analyzer.load_pairwise_scores("scores")
    columns = [
        torch.stack([by_module[name].float().flatten() for name in own]).sum(0) for own in names
    ]
    return -torch.stack(columns, dim=1).numpy(), seconds


def _drawn_labels(work: Work) -> Tensor:
    """The labels that our own curvature draws, [rows, tokens].

    Drawn anew from the split decoder, a few would differ by rounding, and eigenvectors with them.
    """
    generator = torch.Generator().manual_seed(EkfacConfig().seed)
    with torch.no_grad():
        logits = (work.model(input_ids=r[:, :-1], use_cache=False).logits for r in work.rows)
        return torch.cat([sample_labels(own, generator) for own in logits])


def _fit(analyzer: Any, task: Any, rows: Dataset[dict[str, Tensor]]) -> None:
    """Kronfluence's three steps; each pass over the rows reads the same labels."""
    arguments = import_module("kronfluence.arguments")
    settings = arguments.FactorArguments(strategy="ekfac", use_empirical_fisher=False)
    common = {"factors_name": "ekfac", "factor_args": settings}
    data = {"dataset": rows, "per_device_batch_size": BATCH}
    task.rewind()
    analyzer.fit_covariance_matrices(**data, **common)
    analyzer.perform_eigendecomposition(**common)
    task.rewind()
    analyzer.fit_lambda_matrices(**data, **common)


class _Rows(Dataset[dict[str, Tensor]]):
    """Token rows as a data set of Kronfluence."""

    def __init__(self, rows: Tensor) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        return {"rows": self.rows[index]}


def _task(modules: list[str], probe: CopyProbe, drawn: Tensor) -> Any:
    """Losses of rows and the probe of its sequences, as Kronfluence asks for them."""
    base: Any = import_module("kronfluence.task").Task

    class HeadsTask(base):
        def __init__(self) -> None:
            self.rewind()

        def rewind(self) -> None:
            """Read labels from the first row on."""
            self.at = 0

        def compute_train_loss(self, batch: Any, model: Any, sample: bool = False) -> Tensor:
            rows = batch["rows"]
            logits = model(input_ids=rows[:, :-1], use_cache=False).logits
            labels = rows[:, 1:]
            if sample:
                labels = drawn[self.at : self.at + len(rows)]
                self.at += len(rows)
            return sequence_loss(logits, labels).sum()

        def compute_measurement(self, batch: Any, model: Any) -> Tensor:
            rows = batch["rows"]
            return CopyProbe(rows).value(model) * len(rows) / len(probe.tokens)

        def get_influence_tracked_modules(self) -> list[str]:
            return modules

    return HeadsTask()
