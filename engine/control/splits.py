"""Which questions train a controller, which choose its penalty and which test it: by their hash."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from engine.errors import ConfigError
from engine.provenance import fingerprint
from engine.questions import Question


TRAIN_SHARE, VALIDATION_SHARE = 0.5, 0.2
"""What is left, 0.3, is the test."""
SMALLEST_PART = 10
"""Questions a part needs."""


@dataclass(frozen=True)
class Split:
    """Places of the questions of each part."""

    train: Int[np.ndarray, " train"]
    validation: Int[np.ndarray, " validation"]
    test: Int[np.ndarray, " test"]


def split_questions(name: str, questions: tuple[Question, ...], seed: int) -> Split:
    """Divide a set by a hash of seed and question, so that a question's part is the same anywhere.

    Raises:
        ConfigError: A part would have fewer than `SMALLEST_PART` questions.
    """
    marks = [int(fingerprint([seed, question.id]), 16) / 2**64 for question in questions]
    edges = [TRAIN_SHARE, TRAIN_SHARE + VALIDATION_SHARE]
    part = np.digitize(marks, edges)
    found = Split(*(np.flatnonzero(part == number) for number in range(3)))
    smallest = min(len(found.train), len(found.validation), len(found.test))
    if smallest < SMALLEST_PART:
        needed = round(2 * SMALLEST_PART / VALIDATION_SHARE)
        raise ConfigError(
            f"{name} has {len(questions)} questions, which leaves {smallest} in a part; a split "
            f"needs {SMALLEST_PART} in each. Take about {needed} or more (--items), or leave the "
            "set out."
        )
    return found
