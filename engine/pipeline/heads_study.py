"""An emergence study: seeds trained, traced and changed; its tables as a run of kind `heads`."""

import dataclasses
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from engine.corpus.documents import Progress, no_progress
from engine.corpus.shards import TokenShards
from engine.corpus.tokenizer import load_tokenizer, save_tokenizer
from engine.mda.units import UNITS
from engine.pipeline.heads_analysis import analyse_heads
from engine.pipeline.heads_arms import make_arm
from engine.pipeline.heads_seed import SeedStudy
from engine.pipeline.heads_settings import HeadStudy
from engine.pipeline.heads_tables import finished_arms, study_tables
from engine.pipeline.heads_workspace import Workspace, open_workspace
from engine.pipeline.training import corpus_facts, model_facts
from engine.store import Run, RunWriter, atomic_folder, open_run, resolve_run


STAGE = "study"
"""Stage of a run that holds what a study found."""


def run_study(
    study: HeadStudy,
    run: str | Path,
    *,
    source: HeadStudy | None = None,
    device: str = "auto",
    progress: Progress = no_progress,
) -> Run:
    """Do what is missing of a study, seed by seed; the run is written anew as each seed ends.

    A study that was killed goes on with the first missing part. Seeds or arms that are added to
    the settings are trained beside those that are there.

    Args:
        study: settings.
        run: name or folder of the run of kind `heads`.
        source: settings of a study whose samples give the motifs of synthetic rows; its parts
            are made first where they are missing. The study itself if None.
        device: device name, or auto.
        progress: wraps steps.

    Raises:
        CorpusError: the corpus is not built.
        CacheStale: the run was made by a study of other settings.
    """
    path = resolve_run(run)
    workspace = open_workspace(study, device, progress, source)
    done = [workspace.seed(number) for number in range(study.seeds) if _finished(workspace, number)]
    for number in range(study.seeds):
        seed = workspace.seed(number)
        run_seed(seed)
        done = [*(s for s in done if s.seed != number), seed]
        write_study(workspace, sorted(done, key=lambda s: s.seed), path)
    done = open_run(path)
    return analyse_heads(path, progress) if done.has("head_choices") else done


def run_seed(seed: SeedStudy) -> None:
    """Do what is missing of a seed: baseline, influence, arms."""
    seed.baseline()
    if not seed.emerged:
        return
    for name, unit in seed.study.arms_of(seed.seed):
        for at in (seed, seed.source) if unit else ():
            if at is not None:
                at.baseline()
                at.influence(UNITS[unit])
        if not seed.arm_path(name, unit).is_file():
            seed.train_arm(make_arm(seed, name, unit), unit)


def _finished(workspace: Workspace, number: int) -> bool:
    """Whether every part of a seed is there."""
    seed = workspace.seed(number)
    if not (seed.folder / "baseline.json").is_file():
        return False
    planned = workspace.study.arms_of(number) if seed.emerged else []
    return all(seed.arm_path(*arm).is_file() for arm in planned)


def write_study(workspace: Workspace, seeds: list[SeedStudy], path: Path) -> Run:
    """Write the tables and models of the seeds that are done."""
    writer = _writer(workspace, path)
    extent = {f"seed {s.seed}": [[a["arm"], a["unit"]] for a in finished_arms(s)] for s in seeds}
    if writer.begin_stage(STAGE, {**workspace.identity, "extent": extent}):
        return open_run(path)
    emerged = [seed for seed in seeds if seed.emerged]
    if emerged:
        _write_models(workspace, emerged, path)
        writer.update("model", model_facts(emerged[0].model_at(emerged[0].last_kept)))
    for name, frame in study_tables(seeds).items():
        writer.write_table(name, frame)
    writer.write_table("documents", document_rows(workspace.shards))
    facts = {
        "study": dataclasses.asdict(workspace.study),
        "source": None if workspace.source is None else dataclasses.asdict(workspace.source.study),
        "mixtures": {str(s.seed): dataclasses.asdict(s.stream.config) for s in seeds},
        "seeds": len(seeds),
        "emerged": len(emerged),
        "windows": {str(s.seed): [s.window.start, s.window.stop] for s in emerged},
        "frequent": {str(s.seed): s.stream.frequent.tolist() for s in emerged},
    }
    writer.finish_stage(STAGE, facts)
    return open_run(path)


def document_rows(shards: TokenShards) -> pd.DataFrame:
    """The corpus's documents; samples name them by their row."""
    columns = ["document", "doc_id", "domain", "source", "split", "n_bytes"]
    return shards.corpus.documents[columns]


def _writer(workspace: Workspace, path: Path) -> RunWriter:
    known = workspace.identity
    identity: dict[str, Any] = {
        "config": {key: workspace.identity[key] for key in ("study", "source") if key in known},
        "corpus": corpus_facts(workspace.shards.corpus),
        "tokenizer": {
            "fingerprint": workspace.shards.manifest["tokenizer"],
            "vocab_size": workspace.shards.vocab_size,
        },
    }
    return RunWriter.create(path, name=path.name, kind="heads", identity=identity)


def _write_models(workspace: Workspace, seeds: list[SeedStudy], path: Path) -> None:
    """Decoders at the end of the window, in bfloat16: the first seed's beside the tokenizer.

    Those of the other seeds lie in `model/seed-N`.
    """
    with atomic_folder(path / "model") as folder:
        save_tokenizer(load_tokenizer(workspace.tokenizer), folder, workspace.study.context)
        for seed in seeds:
            own = folder if seed is seeds[0] else folder / f"seed-{seed.seed}"
            seed.model_at(seed.last_kept).to(torch.bfloat16).save_pretrained(own)
