"""Tables of an emergence study, read out of the finished parts of its seeds."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from engine.mda.patterns import PATTERNS
from engine.mda.structure import tags
from engine.pipeline.heads_seed import SeedStudy
from engine.store import read_json


_NO_COUNTS = {"n_deleted": 0, "n_inserted": 0, "n_planted": 0}


def finished_arms(seed: SeedStudy) -> list[dict[str, Any]]:
    """The arms of a seed that are trained, the baseline first; a curve each."""
    planned = seed.study.arms_of(seed.seed) if seed.emerged else []
    paths = [seed.arm_path(*named) for named in planned]
    return [baseline_arm(seed), *(read_json(path) for path in paths if path.is_file())]


def baseline_arm(seed: SeedStudy) -> dict[str, Any]:
    """The baseline as an arm that changes nothing."""
    return {"arm": "baseline", "unit": "", **_NO_COUNTS, "curve": seed.facts["curve"]}


def study_tables(seeds: Sequence[SeedStudy]) -> dict[str, pd.DataFrame]:
    """Frames by table name; seeds in which no head formed have a baseline alone."""
    parts: dict[str, list[pd.DataFrame]] = {}
    for seed in seeds:
        found = arm_tables(seed, finished_arms(seed))
        if seed.emerged:
            found |= _influence_tables(seed)
        for name, frame in found.items():
            parts.setdefault(name, []).append(frame)
    return {name: _stack(frames) for name, frames in parts.items()}


def arm_tables(seed: SeedStudy, arms: list[dict[str, Any]]) -> dict[str, pd.DataFrame]:
    """Scores, losses and contents of arms; without an onset there is a baseline and no window."""
    found = {
        "head_scores": _stack([_scores(seed, arm) for arm in arms]),
        "head_losses": _stack([_losses(seed, arm) for arm in arms]),
    }
    if seed.emerged:
        found["head_arms"] = pd.DataFrame([_arm(seed, arm) for arm in arms])
    return found


def choice_rows(seed: SeedStudy, units: Sequence[str]) -> pd.DataFrame:
    """Rows of `head_choices` for the kinds of heads that are scored."""
    planted = [seed.stream.is_planted(int(s), int(r)) for s, r in zip(*_places(seed), strict=True)]
    return pd.DataFrame([_choice(seed, unit, np.array(planted)) for unit in units])


def _stack(frames: list[pd.DataFrame]) -> pd.DataFrame:
    return pd.concat(frames, ignore_index=True)


def _named(seed: SeedStudy, arm: dict[str, Any]) -> dict[str, Any]:
    return {"seed": seed.seed, "arm": arm["arm"], "unit": arm["unit"]}


def _scores(seed: SeedStudy, arm: dict[str, Any]) -> pd.DataFrame:
    """Rows of `head_scores`: every head at every step measured."""
    steps = [row["step"] for row in arm["curve"]]
    scores = {name: np.array([row["heads"][name] for row in arm["curve"]]) for name in PATTERNS}
    _, layers, heads = next(iter(scores.values())).shape
    step, layer, head = np.meshgrid(steps, range(layers), range(heads), indexing="ij")
    columns = {"step": step.ravel(), "layer": layer.ravel(), "head": head.ravel()}
    flat = {name: values.ravel() for name, values in scores.items()}
    return pd.DataFrame({**_named(seed, arm), **columns, **flat})


def _losses(seed: SeedStudy, arm: dict[str, Any]) -> pd.DataFrame:
    """Rows of `head_losses`."""
    tokens = seed.study.batch_size * seed.study.context
    rows = [
        {
            **_named(seed, arm),
            "step": row["step"],
            "checkpoint": "",
            "tokens_seen": row["step"] * tokens,
            "loss": row["loss"],
            "copy_loss": row["copy_loss"],
            "icl": row["icl"],
        }
        for row in arm["curve"]
    ]
    return pd.DataFrame(rows)


def _arm(seed: SeedStudy, arm: dict[str, Any]) -> dict[str, Any]:
    """A row of `head_arms`."""
    counts = {name: arm[name] for name in _NO_COUNTS}
    window = {"branch_step": seed.branch, "end_step": seed.window.stop}
    return {**_named(seed, arm), **window, **counts}


def _influence_tables(seed: SeedStudy) -> dict[str, pd.DataFrame]:
    """Samples, influence and choices of a seed, as far as it is scored."""
    units = [u for u in seed.study.units if (seed.folder / f"influence-{u}.json").is_file()]
    if not units:
        return {}
    return {
        "head_samples": _samples(seed, units[0]),
        "head_influence": _stack([_influence(seed, unit) for unit in units]),
        "head_choices": choice_rows(seed, units),
    }


def _places(seed: SeedStudy) -> tuple[np.ndarray, np.ndarray]:
    """Step and row of every sample of the window, in training order."""
    step, row = np.meshgrid(seed.window, range(seed.study.batch_size), indexing="ij")
    return step.ravel(), row.ravel()


def _samples(seed: SeedStudy, unit: str) -> pd.DataFrame:
    """Rows of `head_samples`."""
    steps, rows = _places(seed)
    losses = np.load(seed.folder / f"losses-{unit}.npy", allow_pickle=False).ravel()
    sources = [seed.stream.source(int(s), int(r)) for s, r in zip(steps, rows, strict=True)]
    batches = (seed.stream.batch(step) for step in seed.window)
    texts = [text for batch in batches for text in seed.tokenizer.decode_batch(batch.tolist())]
    return pd.DataFrame(
        {
            "seed": seed.seed,
            "step": steps,
            "row": rows,
            "domain": [source.domain for source in sources],
            "document": [source.document for source in sources],
            "position": [_in_document(source.position) for source in sources],
            "segment": [source.segment for source in sources],
            "loss": losses,
            "tags": [" ".join(tags(text)) for text in texts],
        }
    )


def _in_document(position: int) -> int:
    """A place in a document's run of tokens, the separator in front not counted; -1 stays."""
    return max(position - 1, min(position, 0))


def _influence(seed: SeedStudy, unit: str) -> pd.DataFrame:
    """Rows of `head_influence`."""
    scores = np.load(seed.folder / f"scores-{unit}.npy", allow_pickle=False)
    steps, rows = _places(seed)
    flat = list(scores.reshape(len(steps), -1))
    return pd.DataFrame(
        {"seed": seed.seed, "unit": unit, "step": steps, "row": rows, "influence": flat}
    )


def _choice(seed: SeedStudy, unit: str, planted: np.ndarray) -> dict[str, Any]:
    """A row of `head_choices`."""
    facts = read_json(seed.folder / f"influence-{unit}.json")
    selected = seed.selection(unit)
    return {
        "seed": seed.seed,
        "unit": unit,
        "layer": facts["layer"],
        "head": facts["head"],
        "checkpoint_step": facts["checkpoint"],
        "heads": [f"{layer}.{head}" for layer, head in facts["heads"]],
        "n_selected": len(selected),
        "n_samples": len(planted),
        "n_planted_selected": sum(seed.stream.is_planted(*sample) for sample in selected),
        "n_planted": int(planted.sum()),
        "n_skipped": facts["n_skipped"],
        "seconds": facts["seconds"],
    }
