"""The folder of a zoo: where its models lie, what identifies each, and which are finished."""

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from engine.errors import CacheMissing, CacheStale
from engine.provenance import file_sha256, fingerprint
from engine.store import atomic_folder, read_json, write_array_atomic, write_json_atomic
from engine.zoo.answers import accuracies, correctness, option_scores
from engine.zoo.derivations import Workshop
from engine.zoo.folders import ANSWERS, CARD, WEIGHTS, ZooModel, load_model, save_model
from engine.zoo.manifest import ModelSpec, Plan
from engine.zoo.schedules import Schedules
from engine.zoo.tokenizers import cached_tokenizer
from engine.zoo.worlds import World, ZooQuestion


@dataclass(frozen=True)
class ZooFolder:
    """A zoo at work in its folder. Every part of it can be made anew from plan and schedules."""

    path: Path
    """The folder."""
    plan: Plan
    """Its models."""
    world: World
    """Facts, lines and questions."""
    schedules: Schedules
    """Training of every kind."""

    @cached_property
    def workshop(self) -> Workshop:
        """What models are made with; parents are read from this folder."""
        return Workshop(self.world, self.schedules, self.tokenizer, self.load)

    @cached_property
    def questions(self) -> tuple[ZooQuestion, ...]:
        """Questions that every model is asked."""
        return self.world.questions()

    @cached_property
    def _world_mark(self) -> str:
        return self.world.fingerprint

    @cached_property
    def _identities(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for spec in self.plan.models:
            found[spec.id] = fingerprint(
                {
                    "spec": spec,
                    "schedule": self.schedules.of(spec),
                    "sizes": _sizes(self.schedules),
                    "world": self._world_mark,
                    "parents": [
                        found[name] for name in (*spec.parents, *spec.roots) if name in found
                    ],
                }
            )
        return found

    def identity(self, spec: ModelSpec) -> str:
        """What determines a model: its plan, its training, the world, and all it is made of."""
        return self._identities[spec.id]

    def folder(self, name: str) -> Path:
        """Folder of a model."""
        return self.path / "models" / name

    def tokenizer(self, kind: str) -> Tokenizer:
        """A tokenizer of this world, made at its first use."""
        return cached_tokenizer(kind, self.world, self.path / "tokenizers" / self._world_mark)

    def load(self, name: str) -> ZooModel:
        """A finished model."""
        return load_model(self.folder(name))

    def card(self, spec: ModelSpec) -> dict[str, Any] | None:
        """What is known of a model; None where it is not built, or as something else."""
        try:
            card = read_json(self.folder(spec.id) / CARD)
        except (CacheMissing, CacheStale):
            return None
        return card if card.get("identity") == self.identity(spec) else None

    def is_done(self, spec: ModelSpec) -> bool:
        """Whether a model is there as this plan wants it."""
        return self.card(spec) is not None

    def build(self, spec: ModelSpec) -> dict[str, Any]:
        """Make a model, ask it every question and keep it; its folder appears whole."""
        made = self.workshop.make(spec)
        scores = option_scores(made.model, made.tokenizer, self.questions)
        right = correctness(scores, self.questions)
        with atomic_folder(self.folder(spec.id)) as folder:
            save_model(made, folder)
            write_array_atomic(folder / ANSWERS, scores)
            card = {
                "identity": self.identity(spec),
                **dataclasses.asdict(spec),
                "n_parameters": sum(w.numel() for w in made.model.parameters()),
                "steps": self.schedules.steps(spec),
                "loss": made.loss,
                "accuracy": accuracies(right, self.questions),
                "sha256": file_sha256(folder / WEIGHTS),
            }
            write_json_atomic(folder / CARD, card)
        return card

    def scores(self, spec: ModelSpec) -> np.ndarray:
        """Log-probabilities of the options of every question, [questions, options]."""
        return np.load(self.folder(spec.id) / ANSWERS, allow_pickle=False)


def _sizes(schedules: Schedules) -> list[Any]:
    """Settings that are no schedule."""
    return [schedules.rank, schedules.noise, schedules.new_tokens, schedules.sampled_texts,
            schedules.sampled_tokens]  # fmt: skip
