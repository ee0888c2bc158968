"""Motifs of a head's top samples, and the synthetic rows that arms of a study are made of."""

import json
import logging
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Int

from engine.corpus.documents import Progress, no_progress
from engine.endpoint import Endpoint
from engine.errors import CacheMissing
from engine.mda.motif_extraction import MOTIFS_VERSION, extract
from engine.mda.motif_proposals import refine
from engine.mda.motifs import Motif, read_motif
from engine.mda.synthetic import Tokenise, control as control_rows, generate
from engine.pipeline.heads_top_samples import TABLES, SampleReader, choices_of
from engine.provenance import fingerprint
from engine.store import Run, RunWriter, open_run, read_table


logger = logging.getLogger(__name__)

STAGE = "motifs"
"""Name of the stage."""
TABLE = "head_motifs"
"""Its table."""


def study_motifs(
    rows: Sequence[Int[np.ndarray, " _"]] | Int[np.ndarray, "samples length"],
    texts: Sequence[str] | None = None,
) -> list[Motif]:
    """The motifs of top samples, the most frequent first.

    Args:
        rows: token ids.
        texts: the text of each row; without them repeats alone are found.

    Raises:
        CacheMissing: the samples show none.
    """
    motifs = extract(list(rows), texts)
    if not motifs:
        raise CacheMissing(
            f"The {len(rows)} top samples show no motif, so no synthetic rows can be made of them; "
            "take more samples, or samples of another head."
        )
    return motifs


def synthetic_rows(
    rows: Int[np.ndarray, "samples length"],
    n: int,
    *,
    seed: int,
    control: bool = False,
    texts: Sequence[str] | None = None,
    tokenise: Tokenise | None = None,
) -> Int[np.ndarray, "n length"]:
    """Rows generated from the motifs of top samples, or the same tokens without the motifs.

    The rows of a control are those of the same seed with each row's tokens shuffled within it.

    Args:
        rows: token ids of the top samples.
        n: rows to make.
        seed: seed of every draw.
        control: whether to leave the motifs out.
        texts: text of each sample, for motifs other than repeats.
        tokenise: the tokeniser, needed where there are texts.

    Raises:
        CacheMissing: the samples show no motif.
    """
    make = control_rows if control else generate
    return make(study_motifs(rows, texts), n, rows.shape[1] - 1, seed, tokenise)


def write_motifs(
    name: str,
    *,
    unit: str | None = None,
    endpoint: Endpoint | None = None,
    progress: Progress = no_progress,
) -> Run:
    """Write the motifs of every kind of head that a run has influence of; the stage `motifs`.

    Args:
        name: name or folder of a run of kind `heads`.
        unit: a kind of head that the run must have influence of; motifs of all are written.
        endpoint: a model that refines the motifs, and is sent some samples; none unless given.
        progress: wraps kinds of heads.

    Raises:
        CacheMissing: the run holds no influence on heads, or none on this kind.
        CorpusError: the run's corpus is not there, or is in another state.
    """
    run = open_run(name)
    hashes = {table: _hashes(run, table) for table in TABLES}
    if unit is not None:
        choices_of(run, unit)
    asked = {"url": endpoint.url, "model": endpoint.model} if endpoint else None
    writer = RunWriter.resume(run.path)
    identity = {"version": MOTIFS_VERSION, "inputs": hashes, "endpoint": asked}
    if _is_finished(writer, identity):
        return run
    started = time.perf_counter()
    reader = SampleReader(run, progress)
    tops = {kind: reader.top(kind) for kind in reader.units}
    writer.begin_stage(STAGE, identity)  # now that every sample could be read
    found: dict[str, list[Motif]] = {}
    for kind in progress(list(tops), label="Motifs", total=len(tops)):
        motifs = extract(list(tops[kind].rows), list(tops[kind].texts))
        found[kind] = refine(endpoint, motifs, tops[kind].texts) if endpoint else motifs
    writer.write_table(TABLE, motif_rows(found))
    counts = {kind: len(top.rows) for kind, top in tops.items()}
    seconds = time.perf_counter() - started
    writer.finish_stage(STAGE, {"seconds": seconds, "samples": counts, "endpoint": asked})
    logger.info("%s: motifs of %s", run.name, ", ".join(found))
    return open_run(run.path)


def _is_finished(writer: RunWriter, identity: dict[str, Any]) -> bool:
    """Whether the stage was done with this identity; asking begins nothing."""
    entry = writer.manifest["stages"].get(STAGE, {})
    return "finished" in entry and entry["identity"] == fingerprint(identity)


def _hashes(run: Run, table: str) -> list[str]:
    """Hashes of a table's files, which must be there."""
    run.files(table)
    return [entry["sha256"] for entry in run.tables[table]["files"]]


def motif_rows(motifs: dict[str, list[Motif]]) -> pd.DataFrame:
    """Rows of `head_motifs` from the motifs of each kind of head."""
    rows = [
        {
            "unit": unit,
            "motif": motif.name,
            "n_samples": motif.n_samples,
            "share": motif.share,
            "parameters": motif.parameters(),
        }
        for unit, own in motifs.items()
        for motif in own
    ]
    frame = pd.DataFrame(rows, columns=["unit", "motif", "n_samples", "share", "parameters"])
    return frame.astype({"n_samples": np.int64, "share": np.float64})


def read_motifs(run: Run, unit: str | None = None) -> dict[str, list[Motif]]:
    """The motifs that a run holds, by kind of head, the most frequent first.

    Args:
        run: a run with the table `head_motifs`.
        unit: one kind of head; all if None.

    Raises:
        CacheMissing: the run holds no motifs, or none of this kind of head.
        CacheStale: they were written by another version.
    """
    frame = read_table(run, TABLE, order_by="share", descending=True)
    found: dict[str, list[Motif]] = {}
    for row in frame.to_dict(orient="records"):
        motif = read_motif(row["motif"], row["n_samples"], row["share"], row["parameters"])
        found.setdefault(row["unit"], []).append(motif)
    if unit is None:
        return found
    if unit not in found:
        known = ", ".join(found) or "none"
        raise CacheMissing(
            f"Run {run.name} has no motifs of {unit} heads; it has those of: {known}."
        )
    return {unit: found[unit]}


def motifs_json(motifs: dict[str, list[Motif]]) -> list[dict[str, Any]]:
    """The motifs as plain values, for scripts."""
    return [
        {
            "unit": unit,
            "motif": motif.name,
            "n_samples": motif.n_samples,
            "share": motif.share,
            **json.loads(motif.parameters()),
        }
        for unit, own in motifs.items()
        for motif in own
    ]
