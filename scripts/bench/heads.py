"""What tracing heads costs: all heads against one, models of several sizes, and Kronfluence.

Decoders are GPT-NeoX shaped with random weights, rows random tokens: neither changes the work.
"""

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from engine.mda.blocks import HeadLayout, head_layout
from engine.mda.ekfac import BlockCurvature, fit_curvature
from engine.mda.emergence import make_decoder
from engine.mda.influence import precondition, score_samples
from engine.mda.patterns import repeated_sequences
from engine.mda.probes import CopyProbe, Gradients
from engine.mda.settings import DecoderConfig, ProbeConfig
from engine.mda.subspaces import Subspaces, subspaces
from engine.pipeline.claims_heads_speed import ALL_HEADS, COST
from engine.pipeline.measurements import record_measurement
from scripts.bench.clock import device_clock, ratio, timed


CONTEXT = 128
BATCH = 16
VOCABULARY = 4096
SHAPE = (6, 256)
"""Layers and width of the decoder in which one head is held against all."""
SIZES = ((2, 64), (3, 128), (4, 256), (6, 384), (8, 512))
"""Layers and width of the decoders by whose size the cost is told; heads are 32 wide in all."""
HEAD_WIDTH = 32
COST_ROUNDS = 3
"""Repetitions of each size at most; the median counts."""


@dataclass(frozen=True)
class HeadsBench:
    """What is run."""

    device: str
    rounds: int
    samples: int
    """Samples of a pass; whole batches."""

    @property
    def batches(self) -> int:
        """Batches of a pass."""
        return max(2, self.samples // BATCH)


@dataclass(frozen=True)
class Work:
    """A decoder, its rows, and a probe that asks for copying."""

    model: Any
    layout: HeadLayout
    rows: list[Tensor]
    probe: CopyProbe

    @classmethod
    def make(cls, shape: tuple[int, int], bench: HeadsBench) -> "Work":
        """Random weights and rows, from fixed seeds."""
        layers, width = shape
        config = DecoderConfig(n_layers=layers, d_model=width, n_heads=width // HEAD_WIDTH)
        model: Any = make_decoder(config, VOCABULARY, CONTEXT)
        model.to(bench.device).eval()
        generator = torch.Generator().manual_seed(0)
        drawn = torch.randint(
            VOCABULARY, (bench.batches, BATCH, CONTEXT + 1), generator=generator
        ).to(bench.device)
        vocabulary = torch.arange(VOCABULARY).numpy()
        probe = CopyProbe(repeated_sequences(vocabulary, ProbeConfig()))
        return cls(model, head_layout(model), list(drawn), probe)

    def spaces(self, heads: list[tuple[int, int]] | None = None) -> Subspaces:
        """Blocks of some heads, or of all."""
        return subspaces(self.layout, heads)

    def fit(self, spaces: Subspaces, batches: int) -> list[BlockCurvature]:
        """Curvature on the first batches."""
        return fit_curvature(self.model, spaces, lambda: self.rows[:batches])

    def directions(self, spaces: Subspaces, curvature: list[BlockCurvature]) -> Gradients:
        """The probe's gradients over the curvature."""
        return precondition(curvature, self.probe.gradients(self.model, spaces))

    def score(self, spaces: Subspaces, directions: Gradients) -> Tensor:
        """Influence of every row on every head: [samples, heads]."""
        found = score_samples(self.model, spaces, directions, self.rows)
        return torch.cat([batch.scores.sum(2) for batch in found])

    def setting(self, bench: HeadsBench) -> dict[str, Any]:
        """What a record says of it."""
        return {
            "device": _device(bench.device),
            "context": CONTEXT,
            "batch": BATCH,
            "vocabulary": VOCABULARY,
            "samples": len(self.rows) * BATCH,
            "head_width": HEAD_WIDTH,
            "threads": torch.get_num_threads(),
        }


def measure_all_heads(bench: HeadsBench, shape: tuple[int, int] = SHAPE) -> None:
    """Score all heads in one pass, and one head of each layer in a pass of its own, in turns.

    The record `heads-all` has a row a round: seconds of all heads and the mean over layers of one
    head's, of scoring and of the curvature that is fitted beforehand.
    """
    work = Work.make(shape, bench)
    every = work.spaces()
    alone = [work.spaces([(layer, 0)]) for layer in range(work.layout.n_layers)]
    clock = device_clock(bench.device)
    fits = {
        "all_fit_s": timed(clock, partial(work.fit, every, len(work.rows))),
        "one_fit_s": statistics.mean(
            timed(clock, partial(work.fit, one, len(work.rows))) for one in alone
        ),
    }
    score = [_scorer(work, spaces) for spaces in (every, *alone)]
    rounds = []
    for number in range(bench.rounds + 1):
        order = range(len(score)) if number % 2 else reversed(range(len(score)))
        seconds = {place: timed(clock, score[place]) for place in order}
        one = statistics.mean(seconds[place] for place in range(1, len(score)))
        rounds.append({"all_s": seconds[0], "one_s": one, **fits})
    rounds = rounds[1:]  # the first warms up
    heads = work.layout.n_layers * work.layout.n_heads
    setting = {"layers": shape[0], "d_model": shape[1], "heads": heads, **work.setting(bench)}
    record_measurement(ALL_HEADS, setting, rounds)
    print(
        f"heads: all {heads} in {ratio(rounds, 'all_s', 'one_s'):.2f} of one head's time; "
        f"curvature {fits['all_fit_s'] / fits['one_fit_s']:.2f}"
    )


def _scorer(work: Work, spaces: Subspaces) -> Callable[[], Tensor]:
    """A scoring pass with its directions made beforehand."""
    directions = work.directions(spaces, work.fit(spaces, 1))
    return partial(work.score, spaces, directions)


def measure_cost(bench: HeadsBench, sizes: tuple[tuple[int, int], ...] = SIZES) -> None:
    """Time of tracing all heads by the decoder's size, what every sample adds and what it does not.

    The record `heads-cost` has a row a round and size. sample_s: scoring a sample; fit_sample_s:
    a sample of the curvature, both passes; fixed_s: the rest: probe, eigenvectors, solving.
    """
    works = [Work.make(size, bench) for size in sizes]
    clock = device_clock(bench.device)
    rows: list[dict[str, float]] = []
    for number in range(min(bench.rounds, COST_ROUNDS)):
        for size, work in zip(sizes, works, strict=True):
            found = _costs(work, clock)
            rows.append({"round": number, "layers": size[0], "d_model": size[1], **found})
            print(
                f"heads: {found['parameters']:>12,} parameters: {1e3 * found['sample_s']:.3g} ms a "
                f"sample, {found['fixed_s']:.3g} s fixed",
                flush=True,
            )
    record_measurement(COST, works[0].setting(bench), rows)


def _costs(work: Work, clock: Callable[[], float]) -> dict[str, float]:
    spaces, n = work.spaces(), len(work.rows) * BATCH
    curvature = work.fit(spaces, 1)  # warms up
    short = timed(clock, partial(work.fit, spaces, 1))
    whole = timed(clock, partial(work.fit, spaces, len(work.rows)))
    of_sample = (whole - short) / (n - BATCH)
    solving = timed(clock, partial(work.directions, spaces, curvature))
    directions = work.directions(spaces, curvature)
    scoring = timed(clock, partial(work.score, spaces, directions))
    return {
        "parameters": sum(p.numel() for p in work.model.parameters()),
        "block_parameters": sum(p.numel() for p in work.model.gpt_neox.layers.parameters()),
        "samples": n,
        "sample_s": scoring / n,
        "fit_sample_s": of_sample,
        "fixed_s": max(0.0, short - BATCH * of_sample) + solving,
    }


def _device(name: str) -> str:
    return f"{name} {torch.cuda.get_device_name()}" if name.startswith("cuda") else name
