"""Splits are a property of a question and a seed, and of nothing else."""

import numpy as np
import pytest

from engine.control.splits import split_questions
from engine.errors import ConfigError
from engine.questions.question import question_of


def _questions(n: int):
    rows = [{"question": f"q{i}", "options": ["x", "y"], "answer": 0} for i in range(n)]
    return tuple(question_of("s", row) for row in rows)


def test_parts_are_disjoint_whole_and_of_the_shares_stated():
    """50, 20 and 30 of 100."""
    split = split_questions("s", _questions(1_009), 3)
    parts = [split.train, split.validation, split.test]
    assert sorted(np.concatenate(parts).tolist()) == list(range(1_009))
    np.testing.assert_allclose([len(p) / 1_009 for p in parts], [0.5, 0.2, 0.3], atol=0.05)


def test_a_question_keeps_its_part_when_others_come_or_go():
    """A larger study never tests on what a smaller one trained on."""
    many = _questions(307)
    few = many[100:]
    whole, part = split_questions("s", many, 0), split_questions("s", few, 0)
    assert (part.test + 100).tolist() == [t for t in whole.test if t >= 100]


def test_seeds_give_different_splits():
    """Otherwise several seeds would be one."""
    questions = _questions(307)
    assert (
        split_questions("s", questions, 0).test.tolist()
        != split_questions("s", questions, 1).test.tolist()
    )


def test_too_few_questions_are_refused_with_a_number():
    """A part of a handful says nothing."""
    with pytest.raises(ConfigError, match=r"s has 23 questions.*10 in each"):
        split_questions("s", _questions(23), 0)
