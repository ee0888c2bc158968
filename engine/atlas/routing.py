"""How well models were chosen for questions: accuracy of the chosen, and what it is held against.

The comparisons follow EmbedLLM (arXiv 2410.02223): the single best model, the same calls dealt to
the questions at random, and an oracle that is right wherever any model is.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int
from sklearn.metrics import roc_auc_score

from engine.atlas.resampling import Estimate, grouped_mean


SINGLE_BEST, RANDOM, ORACLE = "single_best", "random", "oracle"


@dataclass(frozen=True)
class Judged:
    """Questions with who answers them right and in which groups they are."""

    correct: Bool[np.ndarray, "models questions"]
    facts: Int[np.ndarray, " questions"]
    """Fact that each question is about: intervals draw facts."""
    fold: Int[np.ndarray, " questions"]
    """Fold in which each was tested."""

    def part(self, kept: Bool[np.ndarray, " questions"]) -> "Judged":
        """Some of the questions."""
        return Judged(self.correct[:, kept], self.facts[kept], self.fold[kept])

    def mean(self, values: Float[np.ndarray, " questions"]) -> Estimate:
        """Mean over the questions with its interval."""
        return grouped_mean(values, self.facts)


def chosen(
    predicted: Float[np.ndarray, "models questions"], allowed: Bool[np.ndarray, " models"]
) -> Int[np.ndarray, " questions"]:
    """The allowed model that is likeliest to be right, of each question; of ties the first."""
    return np.where(allowed[:, None], predicted, -np.inf).argmax(0)


def right_of(
    choice: Int[np.ndarray, " questions"], correct: Bool[np.ndarray, "models questions"]
) -> Float[np.ndarray, " questions"]:
    """1 where the chosen model answers right."""
    return correct[choice, np.arange(len(choice))].astype(np.float64)


def usage_random(
    choice: Int[np.ndarray, " questions"], correct: Bool[np.ndarray, "models questions"]
) -> Float[np.ndarray, " questions"]:
    """Expected right answers were the same calls dealt to the questions at random."""
    shares = np.bincount(choice, minlength=len(correct)) / len(choice)
    return shares @ correct


def single_best(
    correct: Bool[np.ndarray, "models questions"],
    fold: Int[np.ndarray, " questions"],
    allowed: Bool[np.ndarray, " models"],
) -> Int[np.ndarray, " questions"]:
    """Model that is best on the questions of all other folds, of each question."""
    found = np.zeros(len(fold), dtype=np.int64)
    for number in np.unique(fold):
        others = fold != number
        scores = np.where(allowed, correct[:, others].mean(1), -1.0)
        found[fold == number] = scores.argmax()
    return found


def auc_of(
    predicted: Float[np.ndarray, "models questions"], correct: Bool[np.ndarray, "models questions"]
) -> float | None:
    """Probability that a right pair is predicted above a wrong one; None of one kind alone."""
    if correct.all() or not correct.any():
        return None
    return float(roc_auc_score(correct.ravel(), predicted.ravel()))


def budgets(n_parameters: Int[np.ndarray, " models"], n: int = 10) -> Int[np.ndarray, " budgets"]:
    """Sizes between the smallest and the largest model that split the models evenly."""
    levels = np.quantile(n_parameters, np.linspace(0, 1, n), method="higher")
    return np.unique(levels).astype(np.int64)


def reference_rights(
    judged: Judged, allowed: Bool[np.ndarray, " models"]
) -> dict[str, Float[np.ndarray, " questions"]]:
    """Share of right answers of each question by what routers are held against."""
    best = single_best(judged.correct, judged.fold, allowed)
    own = judged.correct[allowed]
    return {
        SINGLE_BEST: right_of(best, judged.correct),
        RANDOM: np.asarray(own.mean(0), dtype=np.float64),
        ORACLE: np.asarray(own.any(0), dtype=np.float64),
    }


Figure = tuple[str, str, str, Estimate]
"""Router, group, metric and estimate."""
Seeds = Float[np.ndarray, "seeds models questions"]
"""What a router, trained with each seed, expects of every model on every question."""


def figures(
    predicted: dict[str, Seeds],
    judged: Judged,
    groups: dict[str, Bool[np.ndarray, " questions"]],
    *,
    learned: str,
) -> Iterator[Figure]:
    """Every figure of routers that choose among all models: means over seeds.

    Args:
        predicted: What each router expects.
        judged: Who is right.
        groups: Questions of each group.
        learned: Router that the others are compared with.
    """
    everyone = np.ones(len(judged.correct), dtype=bool)
    references = reference_rights(judged, everyone)
    rights = {name: _rights(seeds, judged.correct) for name, seeds in predicted.items()}
    pairs = {name: _pair_rights(seeds, judged.correct) for name, seeds in predicted.items()}
    for group, kept in groups.items():
        part = judged.part(kept)
        for name, values in (rights | references).items():
            yield name, group, "accuracy", part.mean(values[kept])
        for name, seeds in predicted.items():
            over = rights[name] - references[SINGLE_BEST]
            yield name, group, "over_single_best", part.mean(over[kept])
            yield name, group, "correctness", _of_pairs(part.mean(pairs[name][kept]), part)
            for metric, estimate in _usage(seeds[:, :, kept], part):
                yield name, group, metric, estimate
            if name != learned:
                over = rights[name] - rights[learned]
                yield name, group, f"over_{learned}", part.mean(over[kept])
                over = pairs[name] - pairs[learned]
                gained = _of_pairs(part.mean(over[kept]), part)
                yield name, group, f"correctness_over_{learned}", gained


def seed_spread(predicted: dict[str, Seeds], judged: Judged) -> Iterator[Figure]:
    """Standard deviation of the accuracy over seeds, of routers that have several."""
    everyone = np.ones(len(judged.correct), dtype=bool)
    for name, seeds in predicted.items():
        found = [right_of(chosen(told, everyone), judged.correct).mean() for told in seeds]
        if len(found) > 1:
            spread = float(np.std(found, ddof=1))
            yield name, "all", "seed_spread", Estimate(spread, None, None, len(found))


def budget_figures(
    predicted: dict[str, Seeds], judged: Judged, n_parameters: Int[np.ndarray, " models"]
) -> Iterator[Figure]:
    """Accuracy where only models of at most so many parameters may be called."""
    for budget in budgets(n_parameters):
        allowed = n_parameters <= budget
        rights = {n: _rights(seeds, judged.correct, allowed) for n, seeds in predicted.items()}
        for name, values in (rights | reference_rights(judged, allowed)).items():
            yield name, f"budget:{budget}", "accuracy", judged.mean(values)


def _rights(
    seeds: Seeds,
    correct: Bool[np.ndarray, "models questions"],
    allowed: Bool[np.ndarray, " models"] | None = None,
) -> Float[np.ndarray, " questions"]:
    """Share of seeds whose chosen model answers right."""
    among = np.ones(len(correct), dtype=bool) if allowed is None else allowed
    return np.mean([right_of(chosen(told, among), correct) for told in seeds], axis=0)


def _pair_rights(
    seeds: Seeds, correct: Bool[np.ndarray, "models questions"]
) -> Float[np.ndarray, " questions"]:
    """Share of models, and of seeds, whose success on a question is told right."""
    return np.mean([((told > 0.5) == correct).mean(0) for told in seeds], axis=0)


def _usage(seeds: Seeds, part: Judged) -> Iterator[tuple[str, Estimate]]:
    """How calls are spread over models, and how well pairs are told apart."""
    everyone, n = np.ones(len(part.correct), dtype=bool), len(part.facts)
    choices = [chosen(told, everyone) for told in seeds]
    dealt = np.mean([usage_random(choice, part.correct) for choice in choices], axis=0)
    yield "usage_random", part.mean(dealt)
    used = float(np.mean([len(np.unique(choice)) for choice in choices]))
    yield "models_used", Estimate(used, None, None, n)
    areas = [area for told in seeds if (area := auc_of(told, part.correct)) is not None]
    if areas:
        yield "auc", Estimate(float(np.mean(areas)), None, None, part.correct.size)


def _of_pairs(estimate: Estimate, part: Judged) -> Estimate:
    return estimate._replace(n=part.correct.size)
