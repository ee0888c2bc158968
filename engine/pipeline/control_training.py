"""Controllers of one question set: every split, every kind of feature."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int
from scipy import sparse

from engine.control.controller import Choices, Controller, train_controller
from engine.control.splits import Split, split_questions
from engine.pipeline.control_reading import ReadSet


@dataclass(frozen=True)
class Budget:
    """What every kind of feature gets alike."""

    seeds: int
    """Splits, numbered from 0."""
    max_nonzeros: int
    """Most weights of a controller."""


@dataclass(frozen=True)
class TrainedSplit:
    """One split of a set with a controller a kind of feature."""

    seed: int
    split: Split
    controllers: dict[str, Controller]


@dataclass(frozen=True)
class TrainedSet:
    """A set with what a controller sees of it and the controllers of every split."""

    read: ReadSet
    choices: dict[str, Choices]
    """By kind of feature; `base` is the sum of log-likelihoods in each."""
    splits: list[TrainedSplit]

    @property
    def bare(self) -> Choices:
        """The options without any feature."""
        return next(iter(self.choices.values()))

    def choice(self, condition: str, trained: TrainedSplit) -> Int[np.ndarray, " questions"]:
        """Option of every question under none, per-byte, or a kind of feature."""
        if condition in trained.controllers:
            own = self.choices[condition]
            return own.choose(own.scores(trained.controllers[condition].weights))
        scores = {"none": self.bare.base, "per-byte": self.read.options.log_likelihood("byte")}
        return self.bare.choose(scores[condition])


def train_set(read: ReadSet, features: dict[str, sparse.csr_array], budget: Budget) -> TrainedSet:
    """Train a controller for every split and kind of feature of a set.

    Args:
        read: The set as the model read it.
        features: f of every option, by kind.
        budget: Splits and the most weights of a controller.

    Raises:
        ConfigError: The set is too small to be split.
    """
    base = read.options.log_likelihood()
    size = np.bincount(read.options.question)
    start = np.cumsum(size) - size
    answer = np.array([question.answer for question in read.questions])
    choices = {kind: Choices(base, found, start, answer) for kind, found in features.items()}
    splits = []
    for seed in range(budget.seeds):
        split = split_questions(read.name, read.questions, seed)
        controllers = {
            kind: train_controller(
                own.part(split.train),
                own.part(split.validation),
                max_nonzeros=budget.max_nonzeros,
            )
            for kind, own in choices.items()
        }
        splits.append(TrainedSplit(seed, split, controllers))
    return TrainedSet(read, choices, splits)
