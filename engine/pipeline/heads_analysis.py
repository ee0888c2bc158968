"""The stage that analyses a run of kind `heads`: effects of arms, tails, overlaps, structures."""

import dataclasses
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from engine.corpus.documents import Progress, no_progress
from engine.errors import CacheMissing
from engine.mda import tails
from engine.mda.curves import StudyFrames
from engine.mda.effects import effect_rows, seed_effects
from engine.mda.enrichment import Scored, tag_rows
from engine.mda.overlaps import head_overlaps
from engine.mda.units import UNITS
from engine.store import Run, RunWriter, open_run, read_table


logger = logging.getLogger(__name__)

STAGE = "heads_analysis"
"""Name of the stage."""
_CURVES = ("head_scores", "head_losses", "head_arms", "head_choices")
"""Tables that effects are computed from."""
_SCORED = ("head_influence", "head_choices", "head_samples")
"""Tables that the rest is computed from."""
_MADE = {
    "head_effects": _CURVES,
    "head_overlaps": _SCORED,
    "head_tags": _SCORED,
    "head_tails": _SCORED,
}
"""Tables of the stage, each with what it needs."""


def analyse_heads(run_name: str | Path, progress: Progress = no_progress) -> Run:
    """Write what can be computed from the tables that a run of heads holds.

    A run with arms has effects, a run with influence tails, overlaps and tags. Tables that an
    interrupted call wrote are kept.

    Args:
        run_name: name or folder of the run.
        progress: wraps heads.

    Raises:
        CacheMissing: the run holds neither arms nor influence.
    """
    run = open_run(run_name)
    made = [name for name, needed in _MADE.items() if all(map(run.has, needed))]
    if not made:
        raise CacheMissing(
            f"Run {run.name} holds neither arms nor influence of attention heads, so there is "
            "nothing to analyse; `headwater heads study` and `headwater heads influence` make them."
        )
    writer = RunWriter.resume(run.path)
    identity = {"inputs": analysis_inputs(run), "tails": _tail_settings()}
    if writer.begin_stage(STAGE, identity):
        return run
    for name in made:
        if writer.manifest["tables"].get(name, {}).get("stage") != STAGE:
            writer.write_table(name, _MAKERS[name](run, progress))
    writer.finish_stage(STAGE, identity)
    logger.info("%s: wrote %s", run.name, ", ".join(made))
    return open_run(run.path)


def analysis_inputs(run: Run) -> dict[str, list[str]]:
    """Hashes of the files of every table that an analysis reads."""
    names = sorted({*_CURVES, *_SCORED})
    return {n: [f["sha256"] for f in run.tables[n]["files"]] for n in names if run.has(n)}


def check_analysed(run: Run) -> None:
    """Refuse an analysis of other tables than the run holds.

    Raises:
        CacheMissing: the run was not analysed, or has been studied further since.
    """
    known = run.manifest["stages"].get(STAGE, {})
    if "finished" not in known or known["inputs"] != analysis_inputs(run):
        raise CacheMissing(
            f"Run {run.name} was not analysed since its study went on; run "
            f"`headwater heads analyse --run {run.name}`."
        )


def _tail_settings() -> list[float]:
    return [tails.TOP_SHARE, tails.CANDIDATES, tails.SHORTEST_TAIL, tails.RESAMPLES]


def study_frames(run: Run) -> StudyFrames:
    """The tables of a study that effects are computed from.

    Raises:
        CacheMissing: the run holds no arms.
    """
    scores, losses, arms, choices = (read_table(run, name) for name in _CURVES)
    metrics = {name: unit.metric for name, unit in UNITS.items()}
    known = choices["unit"].isin(list(metrics))
    return StudyFrames(scores, losses, arms, choices.loc[known], metrics)


@dataclasses.dataclass(frozen=True)
class Asked:
    """One kind of head in one seed: its influence on every head, and the head that was chosen."""

    seed: int
    unit: str
    heads: tuple[tuple[int, int], ...]
    place: int
    """Column of the chosen head."""
    samples: pd.DataFrame
    """Step and row of each sample."""
    influence: Float[np.ndarray, "samples heads"]


def asked_of(run: Run, **where: Any) -> Iterator[Asked]:
    """Every kind of head of every seed, or those with given values of `seed` and `unit`.

    Raises:
        CacheMissing: the run holds no influence.
    """
    choices = read_table(run, "head_choices", where=where)
    for choice in choices.to_dict("records"):
        key = {"seed": choice["seed"], "unit": choice["unit"]}
        rows = read_table(run, "head_influence", where=key)
        heads = [tuple(int(part) for part in name.split(".")) for name in choice["heads"]]
        yield Asked(
            seed=int(choice["seed"]),
            unit=str(choice["unit"]),
            heads=tuple((layer, head) for layer, head in heads),
            place=heads.index((choice["layer"], choice["head"])),
            samples=rows[["step", "row"]],
            influence=np.stack(rows["influence"].to_list()).astype(np.float64),
        )


def scored_of(run: Run, unit: str) -> list[Scored]:
    """Each seed's samples with their influence on its chosen head of a kind."""
    found = []
    for asked in asked_of(run, unit=unit):
        columns = ["step", "row", "tags", "domain"]
        known = read_table(run, "head_samples", columns=columns, where={"seed": asked.seed})
        samples = asked.samples.merge(known, on=["step", "row"], validate="one_to_one")
        influence = asked.influence[:, asked.place]
        found.append(Scored(influence, samples["tags"].tolist(), samples["domain"].tolist()))
    return found


def _effects(run: Run, _progress: Progress) -> pd.DataFrame:
    return effect_rows(seed_effects(study_frames(run)))


def _tails(run: Run, progress: Progress) -> pd.DataFrame:
    """Both sides of every head; a side without any sample has no row."""
    rows = []
    for asked in asked_of(run):
        label = f"Seed {asked.seed}: tails of {asked.unit}"
        for place, (layer, head) in enumerate(progress(asked.heads, label=label)):
            key = {"seed": asked.seed, "unit": asked.unit, "layer": layer, "head": head}
            for sign in tails.SIGNS:
                side = tails.side_of(asked.influence[:, place], sign)
                if len(side):
                    rows.append({**key, "sign": sign, **dataclasses.asdict(tails.tail_of(side))})
    return pd.DataFrame(rows)


def _overlaps(run: Run, _progress: Progress) -> pd.DataFrame:
    """Every ordered pair of heads, a head with itself among them."""
    parts = []
    for asked in asked_of(run):
        found = head_overlaps(asked.influence)
        pairs = [(*one, *other) for one in asked.heads for other in asked.heads]
        frame = pd.DataFrame(pairs, columns=["layer", "head", "other_layer", "other_head"])
        named = {"seed": asked.seed, "unit": asked.unit}
        shares = {"overlap": found.overlap.ravel(), "spearman": found.spearman.ravel()}
        parts.append(frame.assign(**named, **shares))
    return pd.concat(parts, ignore_index=True)


def _tags(run: Run, _progress: Progress) -> pd.DataFrame:
    units = sorted(set(read_table(run, "head_choices", columns=["unit"])["unit"]))
    return pd.DataFrame([row for unit in units for row in tag_rows(unit, scored_of(run, unit))])


_MAKERS = {
    "head_effects": _effects,
    "head_overlaps": _overlaps,
    "head_tags": _tags,
    "head_tails": _tails,
}
