"""Arms of an emergence study: one run's data, changed in one way and in no other.

In every arm the loss of a step is the sum over its rows, each with its weight, divided by the
step's usual number of rows. A deleted row has weight 0 (its gradient is masked, the order and all
other rows stay), an inserted row is added with weight 1 at a step of the plan. So the part of
every other row in the step's gradient is the same in all arms.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float, Int

from engine.config import require
from engine.mda.stream import MixedStream


Sample = tuple[int, int]
"""Step and row; the epoch follows from the row's source."""


@dataclass(frozen=True)
class Arm:
    """What an arm changes."""

    name: str
    deleted: frozenset[Sample] = frozenset()
    """Samples whose gradient is masked."""
    inserted: Mapping[int, Int[np.ndarray, "_rows length"]] = field(default_factory=dict)
    """Rows added, by step."""
    changed: tuple[Sample, ...] = ()
    """Samples of the stream that the arm masks or copies; none where the added rows are new."""

    def rows(
        self, stream: MixedStream, step: int
    ) -> tuple[Int[np.ndarray, "rows length"], Float[np.ndarray, " rows"]]:
        """Rows of a step and their weights; the weights are divided by the usual batch size."""
        rows = stream.batch(step)
        weights = np.ones(len(rows), np.float32)
        masked = [row for at, row in self.deleted if at == step] if self.deleted else []
        weights[masked] = 0.0
        extra = self.inserted.get(step)
        if extra is not None:
            rows = np.concatenate([rows, extra])
            weights = np.concatenate([weights, np.ones(len(extra), np.float32)])
        return rows, weights / stream.config.batch_size


BASELINE = Arm("baseline")


def delete(name: str, samples: Iterable[Sample]) -> Arm:
    """An arm without the given samples."""
    masked = frozenset(samples)
    return Arm(name, deleted=masked, changed=tuple(sorted(masked)))


def insert(name: str, rows: Int[np.ndarray, "rows length"], steps: Iterable[int]) -> Arm:
    """An arm that trains on further rows, dealt evenly over the given steps."""
    steps = list(steps)
    require(len(steps) > 0, "Rows can be inserted only at one step or more.")
    parts = np.array_split(rows, len(steps))
    return Arm(name, inserted={s: p for s, p in zip(steps, parts, strict=True) if len(p)})


def augment(name: str, stream: MixedStream, samples: list[Sample], steps: Iterable[int]) -> Arm:
    """An arm that trains on copies of the given samples, dealt evenly over the given steps."""
    chosen = sorted(samples)
    return dataclasses.replace(
        insert(name, sample_rows(stream, chosen), steps), changed=tuple(chosen)
    )


def sample_rows(stream: MixedStream, samples: Iterable[Sample]) -> Int[np.ndarray, "rows length"]:
    """The rows of samples, in the order given."""
    return np.stack([stream.batch(step)[row] for step, row in samples])


def replace(arm: Arm, name: str, rows: Int[np.ndarray, "rows length"]) -> Arm:
    """The deleting arm, with other rows in the places of those that it masks."""
    places = sorted(arm.deleted)
    require(
        len(rows) == len(places),
        f"{len(rows)} rows cannot replace {len(places)} samples; give as many.",
    )
    by_step: dict[int, list[np.ndarray]] = {}
    for (step, _), row in zip(places, rows, strict=True):
        by_step.setdefault(step, []).append(row)
    inserted = {step: np.stack(found) for step, found in by_step.items()}
    return dataclasses.replace(arm, name=name, inserted=inserted)


def random_samples(steps: range, batch_size: int, count: int, seed: int) -> list[Sample]:
    """Samples of a window drawn at random, without replacement.

    Raises:
        ConfigError: the window has fewer.
    """
    total = len(steps) * batch_size
    require(count <= total, f"The window has {total} samples, fewer than the {count} wanted.")
    drawn = np.random.default_rng(seed).choice(total, count, replace=False)
    return [(steps[int(i) // batch_size], int(i) % batch_size) for i in np.sort(drawn)]


def top_samples(scores: Float[np.ndarray, "steps rows"], steps: range, count: int) -> list[Sample]:
    """The samples with the largest scores, ties by order; in training order.

    Samples without a finite score are never chosen.
    """
    flat = np.where(np.isfinite(scores), scores, -np.inf).ravel()
    order = np.argsort(-flat, kind="stable")[:count]
    kept = np.sort(order[np.isfinite(flat[order])])
    rows = scores.shape[1]
    return [(steps[int(i) // rows], int(i) % rows) for i in kept]
