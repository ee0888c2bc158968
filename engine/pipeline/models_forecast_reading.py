"""Read from a map what scores are told from, and the scores."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from engine.able.embedding import centred_log_probabilities, exact_length, option_contrast
from engine.able.files import expand
from engine.able.projection import project
from engine.atlas.features import option_probabilities, signed_root
from engine.atlas.folds import connected
from engine.atlas.similarity import unit_rows
from engine.config import require
from engine.errors import ConfigError
from engine.pipeline.models_relations_reading import MapData, open_map_data
from engine.pipeline.models_routing_reading import open_answered
from engine.provenance import file_sha256
from engine.store import read_table


ABLE = "able"
_EMBEDDINGS = (ABLE, "paper", "square_root", "contrast")
"""Variants whose ridge regressions are reported, where the map has them."""
_NAMES = ("model", "hub_id", "id", "name")
_NO_SCORES = ("params_b", "n_parameters")
Vectors = Float[np.ndarray, "models features"]


@dataclass(frozen=True)
class Scores:
    """Scores of some models of a map."""

    names: tuple[str, ...]
    targets: tuple[str, ...]
    values: Float[np.ndarray, "models targets"]
    source: str
    """What they are, for the manifest."""
    mark: str
    """Changes when they do."""


def held_out_scores(run_name: str | Path) -> Scores:
    """Accuracy of every model on the held-out questions of each domain.

    Where every question is a probe, accuracy on the probes; the source says so.

    Raises:
        ConfigError: The run is no map.
        CacheMissing: It holds no embeddings, cards or answers.
    """
    found = open_answered(run_name)
    probe = found.questions["is_probe"].to_numpy(dtype=bool)
    kept = ~probe if not probe.all() else probe
    domain = found.questions["domain"].to_numpy()
    names = tuple(sorted(set(domain[kept])))
    columns = [found.correct[:, kept & (domain == name)].mean(1) for name in names]
    source = "probes" if probe.all() else "questions that embeddings were not made with"
    marks = [
        found.run.tables[n]["files"][0]["sha256"] for n in ("model_questions", "model_answers")
    ]
    return Scores(found.names, names, np.stack(columns, axis=1), source, "".join(marks))


def file_scores(data: MapData, path: Path, columns: Sequence[str] = ()) -> Scores:
    """Scores of a CSV file, of the models that have them all.

    Args:
        data: The map.
        path: A column `model`, `hub_id`, `id` or `name`, and columns of numbers.
        columns: Columns that are told; all of numbers, sizes apart, unless given.

    Raises:
        ConfigError: The file cannot be read, lacks a column, or knows fewer than five models.
    """
    try:
        frame = pd.read_csv(path)
    except (OSError, ValueError) as error:
        raise ConfigError(f"The scores {path} cannot be read as CSV ({error}).") from error
    name = next((column for column in _NAMES if column in frame), None)
    require(name is not None, f"The scores {path} have no column {', '.join(_NAMES)}.")
    numeric = [c for c in frame.select_dtypes("number").columns if c not in _NO_SCORES]
    chosen = list(columns) or numeric
    missing = [column for column in chosen if column not in numeric]
    require(
        bool(numeric),
        f"The scores {path} have no column of numbers; write one beside the models' names.",
    )
    require(
        not missing,
        f"The scores {path} have no column of numbers {', '.join(missing)}; they have "
        f"{', '.join(numeric)}.",
    )
    known = frame.dropna(subset=chosen).drop_duplicates(name).set_index(name)
    names = tuple(model for model in data.names if model in known.index)
    require(
        len(names) >= 5,
        f"The scores {path} know {len(names)} models of run {data.run.name} with a number in every "
        "column, and five are needed; choose columns with --score.",
    )
    values = known.loc[list(names), chosen].to_numpy(dtype=np.float64)
    return Scores(names, tuple(chosen), values, path.name, file_sha256(path))


@dataclass(frozen=True)
class ForecastMap:
    """A map with the scores that are told."""

    data: MapData
    scores: Scores

    @property
    def places(self) -> Int[np.ndarray, " models"]:
        """Places of the scored models among the models of the map."""
        place = {name: number for number, name in enumerate(self.data.names)}
        return np.array([place[name] for name in self.scores.names])

    @property
    def embeddings(self) -> Vectors:
        """Embeddings of the variant able, by which neighbours are found."""
        return self.data.vectors[ABLE][self.places]

    @property
    def edges(self) -> Float[np.ndarray, "models models"]:
        """Documented edges between the scored models, by way of any others."""
        lineage = self.data.lineage
        own = [lineage.place[name] for name in self.scores.names]
        return lineage.edges[np.ix_(own, own)]

    def regimes(self) -> dict[str, Int[np.ndarray, " models"]]:
        """Group of each scored model, by what is left out together."""
        return {
            "one_model_out": np.arange(len(self.scores.names)),
            **lineage_groups(self.data, self.scores.names),
        }

    def features(self) -> dict[str, Vectors]:
        """Features of the ridge regressions, by method."""
        own = {n: self.data.vectors[n] for n in _EMBEDDINGS if n in self.data.vectors}
        scores = _filled(self.data.log_probabilities())
        own["options"] = option_probabilities(scores, self.data.columns)
        own["log_likelihood"] = centred_log_probabilities(scores, self.data.columns)
        own["probe_accuracy"] = self._accuracies()
        own["log_parameters"] = self._log_parameters()
        found = {name: values[self.places] for name, values in own.items()}
        return found | (self._whole() if self.has_words else {})

    @property
    def has_words(self) -> bool:
        """Whether attributions of words are there of all models and probes; they need not ship."""
        rows = self.data.run.tables
        return rows["model_words"]["rows"] == rows["model_options"]["rows"]

    def _whole(self) -> dict[str, Vectors]:
        """Attributions without projection: as they are, and what tells options apart."""
        words = self._words
        contrast = signed_root(option_contrast(words, self.data.columns))
        return {"able_whole": unit_rows(words), "contrast_whole": unit_rows(contrast)}

    def without_domain(self, domain: str) -> Vectors | None:
        """Embeddings without the probes of a domain; None where it is all or none of them.

        None too where attributions of words are not all there.
        """
        sources = np.array([probe.source for probe in self.data.probes.probes])
        kept = (sources != domain)[self.data.columns.probe]
        if kept.all() or not kept.any() or not self.has_words:
            return None
        words = np.where(kept, self._words, 0.0)
        lengths = np.array([exact_length(row) for row in words])[:, None]
        seed = self.data.run.manifest.get("embedding", {}).get("seed", 0)
        keys, size = self.data.columns.keys, self.embeddings.shape[1]
        short = project(words / np.where(lengths > 0, lengths, 1.0), keys, size, seed)
        return short.astype(np.float64)

    @cached_property
    def _words(self) -> Float[np.ndarray, "models columns"]:
        """Attributions of the scored models, from their compact form."""
        place = {name: number for number, name in enumerate(self.scores.names)}
        found = np.zeros((len(place), self.data.columns.n_columns))
        rows = read_table(
            self.data.run, "model_words", columns=["model", "probe", "scale", "values"]
        )
        for model, probe, scale, values in zip(*(rows[name] for name in rows), strict=True):
            if model in place:
                block = self.data.columns.block(int(probe))
                found[place[model], block] = expand(float(scale), np.asarray(values, np.int8))
        return found

    def _accuracies(self) -> Vectors:
        """Accuracy on the probes, in all and by domain."""
        rows = read_table(self.data.run, "model_options", columns=["model", "probe", "correct"])
        sources = [probe.source for probe in self.data.probes.probes]
        rows["source"] = [sources[int(probe)] for probe in rows["probe"]]
        table = rows.pivot_table("correct", "model", "source", aggfunc="mean").astype(np.float64)
        table.insert(0, "all", rows.groupby("model")["correct"].mean())
        return _filled(table.reindex(list(self.data.names)).to_numpy(dtype=np.float64))

    def _log_parameters(self) -> Vectors:
        rows = read_table(self.data.run, "model_catalogue", columns=["model", "n_parameters"])
        known = dict(zip(rows["model"], rows["n_parameters"], strict=True))
        sizes = np.array([known.get(name, 1) for name in self.data.names], dtype=np.float64)
        return np.log(np.maximum(sizes, 1.0))[:, None]


def open_forecast_map(
    run_name: str | Path, scores: Path | None = None, columns: Sequence[str] = ()
) -> ForecastMap:
    """Open a map with scores: of a file, or accuracies on held-out questions.

    Raises:
        ConfigError: The run is no map, or the scores cannot be read.
        CacheMissing: It holds no embeddings, cards or answers.
    """
    data = open_map_data(run_name)
    if ABLE not in data.vectors:
        raise ConfigError(f"Run {data.run.name} holds no embeddings of the variant {ABLE}.")
    found = held_out_scores(run_name) if scores is None else file_scores(data, scores, columns)
    return ForecastMap(data, found)


def lineage_groups(data: MapData, names: Sequence[str]) -> dict[str, Int[np.ndarray, " models"]]:
    """Group of each model where all of one root, or of one family, is left out.

    Parents, teachers and roots connect models; a family's label connects all that bear it.
    """
    rows = read_table(data.run, "model_cards", columns=["model", "family"])
    families = dict(zip(rows["model"], rows["family"], strict=True))
    links = {card.name: list(card.parents + card.roots) for card in data.lineage.cards}
    labelled = {
        name: [*others, *([f"family {families[name]}"] if families.get(name) else [])]
        for name, others in links.items()
    }
    return {"one_root_out": connected(names, links), "one_family_out": connected(names, labelled)}


def _filled(values: Float[np.ndarray, "models columns"]) -> Float[np.ndarray, "models columns"]:
    """Missing entries, of probes that a model skipped, as the mean of the others' entries."""
    missing = np.isnan(values)
    counts = (~missing).sum(0)
    means = np.where(missing, 0.0, values).sum(0) / np.maximum(counts, 1)
    return np.where(missing, means, values)
