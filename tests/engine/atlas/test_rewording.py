"""Probes in other words keep the question's words, whatever stands around them."""

import numpy as np
import pytest

from engine.able.columns import Columns
from engine.able.probes import ProbeSet, letter_probe, probe_set
from engine.atlas.rewording import (
    TEMPLATES,
    orders,
    question_columns,
    reworded,
    shuffled,
    take_apart,
)


GIVEN = (
    letter_probe("s", "What does the swan fear?", ["tiger", "lynx", "a small eagle"], 1),
    letter_probe("s", "Who lives in Peru", ["Ana", "Ben"], 0),
)
LETTERS = probe_set("given", GIVEN)
TEXTS = probe_set("given", GIVEN, "texts")


def questions(probes):
    return [take_apart(probe, probes.style).question for probe in probes.probes]


@pytest.mark.parametrize("probes", [LETTERS, TEXTS])
def test_a_probe_comes_apart_the_same_in_both_styles(probes):
    """The suite reads maps of either style."""
    first = take_apart(probes.probes[0], probes.style)
    assert first.question == "What does the swan fear?"
    assert first.choices == ("tiger", "lynx", "a small eagle")
    assert first.answer == 1


@pytest.mark.parametrize("probes", [LETTERS, TEXTS])
def test_rewording_into_its_own_style_is_the_probe_itself(probes):
    """Else every template would differ by more than its words."""
    again = reworded(probes, probes.style)
    assert [probe.id for probe in again.probes] == [probe.id for probe in probes.probes]


def words_of(probes, asked, given=None):
    """The word that each kept column stands for, with its option."""
    columns = Columns(probes)
    found = []
    for column in question_columns(columns, asked, given):
        probe = int(columns.probe[column])
        found.append((probe, probes.probes[probe].words[columns.word[column]]))
    return found


@pytest.mark.parametrize("template", TEMPLATES)
def test_every_template_has_the_question_s_words_in_the_same_order(template):
    """So that column by column the same word of the same option is compared."""
    expected = words_of(TEXTS, questions(TEXTS))
    assert [word for probe, word in expected if probe == 0][:5] == [
        *("What", "does", "the", "swan", "fear?"),
    ]
    assert words_of(reworded(TEXTS, template), questions(TEXTS)) == expected


@pytest.mark.parametrize("probes", [LETTERS, TEXTS])
def test_shuffled_options_keep_the_answer_and_come_back_in_place(probes):
    """The column of an option's text is found again wherever the option went."""
    given = [np.array([2, 0, 1]), np.array([1, 0])]
    made = shuffled(probes, given)
    first = take_apart(made.probes[0], made.style)
    assert first.choices == ("a small eagle", "tiger", "lynx")
    assert first.choices[first.answer] == "lynx"
    columns = Columns(made)
    kept = question_columns(columns, questions(probes), given)
    own = [int(columns.option[c]) for c in kept if columns.probe[c] == 0]
    assert own == [1] * 5 + [2] * 5 + [0] * 5  # tiger, lynx, eagle: where each stands now


def test_orders_are_those_of_the_seed():
    """Another seed, another order; each is a permutation."""
    many = ProbeSet("many", tuple(GIVEN[0] for _ in range(20)), "letters")
    found = orders(many, 3)
    assert all(sorted(order) == [0, 1, 2] for order in found)
    assert [o.tolist() for o in found] == [o.tolist() for o in orders(many, 3)]
    assert [o.tolist() for o in found] != [o.tolist() for o in orders(many, 4)]
