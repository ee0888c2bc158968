"""Read from a map what routing, forecasts and selection are computed from."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from engine.atlas.question_encoder import question_text
from engine.atlas.routers import RoutingData
from engine.errors import CacheMissing, ConfigError
from engine.pipeline.models_relations_reading import MapData, open_map_data
from engine.store import Run, read_table


INPUTS = ("model_cards", "model_catalogue", "model_embeddings", "model_questions", "model_answers")
"""Tables that routing is computed from."""


@dataclass(frozen=True)
class Answered:
    """Models of a map that are embedded and whose answers are known."""

    map: MapData
    names: tuple[str, ...]
    """Their names, in the order of the cards."""
    places: Int[np.ndarray, " models"]
    """Their places among the models of the map."""
    questions: pd.DataFrame
    """Rows of `model_questions`."""
    correct: Bool[np.ndarray, "models questions"]
    """Whether each answers each question right."""

    @property
    def run(self) -> Run:
        """The map."""
        return self.map.run

    def embeddings(self, variant: str) -> Float[np.ndarray, "models dimensions"]:
        """Embeddings of these models.

        Raises:
            ConfigError: The map has none of this variant.
        """
        if variant not in self.map.vectors:
            raise ConfigError(
                f"Run {self.run.name} holds no embeddings of the variant {variant!r}; it holds "
                f"{', '.join(sorted(self.map.vectors))}."
            )
        return self.map.vectors[variant][self.places]

    @property
    def links(self) -> dict[str, tuple[str, ...]]:
        """Parents, teachers and roots of every model of the catalogue."""
        return {card.name: card.parents + card.roots for card in self.map.lineage.cards}

    def n_parameters(self) -> Int[np.ndarray, " models"]:
        """Parameters of these models."""
        rows = read_table(self.run, "model_catalogue", columns=["model", "n_parameters"])
        known = dict(zip(rows["model"], rows["n_parameters"], strict=True))
        return np.array([known[name] for name in self.names], dtype=np.int64)


def open_answered(run_name: str | Path) -> Answered:
    """Open a map whose models' answers are known.

    Raises:
        ConfigError: The run is no map of models.
        CacheMissing: It holds no embeddings, cards or answers, or answers of one model alone.
    """
    data = open_map_data(run_name)
    rows = read_table(data.run, "model_answers")
    answers = dict(zip(rows["model"], rows["correct"], strict=True))
    places = [place for place, name in enumerate(data.names) if name in answers]
    names = tuple(data.names[place] for place in places)
    if len(names) < 2:
        raise CacheMissing(
            f"Run {data.run.name} knows the answers of {len(names)} embedded models, and two are "
            "needed; name the folder of the answers with `headwater models embed --answers`."
        )
    correct = np.stack([np.asarray(answers[name], dtype=bool) for name in names])
    questions = read_table(data.run, "model_questions", order_by="question")
    return Answered(data, names, np.array(places), questions, correct)


@dataclass(frozen=True)
class RoutingMap:
    """A map, opened for routing."""

    answered: Answered
    data: RoutingData

    @property
    def run(self) -> Run:
        """The map."""
        return self.answered.run

    @property
    def names(self) -> tuple[str, ...]:
        """Models, in the order of the arrays."""
        return self.answered.names

    @property
    def links(self) -> dict[str, tuple[str, ...]]:
        """Parents, teachers and roots of every model of the catalogue."""
        return self.answered.links

    @property
    def marks(self) -> dict[str, list[str]]:
        """Hashes of the files of every table that is read."""
        return table_marks(self.run, INPUTS)


def open_routing_map(run_name: str | Path, variant: str) -> RoutingMap:
    """Open a map for routing.

    Raises:
        ConfigError: The run is no map of models, or has no embeddings of the variant.
        CacheMissing: It holds no embeddings, cards or answers.
    """
    answered = open_answered(run_name)
    texts = [question_text(prompt) for prompt in answered.questions["prompt"]]
    keys = answered.questions["key"].tolist()
    data = RoutingData(texts, keys, answered.correct, answered.embeddings(variant))
    return RoutingMap(answered, data)


def table_marks(run: Run, names: tuple[str, ...]) -> dict[str, list[str]]:
    """Hashes of the files of tables, by table."""
    return {name: [file["sha256"] for file in run.tables[name]["files"]] for name in names}
