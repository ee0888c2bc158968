"""Judge a comparison of models: over random splits by root, and once on held-out roots."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from engine.atlas.lineage import TWIN
from engine.atlas.pairs import (
    HARD,
    N_SPLITS,
    POSITIVE,
    Pairs,
    balanced,
    halves,
    random_splits,
)
from engine.atlas.relation_scores import (
    Classifier,
    auc,
    classified,
    fit_logistic,
    fit_threshold,
    resampled_auc,
)
from engine.config import require


THRESHOLD, LOGISTIC, NO_CLASSIFIER = "threshold", "logistic", "none"
ALL, DEV, HELD_OUT = "all", "dev", "held_out"


@dataclass(frozen=True)
class Comparison:
    """One way to compare models."""

    similarity: Float[np.ndarray, "models models"]
    """Higher is more alike."""
    features: Callable[[], Float[np.ndarray, "pairs features"]] | None = None
    """Makes what a logistic regression learns from; None where there is the score alone."""
    able: bool = False
    """Whether it compares attributions, so that it may be chosen on development roots."""


@dataclass(frozen=True)
class Result:
    """One figure."""

    classifier: str
    group: str
    metric: str
    value: float
    n: int
    sd: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Split:
    """Pairs to learn from and pairs to judge by, of units apart."""

    units: Int[np.ndarray, " train"]
    """Units to learn from."""
    train: Int[np.ndarray, " learned"]
    """Places of balanced pairs to learn from."""
    test: Int[np.ndarray, " judged"]
    """Places of balanced pairs to judge by."""
    inside: Bool[np.ndarray, " pairs"]
    """All pairs of the units to judge by."""
    seed: int


class Judge:
    """Judges comparisons over the same pairs and the same splits."""

    def __init__(self, pairs: Pairs, seed: int = 0, n_splits: int = N_SPLITS) -> None:
        """Draw splits and pairs.

        Args:
            pairs: The pairs.
            seed: Seed of every draw.
            n_splits: Random splits; one whose parts lack related or unrelated pairs is left out.

        Raises:
            ConfigError: A half of the families lacks related or unrelated pairs, or every split.
        """
        self.pairs = pairs
        dev, held = halves(pairs, seed)
        self.once = self._split(n_splits, dev, held, seed)
        self.dev = self._split(n_splits, held, dev, seed)
        """The halves the other way round: its test part is the development half."""
        drawn = enumerate(random_splits(pairs, n_splits, seed))
        splits = [self._split(number, *units, seed) for number, units in drawn]
        self.splits = [split for split in splits if self._is_whole(split)]
        require(
            len(self.splits) > 0 and self._is_whole(self.once),
            f"The map has {len(pairs.roots)} unrelated families, and each half of them needs "
            "related and unrelated models to learn from or to judge by; embed more models.",
        )

    def _is_whole(self, split: Split) -> bool:
        parts = (split.train, split.test)
        return all(len(set(self.pairs.related[part].tolist())) == 2 for part in parts)

    def _split(self, number: int, train: np.ndarray, test: np.ndarray, seed: int) -> Split:
        generator = np.random.default_rng([seed, 9, number])
        parts = [self.pairs.inside(units) for units in (train, test)]
        first, second = (balanced(self.pairs, part, generator) for part in parts)
        return Split(train, first, second, parts[1], number)

    def judge(self, comparison: Comparison) -> Iterator[Result]:
        """All figures of a comparison, by threshold and, where it has features, by logistic."""
        scores = self.pairs.of(comparison.similarity)
        yield from self._over_splits(THRESHOLD, lambda split: self._cut(scores, split))
        yield from self._held_out(THRESHOLD, self._cut(scores, self.once))
        for group, places in self._groups_once(self.dev, DEV):
            yield self._area(THRESHOLD, group, scores, places)
        if comparison.features is None:
            return
        features = comparison.features()
        yield from self._over_splits(LOGISTIC, lambda split: self._learnt(features, split))
        yield from self._held_out(LOGISTIC, self._learnt(features, self.once))

    def _cut(self, scores: Float[np.ndarray, " pairs"], split: Split) -> Classifier:
        train = split.train
        return Classifier(scores, fit_threshold(scores[train], self.pairs.related[train]))

    def _learnt(self, features: Float[np.ndarray, "pairs features"], split: Split) -> Classifier:
        generator = np.random.default_rng([split.seed, 10])
        return self._cut(fit_logistic(features, self.pairs, split.units, generator), split)

    def _over_splits(self, classifier: str, fit: Callable[[Split], Classifier]) -> Iterator[Result]:
        """Means and standard deviations over the splits that hold pairs of a group."""
        found: dict[tuple[str, str], list[tuple[float, int]]] = {}
        for split in self.splits:
            for key, figure in self._of_split(fit(split), split).items():
                found.setdefault(key, []).append(figure)
        for (group, metric), figures in found.items():
            values = np.array([value for value, _ in figures if np.isfinite(value)])
            if len(values):
                n = round(float(np.mean([count for _, count in figures])))
                spread = float(values.std(ddof=1)) if len(values) > 1 else None
                yield Result(classifier, group, metric, float(values.mean()), n, spread)

    def _of_split(
        self, found: Classifier, split: Split
    ) -> Mapping[tuple[str, str], tuple[float, int]]:
        pairs = self.pairs
        figures: dict[tuple[str, str], tuple[float, int]] = {}
        for metric, value in classified(found, pairs, split.test).items():
            figures[ALL, metric] = (value, len(split.test))
        predicted = found.scores >= found.threshold
        hard = split.inside & (pairs.level == HARD)
        positive = split.inside & pairs.related
        for group, own in ((HARD, hard), (TWIN, hard & (pairs.kind == TWIN))):
            places = np.flatnonzero(own | positive)
            area = auc(found.scores[places], pairs.related[places]) if own.any() else np.nan
            figures[group, "auc"] = (area, len(places))
        for kind in sorted(set(pairs.kind[pairs.level == HARD])):
            own = hard & (pairs.kind == kind)
            if own.any():
                rate = (float(predicted[own].mean()), int(own.sum()))
                figures[f"hard:{kind}", "false_positive_rate"] = rate
        if hard.any():
            figures[HARD, "false_positive_rate"] = (float(predicted[hard].mean()), int(hard.sum()))
        for name in sorted(set(pairs.kind[pairs.level == POSITIVE])):
            own = positive & (pairs.kind == name)
            if own.any():
                recall = (float(predicted[own].mean()), int(own.sum()))
                figures[f"derivation:{name}", "recall"] = recall
        return figures

    def _held_out(self, classifier: str, found: Classifier) -> Iterator[Result]:
        """Figures on the held-out half, by a classifier of the development half."""
        test = self.once.test
        for metric, value in classified(found, self.pairs, test).items():
            if metric != "auc":
                yield Result(classifier, HELD_OUT, metric, value, len(test))
        for group, places in self._groups_once(self.once, HELD_OUT):
            yield self._area(classifier, group, found.scores, places)

    def _groups_once(self, split: Split, name: str) -> Iterator[tuple[str, np.ndarray]]:
        """Balanced pairs of a half, and its related pairs with all those of twins."""
        twins = (self.pairs.level == HARD) & (self.pairs.kind == TWIN)
        yield name, split.test
        against = split.inside & (self.pairs.related | twins)
        if (against & twins).any():
            yield f"{name}:{TWIN}", np.flatnonzero(against)

    def _area(self, classifier: str, group: str, scores: np.ndarray, places: np.ndarray) -> Result:
        pairs = self.pairs
        related, own = pairs.related[places], scores[places]
        units = np.stack([pairs.unit[pairs.a[places]], pairs.unit[pairs.b[places]]], 1)
        low, high = resampled_auc(own, related, units) or (None, None)
        value = auc(own, related)
        return Result(classifier, group, "auc", value, len(places), low=low, high=high)


def choose(results: Mapping[str, list[Result]]) -> str:
    """The method of the best AUC on development roots: the mean over all pairs and over twins.

    Args:
        results: Figures of the methods that may be chosen, by name.
    """

    def merit(name: str) -> float:
        groups = (DEV, f"{DEV}:{TWIN}")
        found = [r.value for r in results[name] if r.metric == "auc" and r.group in groups]
        return float(np.mean(found))

    return max(sorted(results), key=merit)
