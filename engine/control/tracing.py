"""What turned an answer: each feature's share of a controller's change of score."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from engine.control.controller import Choices, Controller
from engine.control.features import centred


MOST_TRACED = 8
"""Features kept of a question, the largest contributions first."""


@dataclass(frozen=True)
class Turned:
    """A question whose answer a controller turned right or wrong."""

    question: int
    """Place among the questions given."""
    before: int
    after: int
    """Options chosen without and with the controller; one of them is right."""
    features: Int[np.ndarray, " traced"]
    """Features with the largest contributions, by absolute value."""
    contributions: Float[np.ndarray, " traced"]
    """c_i (f_i(after) - f_i(before)), logits; positive speaks for `after`."""


def turned_answers(choices: Choices, controller: Controller) -> list[Turned]:
    """Every question that turned from wrong to right or from right to wrong."""
    before = choices.choose(choices.base)
    after = choices.choose(choices.scores(controller.weights))
    turned = np.flatnonzero((before == choices.answer) != (after == choices.answer))
    found = []
    for question in turned:
        options = choices.start[question] + np.array([before[question], after[question]])
        rows = choices.features[options].toarray()
        added = controller.weights * (rows[1] - rows[0])
        kept = np.argsort(-np.abs(added), kind="stable")[:MOST_TRACED]
        kept = kept[added[kept] != 0]
        found.append(
            Turned(int(question), int(before[question]), int(after[question]), kept, added[kept])
        )
    return found


def mean_effect(choices: Choices, controller: Controller) -> Float[np.ndarray, " features"]:
    """Mean over options of the absolute change of score a feature makes, what is common left out.

    Unit: logits. 0 where the weight is 0.
    """
    moved = abs(centred(choices.features, choices.question)).mean(axis=0)
    return np.asarray(moved).ravel() * np.abs(controller.weights)
