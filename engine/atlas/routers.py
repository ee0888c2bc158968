"""Routers over folds of questions: each question is tested once, by heads that never saw it.

Nine tenths of the questions train, one of these nine ends the training early, as in EmbedLLM's
80 / 10 / 10 split (arXiv 2410.02223). The wordings of one fact share a fold.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.optimize import minimize
from scipy.special import expit

from engine.atlas.factorisation import HeadSettings, TrainedHead, train_head
from engine.atlas.folds import codes, fact_of, grouped_folds
from engine.atlas.question_encoder import QuestionEncoder, similarities


ABLE, EMBEDLLM, KNN = "able", "embedllm", "knn"
N_FOLDS = 10
KNN_PUBLISHED = 131
"""Neighbours of EmbedLLM's own baseline, among 29,000 questions."""

Predicted = Float[np.ndarray, "models questions"]
"""Probability that each model answers each question right."""


@dataclass(frozen=True)
class RoutingData:
    """Who answers what, and what is known of both."""

    texts: Sequence[str]
    """Questions as asked."""
    keys: Sequence[str]
    """Their names."""
    correct: Bool[np.ndarray, "models questions"]
    """Whether each model answers each question right."""
    embeddings: Float[np.ndarray, "models dimensions"]
    """Frozen embeddings of the models."""
    seed: int = 0
    """Seed of the folds."""
    n_folds: int = N_FOLDS
    """Folds of the questions."""

    @cached_property
    def facts(self) -> Int[np.ndarray, " questions"]:
        """Number of the fact that each question is about."""
        return codes([fact_of(key) for key in self.keys])

    @cached_property
    def fold(self) -> Int[np.ndarray, " questions"]:
        """Fold of each question."""
        return grouped_folds([int(fact) for fact in self.facts], self.n_folds, self.seed)

    def part(self, number: int) -> "FoldPart":
        """Questions of a fold, and an encoder of the others."""
        test = self.fold == number
        checked = self.fold == (number + 1) % self.n_folds
        known = np.flatnonzero(~test)
        trained = np.flatnonzero(~test & ~checked).tolist()
        encoder = QuestionEncoder.fit([self.texts[place] for place in trained])
        return FoldPart(
            encoder.encode(list(self.texts)),
            known,
            np.flatnonzero(checked[known]),
            np.flatnonzero(test),
        )


@dataclass(frozen=True)
class FoldPart:
    """One fold: what is trained on, what ends the training, what is tested."""

    encoded: Float[np.ndarray, "questions dimensions"]
    """Every question, by an encoder fitted on the training texts."""
    known: Int[np.ndarray, " known"]
    """Places of the questions that are not tested."""
    validation: Int[np.ndarray, " held_out"]
    """Which of the known ones end the training."""
    test: Int[np.ndarray, " tested"]
    """Places of the questions that are tested."""

    @property
    def train(self) -> Int[np.ndarray, " trained"]:
        """Places of the questions that are trained on."""
        return np.delete(self.known, self.validation)

    @property
    def tested(self) -> Float[np.ndarray, "tested dimensions"]:
        """The tested questions, encoded."""
        return self.encoded[self.test]


def fit_router(
    data: RoutingData,
    part: FoldPart,
    router: str,
    settings: HeadSettings,
    models: Int[np.ndarray, " models"] | None = None,
) -> TrainedHead:
    """Train the head of a router on a fold.

    Args:
        data: Who answers what.
        part: The fold.
        router: able or embedllm.
        settings: How it is trained.
        models: Places of the models that it may see; all unless given.
    """
    chosen = np.arange(len(data.correct)) if models is None else models
    return train_head(
        part.encoded[part.known],
        data.correct[np.ix_(chosen, part.known)],
        settings,
        embeddings=data.embeddings[chosen] if router == ABLE else None,
        validation=part.validation,
    )


def knn_predicted(
    encoded: Float[np.ndarray, "questions dimensions"],
    correct: Bool[np.ndarray, "models questions"],
    asked: Float[np.ndarray, "asked dimensions"],
    n_neighbours: int,
) -> Float[np.ndarray, "models asked"]:
    """Share of the nearest known questions that each model answers right."""
    cosines = similarities(asked, encoded)
    nearest = np.argsort(-cosines, axis=1, kind="stable")[:, : min(n_neighbours, len(encoded))]
    return correct[:, nearest].mean(2)


def choose_neighbours(data: RoutingData, part: FoldPart, among: Sequence[int]) -> int:
    """How many neighbours tell the validation questions best, by squared error."""
    train, checked = part.train, part.known[part.validation]

    def error(n: int) -> float:
        told = knn_predicted(part.encoded[train], data.correct[:, train], part.encoded[checked], n)
        return float(np.mean((told - data.correct[:, checked]) ** 2))

    return min(among, key=error)


def fit_vector(
    features: Float[np.ndarray, "answers width"],
    bias: float,
    right: Bool[np.ndarray, " answers"],
    known: Float[np.ndarray, "models width"],
) -> Float[np.ndarray, " width"]:
    """EmbedLLM's vector of a new model from a few of its answers, the head left as it is.

    The most probable vector under the head's likelihood and a normal prior with the mean of the
    known models' vectors and their mean variance; without answers it is that mean.

    Args:
        features: What the vector is multiplied with, of each answered question.
        bias: The head's bias.
        right: Which were answered right.
        known: Vectors of the models that the head was trained on.
    """
    mean, variance = known.mean(0, dtype=np.float64), float(known.var(0).mean())
    if len(right) == 0:
        return mean
    signs = np.where(right, 1.0, -1.0)

    def loss(vector: Float[np.ndarray, " width"]) -> tuple[float, Float[np.ndarray, " width"]]:
        margin = signs * (features @ vector + bias)
        away = vector - mean
        slope = -(signs * expit(-margin)) @ features + away / variance
        return float(np.logaddexp(0, -margin).sum() + away @ away / (2 * variance)), slope

    return minimize(loss, mean, jac=True, method="L-BFGS-B").x
