"""The head tables of a synthetic run: random numbers of the right shape, no result."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from engine.pipeline.synthetic_heads_analysis import analysis_tables
from engine.pipeline.synthetic_heads_tokens import token_rows
from engine.pipeline.synthetic_tables import Columns
from engine.pipeline.synthetic_tokenizer import write_tokenizer
from engine.store import RunWriter


UNITS = ("induction", "previous_token")
"""Kinds of heads that the synthetic study has arms for."""

ARMS = (
    "augment_top",
    "delete_top",
    "replace_random",
    "replace_top",
    "synthetic",
    "synthetic_control",
)
"""Arms that belong to a kind of head."""

SHARED_ARMS = ("augment_random", "delete_random")
"""Arms that belong to none."""

_DELAYS = {
    "augment_top": -8.0,
    "delete_top": 14.0,
    "replace_top": 2.0,
    "replace_random": 11.0,
    "synthetic": -6.0,
    "synthetic_control": 1.0,
}
_CHOSEN = {"induction": (1, 1), "previous_token": (0, 2)}
_SECOND = {"induction": (1, 0), "previous_token": (0, 1)}
_TAGS = ("code", "list", "markup", "repeat", "table")


@dataclass(frozen=True)
class Shape:
    """Sizes of the synthetic study."""

    seeds: int = 2
    n_layers: int = 2
    n_heads: int = 3
    first_branch: int = 200
    window_steps: int = 40
    batch_size: int = 8
    evaluate_every: int = 4
    context: int = 128

    def branch(self, seed: int) -> int:
        """Step at which the arms of a seed leave its baseline; no two seeds form heads at once."""
        return self.first_branch + 3 * seed * self.evaluate_every

    def end(self, seed: int) -> int:
        """Step at which the window of a seed ends."""
        return self.branch(seed) + self.window_steps

    @property
    def heads(self) -> list[tuple[int, int]]:
        """Layer and head of every head in order."""
        return [(x, y) for x in range(self.n_layers) for y in range(self.n_heads)]

    @property
    def n_selected(self) -> int:
        """Samples that an arm changes."""
        return self.window_steps * self.batch_size // 10


def head_tables(
    generator: np.random.Generator, documents: Columns, shape: Shape | None = None
) -> dict[str, Columns]:
    """Every head table: a study of two kinds of heads whose scores rise within the window.

    Args:
        generator: Source of every number.
        documents: The run's `documents` table, which natural samples come from.
        shape: Sizes.
    """
    shape = shape or Shape()
    samples = _samples(generator, documents, shape)
    influence = _influence(generator, samples, shape)
    _skip(samples, influence)
    frames = {
        "head_scores": pd.concat(list(_scores(generator, shape))),
        "head_losses": pd.concat(list(_losses(generator, shape))),
        "head_arms": _arms(shape),
        "head_samples": samples,
        "head_influence": influence,
        "head_choices": _choices(shape),
    }
    frames |= analysis_tables(generator, influence, shape.heads, _CHOSEN, _TAGS)
    frames["head_tokens"] = token_rows(generator, influence, shape.heads, _CHOSEN, shape.context)
    return {name: {str(c): frame[c].to_list() for c in frame} for name, frame in frames.items()}


def study_facts(shape: Shape | None = None) -> dict[str, Any]:
    """What the manifest of the synthetic study says of its stage."""
    shape = shape or Shape()
    seeds = range(shape.seeds)
    study = {
        "corpus": "synthetic",
        "domain_weights": {"code": 1.0},
        "vocab_size": 257,
        "repeat_share": 0.3,
        "n_layers": shape.n_layers,
        "d_model": 8 * shape.n_heads,
        "n_heads": shape.n_heads,
        "learning_rate": 3e-3,
        "context": shape.context,
        "batch_size": shape.batch_size,
        "window_steps": shape.window_steps,
        "evaluate_every": shape.evaluate_every,
        "top_share": 0.1,
        "seeds": shape.seeds,
    }
    mixture = {n: study[n] for n in ("domain_weights", "repeat_share", "context", "batch_size")}
    return {
        "study": study,
        "mixtures": {str(seed): {**mixture, "seed": seed} for seed in seeds},
        "seeds": shape.seeds,
        "emerged": shape.seeds,
        "windows": {str(seed): [shape.branch(seed), shape.end(seed)] for seed in seeds},
        "frequent": {str(seed): list(range(33, 97)) for seed in seeds},
        "synthetic": True,
    }


def write_synthetic_heads(path: Path, *, seed: int = 0, shape: Shape | None = None) -> Path:
    """A run of the kind `heads` of its own: the study's tables, documents and tokenizer, no model.

    Args:
        path: Folder of the run.
        seed: Seed of every number.
        shape: Sizes.

    Returns:
        `path`.
    """
    generator = np.random.default_rng(seed)
    documents = _documents(generator)
    identity = {
        "synthetic": True,
        "corpus": {"name": "synthetic", "preset": None, "fingerprint": f"{seed:016x}"},
        "tokenizer": {"fingerprint": f"{seed:016x}", "vocab_size": 257},
        "model": {"n_parameters": 0},
    }
    writer = RunWriter.create(path, name="Synthetic heads", kind="heads", identity=identity)
    if writer.begin_stage("study", identity):
        return path
    writer.write_table("documents", documents)
    for table, columns in head_tables(generator, documents, shape).items():
        writer.write_table(table, columns)
    write_tokenizer(path / "model")
    writer.finish_stage("study", {"seconds": 0.0, **study_facts(shape)})
    return path


def _documents(generator: np.random.Generator, count: int = 23) -> Columns:
    return {
        "document": np.arange(count),
        "doc_id": [generator.bytes(8).hex() for _ in range(count)],
        "domain": ["code"] * count,
        "source": [f"synthetic/code/{i:05d}.txt" for i in range(count)],
        "split": ["train"] * count,
        "n_bytes": generator.integers(200, 2000, count),
    }


def _every_arm(shape: Shape) -> Iterator[tuple[int, str, str, np.ndarray]]:
    """Seed, arm, unit and steps of evaluation, in the order of the tables' keys."""
    every = shape.evaluate_every
    named = [(arm, "") for arm in SHARED_ARMS] + [(arm, u) for arm in ARMS for u in UNITS]
    for seed in range(shape.seeds):
        after = np.arange(shape.branch(seed) + every, shape.end(seed) + 1, every)
        whole = np.arange(every, shape.end(seed) + shape.window_steps + 1, every)
        for arm, unit in sorted([("baseline", ""), *named]):
            yield seed, arm, unit, whole if arm == "baseline" else after


def _rise(steps: np.ndarray, shape: Shape, seed: int, delay: float) -> np.ndarray:
    """An emergence curve from 0 to 1 around the middle of the window."""
    scale = shape.window_steps / 40
    middle = shape.branch(seed) + (18 + 2 * seed + delay) * scale
    return 1 / (1 + np.exp(-(steps - middle) / (4 * scale)))


def _scores(generator: np.random.Generator, shape: Shape) -> Iterator[pd.DataFrame]:
    metrics = {"induction": "prefix_matching", "previous_token": "previous_token"}
    for seed, arm, unit, steps in _every_arm(shape):
        size = (len(steps), len(shape.heads))
        steps_of, head_of = (axis.ravel() for axis in np.indices(size))
        layers, heads = np.array(shape.heads)[head_of].T
        frame = pd.DataFrame(
            {"seed": seed, "arm": arm, "unit": unit, "step": steps[steps_of], "layer": layers}
        )
        frame["head"] = heads
        for kind, metric in metrics.items():
            rise = _rise(steps, shape, seed, _delay(arm, unit, kind))
            level = np.full(size, 0.04)
            level[:, shape.heads.index(_CHOSEN[kind])] += 0.7 * rise
            level[:, shape.heads.index(_SECOND[kind])] += 0.3 * rise
            noise = generator.normal(0, 0.012, size)
            frame[metric] = np.clip(level + noise, 0, 1).ravel()
        frame["duplicate_token"] = generator.beta(2, 20, size).ravel()
        yield frame


def _delay(arm: str, unit: str, kind: str) -> float:
    """Steps by which an arm moves the emergence of a kind of head."""
    moved = _DELAYS.get(arm, 0.0)
    return moved if unit == kind else 0.15 * moved


def _losses(generator: np.random.Generator, shape: Shape) -> Iterator[pd.DataFrame]:
    for seed, arm, unit, steps in _every_arm(shape):
        rise = _rise(steps, shape, seed, _delay(arm, unit, "induction"))
        count = len(steps)
        yield pd.DataFrame(
            {
                "seed": seed,
                "arm": arm,
                "unit": unit,
                "step": steps,
                "checkpoint": "",
                "tokens_seen": steps * shape.batch_size * shape.context,
                "loss": 1.6
                + 3 * np.exp(-steps / (1.5 * shape.window_steps))
                + generator.normal(0, 0.01, count),
                "copy_loss": 4.6 - 4.2 * rise + generator.normal(0, 0.05, count),
                "icl": -0.1 - 0.4 * rise + generator.normal(0, 0.02, count),
            }
        )


def _arms(shape: Shape) -> pd.DataFrame:
    rows = []
    for seed, arm, unit, _ in _every_arm(shape):
        changed = 0 if arm == "baseline" else shape.n_selected
        adds = arm.startswith(("augment", "synthetic", "replace"))
        takes = arm.startswith(("delete", "replace"))
        rows.append(
            {
                "seed": seed,
                "arm": arm,
                "unit": unit,
                "branch_step": shape.branch(seed),
                "end_step": shape.end(seed),
                "n_deleted": changed if takes else 0,
                "n_inserted": changed if adds else 0,
                "n_planted": changed * 3 // 4 if "top" in arm else changed // 3,
            }
        )
    return pd.DataFrame(rows)


def _samples(generator: np.random.Generator, documents: Columns, shape: Shape) -> pd.DataFrame:
    size = (shape.seeds, shape.window_steps, shape.batch_size)
    seeds, steps, rows = (axis.ravel() for axis in np.indices(size))
    count = len(seeds)
    planted = generator.random(count) < 0.3
    drawn = generator.integers(0, len(documents["document"]), count)
    domains = np.asarray(documents["domain"], dtype=object)[drawn]
    return pd.DataFrame(
        {
            "seed": seeds,
            "step": steps + np.array([shape.branch(int(seed)) for seed in seeds]),
            "row": rows,
            "domain": np.where(planted, "planted", domains),
            "document": np.where(planted, -1, np.asarray(documents["document"])[drawn]),
            "position": np.where(planted, -1, generator.integers(0, 20, count)),
            "segment": np.where(planted, generator.integers(4, 16, count), 0),
            "loss": generator.gamma(9, 8, count),
            "tags": [_tags(generator, bool(mark)) for mark in planted],
        }
    )


def _tags(generator: np.random.Generator, planted: bool) -> str:
    if planted:
        return "repeat"
    return " ".join(tag for tag in _TAGS if generator.random() < 0.3)


def _influence(generator: np.random.Generator, samples: pd.DataFrame, shape: Shape) -> pd.DataFrame:
    """Heavy-tailed influence of both signs, larger where the sample repeats a segment."""
    frames = []
    for unit in UNITS:
        size = (len(samples), len(shape.heads))
        common = generator.pareto(1.6, (len(samples), 1)) * generator.choice([1, -1], size)
        own = generator.pareto(1.8, size) * generator.choice([1, -1], size)
        repeated = (samples["segment"].to_numpy() > 0)[:, None]
        values = 1e-4 * (0.3 * common + own + repeated * generator.exponential(3, size))
        frame = samples[["seed", "step", "row"]].copy()
        frame.insert(1, "unit", unit)
        frame["influence"] = list(values.astype(np.float32))
        frames.append(frame)
    return pd.concat(frames).sort_values(["seed", "unit", "step", "row"], ignore_index=True)


def _skip(samples: pd.DataFrame, influence: pd.DataFrame, place: int = 3) -> None:
    """Leave out one sample, as if its gradient had been no finite number."""
    sample = samples.iloc[place]
    samples.loc[place, "loss"] = np.nan
    same = influence["step"].eq(sample["step"]) & influence["row"].eq(sample["row"])
    same &= influence["seed"].eq(sample["seed"])
    influence["influence"] = [
        np.full_like(values, np.nan) if skipped else values
        for values, skipped in zip(influence["influence"], same, strict=True)
    ]


def _choices(shape: Shape) -> pd.DataFrame:
    names = [f"{layer}.{head}" for layer, head in shape.heads]
    rows = [
        {
            "seed": seed,
            "unit": unit,
            "layer": _CHOSEN[unit][0],
            "head": _CHOSEN[unit][1],
            "checkpoint_step": shape.branch(seed) + shape.window_steps // 2,
            "heads": names,
            "n_selected": shape.n_selected,
            "n_samples": shape.window_steps * shape.batch_size,
            "n_planted_selected": shape.n_selected * 3 // 4,
            "n_planted": shape.window_steps * shape.batch_size // 3,
            "n_skipped": int(seed == 0),
            "seconds": 12.5,
        }
        for seed in range(shape.seeds)
        for unit in UNITS
    ]
    return pd.DataFrame(rows)
