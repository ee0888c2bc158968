"""Make a run small enough to ship: weights in bfloat16, a bounded pool of activations."""

import shutil
from pathlib import Path
from typing import Any

import torch

from engine.errors import CacheMissing, ConfigError, UnsupportedModel
from engine.prism.checkpoints import load_prism
from engine.schema import TABLES
from engine.store import Run, RunWriter, atomic_folder, open_run, read_parquet


_IDENTITY = ("config", "corpus", "tokenizer", "base")
"""Top-level values of a manifest that say what a run is."""

_SKIPPED = frozenset({"model.safetensors", "config.json", "generation_config.json"})


def round_model(run_name: str | Path, target: Path) -> Run:
    """Copy a trained run with its weights rounded to bfloat16; the tables of its training come too.

    Everything measured or indexed afterwards is then measured on the very weights that ship.

    Args:
        run_name: A finished prototype run.
        target: Folder of the new run.
    """
    source = open_run(run_name)
    if source.kind != "prism":
        raise UnsupportedModel(
            f"Run {source.name} is {source.kind}; only a trained prototype model is rounded."
        )
    _require_model(source)
    writer = _start(source, target)
    if writer.begin_stage("train", {"rounded": source.stamp}):
        return open_run(target)
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


def publish(run_name: str | Path, target: Path, *, shards: int | None = None) -> Run:
    """Copy a run to where it ships, with the first `shards` shards of each sharded table.

    None keeps every shard. Statistics, examples and labels stay those of the whole index; the
    manifest says how many shards there were.
    """
    source = open_run(run_name)
    _require_model(source)
    writer = _start(source, target)
    with atomic_folder(target / "model") as folder:
        shutil.copytree(source.model_path, folder, dirs_exist_ok=True)
    for stage in source.manifest["stages"]:
        writer.begin_stage(stage, {"published": source.stamp, "shards": shards})
        for table, entry in source.tables.items():
            if entry.get("stage") == stage:
                _copy_table(source, writer, table, shards=shards)
        writer.finish_stage(stage, _facts(source, stage))
    writer.update("model", source.manifest["model"])
    indexed = {name: len(source.files(name)) for name in source.tables if TABLES[name].sharded}
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
        writer.write_table(table, read_parquet(files[0], TABLES[table]))
        return
    for index, file in enumerate(files[:shards]):
        writer.write_shard(table, index, read_parquet(file, TABLES[table]))
