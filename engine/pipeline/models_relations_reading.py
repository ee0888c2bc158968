"""Read from a map what its models are compared by."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from jaxtyping import Float

from engine.able.columns import Columns
from engine.able.embedding import VARIANTS, vector
from engine.able.files import folder_name, read_attribution, read_probe_set
from engine.able.probes import Probe, ProbeSet
from engine.atlas.lineage import Lineage, lineage_of
from engine.errors import CacheMissing, ConfigError
from engine.pipeline.models_embed import KIND, MODELS, PROBES
from engine.store import Run, open_run, read_table


WHOLE = ("able", "square_root", "per_probe")
"""Variants that are compared without projection too."""


@dataclass(frozen=True)
class MapData:
    """A map, opened: its embedded models in the order of its cards."""

    run: Run
    lineage: Lineage
    names: tuple[str, ...]
    """Embedded models that have a card."""
    vectors: dict[str, Float[np.ndarray, "models dimensions"]]
    """Embeddings by variant, of the variants that all of them have."""

    @cached_property
    def probes(self) -> ProbeSet:
        """The probes; where the run's own file is not there, from its table."""
        path = self.run.path / PROBES
        if path.is_file():
            return read_probe_set(path)
        rows = read_table(self.run, "model_probes").to_dict("records")
        probes = [Probe(r["source"], r["prompt"], tuple(r["options"]), r["answer"]) for r in rows]
        return ProbeSet(self.run.name, tuple(probes))

    @cached_property
    def columns(self) -> Columns:
        """Columns of the probes."""
        return Columns(self.probes)

    @property
    def has_attributions(self) -> bool:
        """Whether the folders of all models are there, with attributions in full."""
        folders = [self.folder(name) / "words.npy" for name in self.names]
        return (self.run.path / PROBES).is_file() and all(path.is_file() for path in folders)

    def folder(self, name: str) -> Path:
        """Folder of a model's attribution."""
        return self.run.path / MODELS / folder_name(name)

    def log_probabilities(self) -> Float[np.ndarray, "models options"]:
        """Log-probabilities of all options; NaN in probes that a model did not read."""
        columns = self.columns
        found = np.full((len(self.names), int(columns.option_starts[-1])), np.nan)
        place = {name: number for number, name in enumerate(self.names)}
        rows = read_table(
            self.run, "model_options", columns=["model", "probe", "log_probabilities"]
        )
        for model, probe, scores in zip(*(rows[name] for name in rows), strict=True):
            if model in place:
                found[place[model], columns.options_of(int(probe))] = scores
        return found

    def attributions(self) -> dict[str, Float[np.ndarray, "models columns"]]:
        """Attributions in full: `WHOLE` as they are before projection, and `words` as they are."""
        found: dict[str, list[np.ndarray]] = {name: [] for name in (*WHOLE, "words")}
        for name in self.names:
            own = read_attribution(self.folder(name), self.probes)
            for variant in WHOLE:
                found[variant].append(vector(own, VARIANTS[variant]).astype(np.float32))
            found["words"].append(own.words)
        return {name: np.stack(rows) for name, rows in found.items()}

    def places(self) -> list[Path] | None:
        """Folders of the models' weights; None where one is not on this machine."""
        rows = read_table(self.run, "model_catalogue", columns=["model", "place"])
        known = dict(zip(rows["model"], rows["place"], strict=True))
        found = [Path(known[name]) for name in self.names]
        return found if all(path.is_dir() for path in found) else None


def open_map_data(run_name: str | Path) -> MapData:
    """Open a map of models.

    Raises:
        ConfigError: The run is no map of models.
        CacheMissing: It holds no embeddings or no cards yet, or only one model.
    """
    run = open_run(run_name)
    if run.kind != KIND and not run.has("model_embeddings"):
        raise ConfigError(
            f"Run {run.name} is no map of models; name one that `headwater models embed` made."
        )
    lineage = lineage_of(read_table(run, "model_cards").to_dict("records"))
    rows = read_table(run, "model_embeddings")
    vectors = {
        str(variant): dict(zip(own["model"], own["vector"], strict=True))
        for variant, own in rows.groupby("variant", sort=False)
    }
    embedded = set(rows["model"])
    names = tuple(card.name for card in lineage.cards if card.name in embedded)
    if len(names) < 2:
        raise CacheMissing(
            f"Run {run.name} holds {len(names)} embedded models, and relations need two or more; "
            "embed others with `headwater models embed`."
        )
    stacked = {
        variant: np.stack([own[name] for name in names]).astype(np.float64)
        for variant, own in vectors.items()
        if own.keys() >= set(names)
    }
    return MapData(run, lineage, names, stacked)


def input_marks(run: Run) -> dict[str, list[str]]:
    """Hashes of the files of every table that relations are computed from."""
    names = ("model_cards", "model_catalogue", "model_embeddings", "model_options", "model_probes")
    return {name: [file["sha256"] for file in run.tables[name]["files"]] for name in names}
