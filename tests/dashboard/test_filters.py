"""What is shown, what is hidden and by what."""

from typing import Any

import pandas as pd
import pytest

from dashboard import filters
from dashboard.filters import Filters


@pytest.fixture
def frame() -> pd.DataFrame:
    rows = pd.DataFrame(
        {
            "prototype": [0, 1, 2, 3, 4],
            "category": ["Numbers", "Numbers", "Words", "Words", "Markup"],
            "role": ["year", "digit", "name", "verb", "tag"],
            "label_score": [0.9, 0.6, None, 0.7, 0.5],
            "firing_rate": [0.1, 0.01, 0.001, 0.0, 0.5],
            "n_active_tokens": [100, 10, 1, 0, 500],
            "top_domain": ["law", "law", "prose", None, "web"],
        }
    )
    rows["label"] = [
        filters.label(c, r) for c, r in zip(rows["category"], rows["role"], strict=True)
    ]
    return rows


def shown(frame: pd.DataFrame, **wanted: Any) -> list[int]:
    texts = frame["label"].str.lower()
    return filters.apply(frame, Filters(**wanted), texts).shown["prototype"].tolist()


def test_dead_prototypes_are_hidden_until_asked_for(frame: pd.DataFrame):
    """They have no neighbours to look at, but they are counted."""
    assert shown(frame) == [0, 1, 2, 4]
    assert shown(frame, dead=True) == [0, 1, 2, 3, 4]


def test_the_sentence_counts_what_is_hidden_and_by_what(frame: pd.DataFrame):
    """2 and 4 lie below 0.6 or are unscored, 3 is dead: three of five are hidden."""
    found = filters.apply(frame, Filters(score=0.6), frame["label"].str.lower())
    assert found.sentence(5) == "3 of 5 hidden by never firing (1), label score (2)."


def test_nothing_hidden_is_said(frame: pd.DataFrame):
    """The reader sees that this is everything."""
    found = filters.apply(frame, Filters(dead=True), frame["label"].str.lower())
    assert found.sentence(5) == "All 5 prototypes shown."


def test_every_word_of_a_query_must_occur(frame: pd.DataFrame):
    """Words narrow the search; case does not count; nothing is a pattern."""
    assert shown(frame, query="numbers YEAR") == [0]
    assert shown(frame, query=".*") == []


def test_each_filter_keeps_what_it_says(frame: pd.DataFrame):
    """One filter at a time."""
    assert shown(frame, category="Numbers") == [0, 1]
    assert shown(frame, domain="law") == [0, 1]
    assert shown(frame, density_low=0.05) == [0, 4]
    assert shown(frame, density_high=0.05) == [1, 2]
    assert shown(frame, picked=(1, 4)) == [1, 4]
    assert shown(frame, firing=(4, 0)) == [0, 4]


def test_the_lasso_hides_rows_but_not_points(frame: pd.DataFrame):
    """The map keeps showing what may be lassoed next."""
    found = filters.apply(frame, Filters(picked=(1,)), frame["label"].str.lower())
    assert found.on_map["prototype"].tolist() == [0, 1, 2, 4]
    assert found.shown["prototype"].tolist() == [1]


def test_order_follows_the_sentence_before_the_column(frame: pd.DataFrame):
    """What fires most on the reader's sentence comes first."""
    assert filters.ordered(frame, "firing_rate")["prototype"].tolist() == [4, 0, 1, 2, 3]
    some = frame[frame["prototype"].isin([1, 4])]
    assert filters.ordered(some, "firing_rate", (1, 4))["prototype"].tolist() == [1, 4]


def test_unscored_labels_come_last(frame: pd.DataFrame):
    """A missing score is not a low one, but it is no reason to look first."""
    assert filters.ordered(frame, "label_score")["prototype"].tolist() == [0, 3, 1, 4, 2]


def test_steps_go_round_the_table():
    """Previous of the first is the last; a prototype not shown leads to the first."""
    assert filters.step([5, 3, 8], 5, -1) == 8
    assert filters.step([5, 3, 8], 3, 1) == 8
    assert filters.step([5, 3, 8], 99, 1) == 5
    assert filters.step([], 99, 1) == 99
