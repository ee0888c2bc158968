"""Score samples for heads of a given model, shard by shard; what is done is never done again.

Everything lies in one folder a set of samples, in folders named after what decides them: tags of
the samples; for each kind of head and each choice of heads the preconditioned probe gradients and
one file of scores a shard. A choice of heads that was scored before, alone or among others, is not
scored again.

Memory, beside the model: while the curvature is fitted, its factors (for each block the squares of
its rows and of its columns) and eigenvalues; then one number a weight of the blocks. While samples
are scored, a batch of them at a time, with the gradients of one layer's attention weights (batch ×
out × in). All in float32, also where the model computes in bfloat16.
"""

import logging
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from safetensors.torch import load, save
from tokenizers import Tokenizer
from torch import Tensor
from transformers import PreTrainedModel

from engine.corpus.documents import Progress
from engine.errors import UnsupportedModel
from engine.mda.influence import score_samples
from engine.mda.memory import BatchSize
from engine.mda.patterns import head_scores
from engine.mda.probes import Gradients
from engine.mda.settings import ProbeConfig
from engine.mda.structure import tags
from engine.mda.subspaces import Subspaces
from engine.mda.tracing import directions_of
from engine.mda.units import UNITS, TracedHeads, Unit
from engine.pipeline.heads_influence_settings import InfluenceConfig
from engine.pipeline.heads_samples import Samples, Steps
from engine.provenance import fingerprint
from engine.store import read_json, write_array_atomic, write_bytes_atomic, write_json_atomic


logger = logging.getLogger(__name__)

NAMED = 20
"""Samples without a finite gradient that are named one by one; of the rest the number is said."""
Head = tuple[int, int]


@dataclass
class HeadScoring:
    """Samples and a model, and the folder of what was computed about them."""

    model: PreTrainedModel
    samples: Samples
    tokenizer: Tokenizer
    vocabulary: Int[np.ndarray, " tokens"]
    """Tokens that probes are drawn from."""
    probe: ProbeConfig
    """Random sequences, no longer than the model takes."""
    config: InfluenceConfig
    folder: Path
    progress: Progress
    size: BatchSize = field(init=False)
    _skipped: int = 0

    def __post_init__(self) -> None:
        self.size = BatchSize(self.config.batch_size)

    @property
    def unit(self) -> Unit:
        """The kind of head that is asked."""
        return UNITS[self.config.unit]

    def shards(self) -> list[Steps]:
        """Steps of each shard."""
        n_steps = max(1, self.config.shard_samples // self.samples.order.rows_a_step)
        steps = self.samples.steps
        return [steps[first : first + n_steps] for first in range(0, len(steps), n_steps)]

    def strongest(self) -> Head:
        """The head that shows the kind most."""
        found = self.size.run(lambda n: head_scores(self.model, self.vocabulary, self.probe, n))
        scores = found[self.unit.metric]
        layer, head = divmod(int(scores.argmax()), scores.shape[1])
        return layer, head

    def scored(self, heads: tuple[Head, ...]) -> Path:
        """The folder in which these heads, alone or among others, are scored; scored if not."""
        settings = {
            "probe": asdict(self.probe),
            "ekfac": asdict(self.config.ekfac),
            "fit_steps": self.samples.fit_steps.tolist(),
        }
        around = self.folder / f"{self.unit.name}-{fingerprint(settings)}"
        for path in sorted(around.glob("*/facts.json")):
            if set(heads) <= set(scored_heads(path.parent)):
                return path.parent
        folder = around / fingerprint(heads)
        self._score(heads, folder)
        return folder

    # --- parts ------------------------------------------------------------------------------

    def _score(self, heads: tuple[Head, ...], folder: Path) -> None:
        """Every shard that is missing, and at last what was found in all."""
        traced = TracedHeads(self.unit, self.vocabulary, self.probe, heads)
        spaces, directions, seconds = self._directions(traced, folder)
        self._say_memory(spaces, directions)
        label = f"Influence on {self.unit.name} heads"
        for number, steps in enumerate(self.progress(self.shards(), label=label)):
            path = folder / f"part-{number:05d}.npy"
            if not path.is_file():
                started = time.perf_counter()
                write_array_atomic(path, self._part(spaces, directions, steps))
                seconds += time.perf_counter() - started
                write_json_atomic(folder / "seconds.json", seconds)
            self.tags(number)
        missing = np.isnan(all_scores(folder)[:, 0])
        skipped = int(missing.sum())
        if missing.all():
            raise UnsupportedModel(
                f"None of the {skipped} samples has a finite gradient; the weights overflow in "
                "this number format or are damaged."
            )
        named = [list(head) for head in spaces.heads]
        facts = {"unit": self.unit.name, "heads": named, "seconds": seconds}
        write_json_atomic(folder / "facts.json", {**facts, "n_skipped": skipped})

    def _directions(self, traced: TracedHeads, folder: Path) -> tuple[Subspaces, Gradients, float]:
        """Subspaces, preconditioned probe gradients, and the seconds that were spent so far."""
        path, clock = folder / "directions.safetensors", folder / "seconds.json"
        if not path.is_file():
            started = time.perf_counter()
            rows = torch.as_tensor(self.samples.rows(self.samples.fit_steps))
            logger.info("fitting the curvature on %d samples", len(rows))
            fitted = self.size.run(
                lambda n: directions_of(
                    self.model, traced, lambda: rows.split(n), self.config.ekfac
                )[1]
            )
            if not all(bool(direction.isfinite().all()) for direction in fitted):
                raise UnsupportedModel(
                    f"The probe of {self.unit.name} heads has no finite gradient in this model; "
                    "its weights overflow in this number format or are damaged."
                )
            write_json_atomic(clock, time.perf_counter() - started)
            named = {f"{i:05d}": d.cpu().contiguous() for i, d in enumerate(fitted)}
            write_bytes_atomic(path, save(named))
        return traced.spaces(self.model), kept_directions(folder, self.model), read_json(clock)

    def _part(
        self, spaces: Subspaces, directions: Gradients, steps: Steps
    ) -> Float[np.ndarray, "samples columns"]:
        """Loss of each sample, and its influence on each head; NaN where there is none."""
        rows = torch.as_tensor(self.samples.rows(steps))

        def pass_over(n: int) -> Float[Tensor, "samples columns"]:
            found = score_samples(self.model, spaces, directions, rows.split(n))
            return torch.cat([torch.cat([b.losses[:, None], b.scores.sum(2)], 1) for b in found])

        scores = self.size.run(pass_over).float().numpy()
        broken = ~np.isfinite(scores).all(1)
        scores[broken] = np.nan
        self._name(steps, np.flatnonzero(broken))
        return scores

    def _name(self, steps: Steps, broken: Int[np.ndarray, " broken"]) -> None:
        """Say which samples of a shard are left out."""
        if len(broken) == 0:
            return
        places = self.samples.places(steps).iloc[broken].to_dict("records")
        for place in places[: max(0, NAMED - self._skipped)]:
            logger.warning(
                "The sample at step %(step)d, row %(row)d (document %(document)d, token "
                "%(position)d) has no finite gradient and is left out.",
                place,
            )
        self._skipped += len(broken)
        if self._skipped > NAMED:
            logger.warning("%d samples without a finite gradient so far.", self._skipped)

    def tags(self, number: int) -> list[str]:
        """Structures of each sample of a shard, separated by spaces."""
        path = self.folder / f"tags-{number:05d}.json"
        if not path.is_file():
            rows = self.samples.rows(self.shards()[number])
            texts = self.tokenizer.decode_batch(rows.tolist())
            write_json_atomic(path, [" ".join(tags(text)) for text in texts])
        return read_json(path)

    def _say_memory(self, spaces: Subspaces, directions: Gradients) -> None:
        """One line of what scoring holds beside the model."""
        weights: dict[int, int] = {}
        for block in spaces.blocks:
            for name in block.modules:
                module: Any = self.model.get_submodule(name)
                weights[block.layer] = weights.get(block.layer, 0) + module.weight.numel()
        held = 4e-6 * sum(direction.numel() for direction in directions)
        passing = 4e-6 * self.size.size * max(weights.values())
        logger.info(
            "scoring holds %.0f MB of probe gradients, and up to %.0f MB of gradients of %d "
            "samples in one layer",
            held,
            passing,
            self.size.size,
        )


def kept_directions(folder: Path, model: PreTrainedModel) -> Gradients:
    """The preconditioned probe gradients of a scored folder, block by block."""
    kept = load((folder / "directions.safetensors").read_bytes())
    return [kept[name].to(model.device) for name in sorted(kept)]


def part_paths(folder: Path) -> list[Path]:
    """Files of scores in order."""
    return sorted(folder.glob("part-*.npy"))


def all_scores(folder: Path) -> Float[np.ndarray, "samples columns"]:
    """Loss of every sample, in order, and its influence on each head."""
    return np.concatenate([np.load(path, allow_pickle=False) for path in part_paths(folder)])


def scored_heads(folder: Path) -> tuple[Head, ...]:
    """The heads that were scored into a folder, in order."""
    heads = read_json(folder / "facts.json")["heads"]
    return tuple((layer, head) for layer, head in heads)
