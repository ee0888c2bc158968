"""Make a run small enough to ship: weights in bfloat16, a bounded pool of activations."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import torch

from engine.errors import CacheMissing, ConfigError, UnsupportedModel
from engine.lm.loading import load_weights
from engine.pipeline.attribution_finish import SEQUENCES, copy_pool
from engine.prism.checkpoints import load_prism
from engine.schema import TABLES
from engine.store import Run, RunWriter, atomic_folder, open_run, read_parquet
from engine.store.pools import POOL, find_pool, has_pool


_IDENTITY = ("config", "corpus", "tokenizer", "base")
"""Top-level values of a manifest that say what a run is."""

_SKIPPED = frozenset({"model.safetensors", "config.json", "generation_config.json"})


def round_model(run_name: str | Path, target: Path) -> Run:
    """Copy a trained run with its weights rounded to bfloat16; the tables of its training come too.

    Everything measured or indexed afterwards is then measured on the very weights that ship.

    Args:
        run_name: A finished prototype run, or a dense twin.
        target: Folder of the new run.

    Raises:
        UnsupportedModel: The run is a retrofit, whose bank belongs to weights of another origin.
    """
    source = open_run(run_name)
    if source.kind not in ("prism", "dense"):
        raise UnsupportedModel(
            f"Run {source.name} is a {source.kind}; only a model trained here is rounded."
        )
    _require_model(source)
    writer = _start(source, target)
    if writer.begin_stage("train", {"rounded": source.stamp}):
        return open_run(target)
    if source.kind == "dense":
        model, tokenizer = load_weights({"path": str(source.model_path)}, dtype=torch.bfloat16)
    else:
        model, tokenizer = load_prism(source.model_path, dtype=torch.bfloat16)
    with atomic_folder(target / "model") as folder:
        model.save_pretrained(folder)
        for file in Path(tokenizer).iterdir():
            if file.is_file() and file.name not in _SKIPPED:
                shutil.copy2(file, folder / file.name)
    for table, entry in source.tables.items():
        if entry.get("stage") == "train":
            _copy_table(source, writer, table, shards=None)
    writer.update("model", {**source.manifest["model"], "weights": "bfloat16"})
    writer.finish_stage("train", _facts(source, "train"))
    return open_run(target)


def publish(
    run_name: str | Path, target: Path, *, shards: int | None = None, pool: int | None = None
) -> Run:
    """Copy a run to where it ships, with the first `shards` shards of each sharded table.

    None keeps every shard. Statistics, examples and labels stay those of the whole index; the
    manifest says how many shards there were. The attribution pool, where there is one, comes with
    `pool` of its sequences, or whole.

    Raises:
        CacheMissing: The run has no model, or no pool where `pool` asks for one.
    """
    source = open_run(run_name)
    _require_model(source)
    writer = _start(source, target)
    with atomic_folder(target / "model") as folder:
        shutil.copytree(source.model_path, folder, dirs_exist_ok=True)
    for stage in source.manifest["stages"]:
        if stage == POOL:
            continue
        writer.begin_stage(stage, {"published": source.stamp, "shards": shards})
        for table, entry in source.tables.items():
            if entry.get("stage") == stage:
                _copy_table(source, writer, table, shards=shards)
        writer.finish_stage(stage, _facts(source, stage))
    writer.update("model", source.manifest["model"])
    if pool is not None or has_pool(source):
        copy_pool(find_pool(source), writer, sequences=pool)
    shipped = [name for name in source.tables if TABLES[name].sharded and name != SEQUENCES]
    indexed = {name: len(source.files(name)) for name in shipped}
    writer.update("shipped_shards", {"kept": shards, "indexed": indexed})
    writer.finish_stage("publish", {"from": source.stamp})
    return open_run(target)


def _require_model(source: Run) -> None:
    if not (source.model_path / "config.json").is_file():
        raise CacheMissing(f"Run {source.name} has no model to ship; train it first.")


def _start(source: Run, target: Path) -> RunWriter:
    if target.resolve() == source.path.resolve():
        raise ConfigError(f"{target} is the run itself; name another folder for its copy.")
    identity = {key: source.manifest[key] for key in _IDENTITY if key in source.manifest}
    return RunWriter.create(target, name=target.name, kind=source.kind, identity=identity)


def _facts(source: Run, stage: str) -> dict[str, Any]:
    """What a finished stage recorded, without what the store sets itself."""
    entry = source.manifest["stages"][stage]
    return {k: v for k, v in entry.items() if k not in {"identity", "started", "finished"}}


def _copy_table(source: Run, writer: RunWriter, table: str, *, shards: int | None) -> None:
    files = source.files(table)
    if not TABLES[table].sharded:
        frame = read_parquet(files[0], TABLES[table])
        if table == "head_influence":
            rounded: Any = [_rounded(np.asarray(values)) for values in frame["influence"]]
            frame = frame.assign(influence=rounded)
        writer.write_table(table, frame)
        return
    for index, file in enumerate(files[:shards]):
        writer.write_shard(table, index, read_parquet(file, TABLES[table]))


def _rounded(values: np.ndarray) -> np.ndarray:
    """Float32 numbers with 16 significant bits, off by 1.5e-5 at most; they pack better."""
    bits = values.astype(np.float32).view(np.uint32)
    return ((bits + np.uint32(128)) >> 8 << 8).view(np.float32)
