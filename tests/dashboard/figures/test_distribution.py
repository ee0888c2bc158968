"""Next-token charts as data."""

import math

import pandas as pd
import pytest

from dashboard.figures import distribution
from dashboard.figures.tokens import logit_text


@pytest.fixture
def tokens() -> pd.DataFrame:
    """Three tokens, two of which look the same."""
    return pd.DataFrame(
        {
            "token_id": [4, 9, 13],
            "token": [" a", "\n", " a"],
            "logit": [2.0, 1.0, 0.5],
            "probability": [0.5, 0.2, 0.1],
            "logit_suppressed": [1.0, 1.0, 0.5],
            "probability_suppressed": [0.2, 0.2, 0.3],
        }
    )


def test_tokens_that_look_alike_keep_their_own_bar(tokens: pd.DataFrame):
    """Bars of one name would be drawn on top of each other."""
    assert distribution.token_names(tokens) == ["·a (4)", "⏎", "·a (13)"]


def test_the_change_in_log_odds_is_exact(tokens: pd.DataFrame):
    """log(0.2/0.8) - log(0.5/0.5) = -log 4; no change gives exactly 0."""
    change = distribution.log_odds_change(tokens["probability"], tokens["probability_suppressed"])
    assert change[0] == pytest.approx(-math.log(4))
    assert change[1] == 0.0
    assert change[2] == pytest.approx(math.log(0.3 / 0.7) - math.log(0.1 / 0.9))


def test_certain_and_impossible_tokens_stay_finite():
    """A probability that rounds to 0 or 1 must not draw an infinite bar."""
    change = distribution.log_odds_change(pd.Series([0.0, 1.0]), pd.Series([1.0, 0.0]))
    assert all(math.isfinite(value) for value in change)


def test_the_target_is_marked_by_more_than_colour(tokens: pd.DataFrame):
    """A mark in the text repeats the accent."""
    figure = distribution.next_token_bars(tokens, dark=False, targets=(9,))
    assert [text.endswith("◂") for text in figure.data[0].text] == [False, True, False]


def test_before_and_after_show_both_and_the_signed_change(tokens: pd.DataFrame):
    """Blue and orange repeat what the sign says; the click carries the token id."""
    figure = distribution.before_after_bars(tokens, dark=True)
    before, after, change = figure.data
    assert list(before.x) == tokens["probability"].tolist()
    assert list(after.x) == tokens["probability_suppressed"].tolist()
    assert [text[0] for text in change.text] == ["−", "+", "+"]
    assert [row[0] for row in change.customdata] == tokens["token_id"].tolist()


def test_the_charts_have_a_text_for_screen_readers(tokens: pd.DataFrame):
    """It says what moved most."""
    assert "'·a (4)' 50.0%" in distribution.next_token_alt(tokens)
    assert "-1.39 nats" in distribution.before_after_alt(tokens)


def test_a_change_that_rounds_to_nothing_has_no_minus():
    """A fall of 0.00 is none."""
    assert logit_text(-0.001) == logit_text(0.0) == "+0.00"
    assert logit_text(-0.125) == "−0.12"
