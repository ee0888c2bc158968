"""The arms of a seed, by name: what each deletes, copies, replaces or inserts."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Int

from engine.mda.arms import (
    Arm,
    Sample,
    augment,
    delete,
    insert,
    random_samples,
    replace,
    sample_rows,
)
from engine.pipeline.heads_motifs import synthetic_rows
from engine.pipeline.heads_seed import LATER, SeedStudy


_DRAWS = {"delete_random": 1, "augment_random": 2, "replace_random": 3}
"""Number of an arm's draw; each draws samples of its own."""


def make_arm(seed: SeedStudy, name: str, unit: str) -> Arm:
    """An arm of a seed; `unit` is the kind of head it is about, empty in random arms.

    delete_*: samples of the window are masked. augment_*: copies are dealt over its first part.
    replace_*: the top samples are masked and rows of the later interval, its own top ones or
    random ones, train in their places. synthetic: rows generated from the motifs of the top
    samples are dealt as copies are; synthetic_control: the same tokens without the motifs.
    """
    return _MAKERS[name](seed, name, unit)


def _delete_random(seed: SeedStudy, name: str, _unit: str) -> Arm:
    return delete(name, _random(seed, name, seed.window))


def _augment_random(seed: SeedStudy, name: str, _unit: str) -> Arm:
    return augment(name, seed.stream, _random(seed, name, seed.window), _dealt(seed))


def _delete_top(seed: SeedStudy, name: str, unit: str) -> Arm:
    return delete(name, seed.selection(unit))


def _augment_top(seed: SeedStudy, name: str, unit: str) -> Arm:
    return augment(name, seed.stream, seed.selection(unit), _dealt(seed))


def _replace_top(seed: SeedStudy, name: str, unit: str) -> Arm:
    top = delete(name, seed.selection(unit))
    return replace(top, name, sample_rows(seed.stream, seed.selection(unit, LATER)))


def _replace_random(seed: SeedStudy, name: str, unit: str) -> Arm:
    top = delete(name, seed.selection(unit))
    later = range(seed.window.stop, seed.window.stop + len(seed.window))
    return replace(top, name, sample_rows(seed.stream, _random(seed, name, later)))


def _synthetic(seed: SeedStudy, name: str, unit: str) -> Arm:
    return insert(name, _generated(seed, unit, control=False), _dealt(seed))


def _synthetic_control(seed: SeedStudy, name: str, unit: str) -> Arm:
    return insert(name, _generated(seed, unit, control=True), _dealt(seed))


_MAKERS: dict[str, Callable[[SeedStudy, str, str], Arm]] = {
    "delete_random": _delete_random,
    "augment_random": _augment_random,
    "delete_top": _delete_top,
    "augment_top": _augment_top,
    "replace_top": _replace_top,
    "replace_random": _replace_random,
    "synthetic": _synthetic,
    "synthetic_control": _synthetic_control,
}


def _random(seed: SeedStudy, name: str, steps: range) -> list[Sample]:
    """Random samples of some steps, as many as are selected, of the arm's own draw."""
    study, draw = seed.study, 1_000_003 * seed.seed + _DRAWS[name]
    return random_samples(steps, study.batch_size, study.n_selected, draw)


def _dealt(seed: SeedStudy) -> range:
    return seed.study.insertion_steps(seed.branch)


def _generated(seed: SeedStudy, unit: str, *, control: bool) -> Int[np.ndarray, "rows length"]:
    """Rows generated from the motifs of a kind's top samples, or without the motifs."""
    origin = seed.source or seed
    top = sample_rows(origin.stream, origin.selection(unit))
    return synthetic_rows(
        top,
        seed.study.n_selected,
        seed=seed.seed,
        control=control,
        texts=seed.tokenizer.decode_batch(top.tolist()),
        tokenise=lambda text: seed.tokenizer.encode(text).ids,
    )
