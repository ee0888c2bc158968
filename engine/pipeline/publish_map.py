"""Copy a map of models to where it ships: its tables, its arrays, its probes."""

import shutil
from pathlib import Path

import numpy as np
import pandas as pd

from engine.errors import ConfigError
from engine.pipeline.models_embed import PROBES
from engine.schema import TABLES
from engine.store import Run, RunWriter, open_run, read_parquet


WORDS = "model_words"
LEFT = "model_pair_scores"
"""Scores of every pair by every method: as large as all the rest, and no page reads them."""
_NO_ROUTES_OF = "knn"
"""A router whose results ship and whose single predictions do not."""
_IDENTITY = ("probes", "attribution", "embedding")


def publish_map(source: Run, target: Path, *, words: int | None = None) -> Run:
    """Copy the tables of a map but `LEFT`; the attributions it was made from stay behind.

    Log-probabilities are rounded to a thousandth of a nat.

    Args:
        source: The map.
        target: Folder of the copy.
        words: Probes, spread over the set, whose word attributions are kept; all unless given.

    Raises:
        ConfigError: The target is the run itself.
    """
    if target.resolve() == source.path.resolve():
        raise ConfigError(f"{target} is the run itself; name another folder for its copy.")
    identity = {key: source.manifest[key] for key in _IDENTITY if key in source.manifest}
    writer = RunWriter.create(target, name=target.name, kind=source.kind, identity=identity)
    arrays = source.manifest.get("arrays", {})
    for stage, entry in source.manifest["stages"].items():
        writer.begin_stage(stage, {"published": source.stamp, "words": words})
        for table, own in source.tables.items():
            if own.get("stage") == stage and table != LEFT:
                frame = read_parquet(source.files(table)[0], TABLES[table])
                writer.write_table(table, _smaller(table, frame, words))
        for group in (name for name, own in arrays.items() if own["stage"] == stage):
            _copy_arrays(source, writer, group)
        known = {"identity", "started", "finished"}
        writer.finish_stage(stage, {k: v for k, v in entry.items() if k not in known})
    if (source.path / PROBES).is_file():
        shutil.copyfile(source.path / PROBES, target / PROBES)
    writer.begin_stage("publish", {"from": source.stamp})
    writer.finish_stage("publish", {"from": source.stamp, "words": words})
    return open_run(target)


def _smaller(table: str, frame: pd.DataFrame, words: int | None) -> pd.DataFrame:
    """A table as it ships: what takes most of the room is rounded or cut to what pages show."""
    if table == WORDS:
        return _fewer(frame, words)
    if table == "model_options":
        rounded = [np.round(values, 3) for values in frame["log_probabilities"]]
        return frame.assign(log_probabilities=rounded)
    if table == "model_routes":
        return frame[frame["router"] != _NO_ROUTES_OF]
    return frame


def _fewer(frame: pd.DataFrame, words: int | None) -> pd.DataFrame:
    """Word attributions of some probes, at equal distances in the set."""
    probes = np.sort(frame["probe"].unique())
    if words is None or words >= len(probes):
        return frame
    kept = probes[np.linspace(0, len(probes) - 1, words).round().astype(int)]
    return frame[frame["probe"].isin(kept)]


def _copy_arrays(source: Run, writer: RunWriter, group: str) -> None:
    folder = writer.array_folder(group)
    folder.mkdir(parents=True, exist_ok=True)
    names = []
    for file in source.manifest["arrays"][group]["files"]:
        own = source.inside(file["path"])
        shutil.copyfile(own, folder / own.name)
        names.append(own.stem)
    writer.register_arrays(group, names)
