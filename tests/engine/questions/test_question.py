"""Rows of every layout in use become questions; what is no answered question is counted."""

import pytest

from engine.errors import ConfigError
from engine.questions.question import MalformedRowError, choose_items, question_of, question_set


LETTERED = {
    "question": " Where is fog likely? ",
    "options": "\nA. a marsh\nB. a tundra\n C. the plains",
    "answer": "B. a tundra",
}


@pytest.mark.parametrize(
    ("row", "options", "answer"),
    [
        (LETTERED, ("a marsh", "a tundra", "the plains"), 1),
        ({"question": "q", "options": ["x", "y"], "answer": 1}, ("x", "y"), 1),
        ({"question": "q", "options": ["x", "y"], "answer": "y"}, ("x", "y"), 1),
        ({"question": "q", "choices": ["x", "y", "z"], "answer": "C"}, ("x", "y", "z"), 2),
        (
            {
                "question_stem": "q",
                "choices": {"label": ["1", "2"], "text": ["x", "y"]},
                "answerKey": "2",
            },
            ("x", "y"),
            1,
        ),
        (
            {"context": "p", "question": "q", "answerA": "x", "answerB": "y", "label": "1"},
            ("x", "y"),
            0,
        ),
        ({"question": "q", "options": {"A": "x", "B": "y"}, "answer": "B"}, ("x", "y"), 1),
        ({"question": "q", "options": ["B", "A"], "answer": "A"}, ("B", "A"), 1),
    ],
)
def test_every_layout_gives_options_and_answer(row, options, answer):
    """The last row: an option's text goes before a letter."""
    found = question_of("s", row)
    assert (found.options, found.answer) == (options, answer)


def test_an_option_may_run_over_lines_and_hold_letters():
    """Only the next letter in order opens an option."""
    text = "A. plan A. of two\nlines\nC. is no option yet\nB. plan B"
    found = question_of("s", {"question": "q", "options": text, "answer": "B. plan B"})
    assert found.options == ("plan A. of two\nlines\nC. is no option yet", "plan B")


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ("not json", "no object"),
        ({"options": ["x", "y"], "answer": 0}, "no question"),
        ({"question": "q", "options": ["x"], "answer": 0}, "1 options"),
        ({"question": "q", "options": ["x", "x"], "answer": 0}, "the same"),
        ({"question": "q", "options": ["x", "y"]}, "no answer"),
        ({"question": "q", "options": ["x", "y"], "answer": 2}, "no place"),
        ({"question": "q", "options": ["x", "y"], "answer": "z"}, "not among"),
        ({"question": "q", "options": 7, "answer": "z"}, "neither"),
        ({"question": "q", "options": "no letters", "answer": "z"}, "0 options"),
    ],
)
def test_a_row_that_is_no_answered_question_says_why(row, why):
    """The reason of the first stands in the log."""
    with pytest.raises(MalformedRowError, match=why):
        question_of("s", row)


def test_the_prompt_ends_where_an_option_begins():
    """Passage, question, and the word that options follow."""
    plain = question_of("s", LETTERED)
    assert plain.prompt == "Question: Where is fog likely?\nAnswer:"
    with_passage = question_of("s", LETTERED | {"passage": "It was cold."})
    assert with_passage.prompt == "It was cold.\nQuestion: Where is fog likely?\nAnswer:"


def test_duplicates_and_malformed_rows_are_left_out_and_counted():
    """A duplicate is one by its text, whatever its answer; numbers have no gap."""
    other = LETTERED | {"question": "Another?"}
    rows = [LETTERED, "broken", LETTERED | {"answer": "A. a marsh"}, other, {"question": "q"}]
    found = question_set("s", rows)
    assert [q.number for q in found] == [0, 1]
    assert [q.answer for q in found] == [1, 1]
    assert (found.n_malformed, found.n_duplicates) == (2, 1)
    assert found.chance == pytest.approx(1 / 3)


def test_a_question_s_id_is_its_content():
    """The same question has one id in any set; another answer has another."""
    one, same = question_of("s", LETTERED), question_of("t", LETTERED)
    assert one.id == same.id
    assert len(one.id) == 16
    assert question_of("s", LETTERED | {"answer": "A. a marsh"}).id != one.id


def test_a_set_without_a_question_is_refused_with_the_first_reason():
    """An empty set would train nothing."""
    with pytest.raises(ConfigError, match="row 1: it has no answer"):
        question_set("mine", [{"question": "q", "options": ["x", "y"]}])


def test_items_are_the_first_by_hash_so_that_more_items_hold_the_fewer():
    """What was read for a small study serves a larger one."""
    rows = [LETTERED | {"question": f"q{i}"} for i in range(23)]
    whole = question_set("s", rows)
    few, more = (choose_items(whole, n) for n in (5, 11))
    assert {q.id for q in few} < {q.id for q in more}
    assert (len(few), len(more)) == (5, 11)
    assert choose_items(whole, 23) is whole
    with pytest.raises(ConfigError, match="--items is 0"):
        choose_items(whole, 0)
