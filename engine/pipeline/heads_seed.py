"""One seed of an emergence study: baseline, choice of heads, influence, arms. Resumable by part.

Every part is a file in the seed's folder, written whole when the part ends; a study that was
killed goes on with the first part that is missing and ends with the same files.
"""

import logging
import shutil
import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from tokenizers import Tokenizer

from engine.config import require
from engine.corpus.batches import BatchStream
from engine.corpus.documents import Progress
from engine.corpus.shards import TokenShards
from engine.errors import CacheMissing
from engine.mda.arms import BASELINE, Arm, Sample, top_samples
from engine.mda.blocks import head_layout
from engine.mda.ekfac import fit_curvature
from engine.mda.emergence import EmergenceRun, Evaluation
from engine.mda.influence import precondition, score_samples
from engine.mda.stream import MixedStream
from engine.mda.subspaces import Subspaces, subspaces
from engine.mda.units import UNITS, Unit
from engine.pipeline.heads_settings import HeadStudy
from engine.store import read_json, write_array_atomic, write_json_atomic


logger = logging.getLogger(__name__)

LATER = "later"
"""Name of the interval after the window, from which rows are taken that replace others."""


@dataclass
class SeedStudy:
    """A seed at work in its folder."""

    study: HeadStudy
    seed: int
    shards: TokenShards
    tokenizer: Tokenizer
    folder: Path
    device: torch.device
    progress: Progress
    source: "SeedStudy | None" = None
    """The same seed of a study whose samples give the motifs of synthetic rows; this one if None.
    """

    @cached_property
    def stream(self) -> MixedStream:
        """The seed's rows."""
        return MixedStream(self.shards, self.study.mixture(self.seed))

    @cached_property
    def evaluation(self) -> Evaluation:
        """What is measured along each arm; the same rows for every seed."""
        natural = BatchStream(
            self.shards, split="validation", context=self.study.context, batch_size=1, seed=0
        )
        rows = natural.evaluation(self.study.held_out_rows)
        kept = [rows[name] for name in self.study.domain_weights if name in rows]
        probe = self.study.probe
        return Evaluation(torch.as_tensor(np.concatenate(kept)), self.stream.frequent, probe)

    # --- the baseline -----------------------------------------------------------------------

    def baseline(self) -> None:
        """Train until heads have formed and the window is over, or no heads formed in time.

        States are kept all along, for where the window begins is known only at its onset; those
        before the branch are removed at the end.
        """
        if (self.folder / "baseline.json").is_file():
            return
        study, run = self.study, self._fresh()
        curve: list[dict[str, Any]] = []
        onset: int | None = None
        run.save(self._checkpoint(0))  # heads may form within the lead of the very first step
        end = study.longest_steps
        longest = study.longest_steps + study.window_steps  # a late onset has its whole window
        for step in self._steps(run, longest, BASELINE):
            if step % study.checkpoint_every == 0:
                run.save(self._checkpoint(step))
            if step % study.evaluate_every == 0:
                curve.append({"step": step, **_plain(self.evaluation.measure(run.model))})
                if onset is None and _formed(curve[-1], study.onset_score):
                    onset = step
                    end = study.window_of(study.branch_of(onset)).stop
            if step >= end:
                break
        branch = None if onset is None else study.branch_of(onset)
        facts = {"onset": onset, "branch": branch, "end": end, "curve": curve}
        write_json_atomic(self.folder / "baseline.json", facts)
        for kept in (self.folder / "checkpoints").glob("step-*"):
            if branch is None or int(kept.name.removeprefix("step-")) < branch:
                shutil.rmtree(kept)
        logger.info("seed %d: heads formed at step %s", self.seed, onset)

    @cached_property
    def facts(self) -> dict[str, Any]:
        """The finished baseline: onset, branch, end and curve."""
        return read_json(self.folder / "baseline.json")

    @property
    def emerged(self) -> bool:
        """Whether heads formed in time."""
        return self.facts["onset"] is not None

    @property
    def branch(self) -> int:
        """Step at which the arms branch off.

        Raises:
            CacheMissing: no head formed.
        """
        if not self.emerged:
            raise CacheMissing(
                f"No head formed in seed {self.seed} within {self.facts['end']} steps, so there is "
                "no window to change; raise longest_steps or repeat_share."
            )
        return int(self.facts["branch"])

    @property
    def window(self) -> range:
        """Steps of the window."""
        return self.study.window_of(self.branch)

    # --- influence --------------------------------------------------------------------------

    def influence(self, unit: Unit) -> None:
        """Choose the head of a kind, and score every sample for every head.

        Scored are the samples of the window and, for replacing arms, those of the interval of
        the same length after it, with the same weights.
        """
        path = self.folder / f"influence-{unit.name}.json"
        if path.is_file():
            return
        started = time.perf_counter()
        head, step = self.choose(unit)
        model = self.model_at(step)
        spaces = subspaces(head_layout(model), kinds=unit.kinds)
        curvature = fit_curvature(model, spaces, self._fit_batches, self.study.ekfac)
        gradients = unit.probe(self.stream.frequent, self.study.probe).gradients(model, spaces)
        directions = precondition(curvature, gradients, self.study.ekfac)
        scores, losses = self._score(model, spaces, directions, self.window, unit.name)
        seconds = time.perf_counter() - started
        later = range(self.window.stop, self.window.stop + len(self.window))
        others, _ = self._score(model, spaces, directions, later, f"{unit.name}, later rows")
        write_array_atomic(self.folder / f"scores-{unit.name}.npy", scores)
        write_array_atomic(self.folder / f"scores-{unit.name}-{LATER}.npy", others)
        write_array_atomic(self.folder / f"losses-{unit.name}.npy", losses)
        facts = {
            "layer": head[0],
            "head": head[1],
            "checkpoint": step,
            "heads": [list(each) for each in spaces.heads],
            "n_skipped": int(np.isnan(scores).any(2).sum()),
            "seconds": seconds,
        }
        write_json_atomic(path, facts)

    def _score(
        self, model: Any, spaces: Subspaces, directions: Any, steps: range, label: str
    ) -> tuple[np.ndarray, np.ndarray]:
        """Influence [steps, rows, heads] and loss [steps, rows] of every sample of some steps."""
        batches = (torch.as_tensor(self.stream.batch(step)) for step in steps)
        scored = score_samples(model, spaces, directions, batches)
        label = f"Seed {self.seed}: influence on {label}"
        found = list(self.progress(scored, label=label, total=len(steps)))
        scores = torch.stack([batch.scores.sum(2) for batch in found])
        losses = torch.stack([batch.losses for batch in found])
        return scores.numpy().astype(np.float32), losses.numpy().astype(np.float32)

    def choose(self, unit: Unit) -> tuple[tuple[int, int], int]:
        """The head with the largest score at the end of the baseline, and the step to score at.

        The step is the first kept one of the window at which the head has half of its final score
        or more.
        """
        curve = self.facts["curve"]
        final = np.array(curve[-1]["heads"][unit.metric])
        layer, head = np.unravel_index(int(final.argmax()), final.shape)
        reached = next(
            row["step"]
            for row in curve
            if row["step"] > self.branch
            and row["heads"][unit.metric][layer][head] >= final[layer, head] / 2
        )
        every = self.study.checkpoint_every
        return (int(layer), int(head)), min(-(-reached // every) * every, self.last_kept)

    @property
    def last_kept(self) -> int:
        """Last step whose state is kept."""
        return self.window.stop // self.study.checkpoint_every * self.study.checkpoint_every

    def influence_on(
        self, unit: str, head: tuple[int, int] | None = None, interval: str = ""
    ) -> Float[np.ndarray, "steps rows"]:
        """Influence of every sample of the window, or of the later interval, on a head.

        Args:
            unit: kind of head whose probe was asked.
            head: layer and head; the chosen one if None.
            interval: `LATER`, or empty for the window.

        Raises:
            ConfigError: the head does not exist.
        """
        facts = read_json(self.folder / f"influence-{unit}.json")
        name = f"scores-{unit}-{interval}.npy" if interval else f"scores-{unit}.npy"
        scores = np.load(self.folder / name, allow_pickle=False)
        wanted = list(head) if head else [facts["layer"], facts["head"]]
        named = ", ".join(f"{layer}.{at}" for layer, at in facts["heads"])
        require(
            wanted in facts["heads"],
            f"There is no head {wanted[0]}.{wanted[1]}; the study scored {named}.",
        )
        return scores[:, :, facts["heads"].index(wanted)]

    def selection(self, unit: str, interval: str = "") -> list[Sample]:
        """The samples of the window, or of the later interval, with the most influence."""
        scores = self.influence_on(unit, interval=interval)
        first = self.window.stop if interval else self.branch
        return top_samples(scores, range(first, first + len(scores)), self.study.n_selected)

    # --- arms -------------------------------------------------------------------------------

    def arm_path(self, arm: str, unit: str) -> Path:
        """Where an arm's result is kept."""
        return self.folder / f"arm-{arm}{'-' if unit else ''}{unit}.json"

    def train_arm(self, arm: Arm, unit: str) -> None:
        """Train an arm from the branch to the end of the window, and keep what it gave."""
        write_json_atomic(self.arm_path(arm.name, unit), self.arm_result(arm, unit))

    def arm_result(self, arm: Arm, unit: str) -> dict[str, Any]:
        """Train an arm from the branch to the end of the window."""
        run = self._fresh()
        run.load(self._checkpoint(self.branch))
        study, end = self.study, self.window.stop
        curve = [
            {"step": step, **_plain(self.evaluation.measure(run.model))}
            for step in self._steps(run, end, arm)
            if step % study.evaluate_every == 0 or step == end
        ]
        return {
            "arm": arm.name,
            "unit": unit,
            "n_deleted": len(arm.deleted),
            "n_inserted": sum(len(rows) for rows in arm.inserted.values()),
            "n_planted": sum(self.stream.is_planted(*sample) for sample in arm.changed),
            "curve": curve,
        }

    # --- pieces -----------------------------------------------------------------------------

    def model_at(self, step: int) -> Any:
        """The baseline's decoder at a kept step, in evaluation mode."""
        run = self._fresh()
        run.load(self._checkpoint(step))
        return run.model.eval()

    def _fresh(self) -> EmergenceRun:
        decoder = self.study.decoder(self.seed)
        return EmergenceRun(decoder, self.stream, self.shards.vocab_size, self.device)

    def _checkpoint(self, step: int) -> Path:
        return self.folder / "checkpoints" / f"step-{step}"

    def _steps(self, run: EmergenceRun, until: int, arm: Arm) -> Iterable[int]:
        label = f"Seed {self.seed}: {arm.name}"
        steps = (step for step, _ in run.train(until, arm))
        return self.progress(steps, label=label, total=until - run.step)

    def _fit_batches(self) -> list[torch.Tensor]:
        """Rows the curvature is fitted on: whole steps spread over the window."""
        wanted = max(1, self.study.ekfac_samples // self.study.batch_size)
        spread = np.linspace(self.window[0], self.window[-1], min(wanted, len(self.window)))
        return [torch.as_tensor(self.stream.batch(int(step))) for step in spread.round()]


def _formed(measured: dict[str, Any], threshold: float) -> bool:
    """Whether any head matches prefixes."""
    return float(np.max(measured["heads"][UNITS["induction"].metric])) >= threshold


def _plain(measured: dict[str, Any]) -> dict[str, Any]:
    """Measurements as plain values."""
    heads = {name: values.round(6).tolist() for name, values in measured["heads"].items()}
    return {**measured, "heads": heads}
