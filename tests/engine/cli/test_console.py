"""Numbers, times and progress as a user reads them."""

import logging

import numpy as np
import pytest

from engine.cli import console


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (float("nan"), "–"),
        (0.0, "0"),
        (0.123456, "0.123"),
        (12, "12"),
        (1234567.0, "1,234,567"),
        (1234.56, "1,235"),
        (1e-7, "1e-07"),
    ],
)
def test_numbers_have_three_significant_digits(value, text):
    assert console.digits(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(4.2, "4 s"), (190, "3 min 10 s"), (7500, "2 h 5 min")]
)
def test_times_are_words(seconds, text):
    assert console.duration(seconds) == text


@pytest.mark.parametrize(("n_bytes", "text"), [(12, "12 B"), (1_234_000, "1.23 MB"), (7e9, "7 GB")])
def test_sizes_are_words(n_bytes, text):
    assert console.size(n_bytes) == text


def test_a_progress_line_says_how_much_how_fast_and_how_long_still():
    """30 of 90 in 10 s: 3 a second, 20 s left."""
    assert console.progress_line("train", 30, 90, 10.0) == "train: 30 of 90, 3/s, 20 s left"
    assert console.progress_line("read", 30, None, 10.0) == "read: 30 done, 3/s"


def test_a_reporter_hands_through_every_item(caplog, monkeypatch):
    """Without a terminal it logs lines; the items are the same."""
    monkeypatch.setattr(console, "SECONDS_BETWEEN_LINES", 0.0)
    with caplog.at_level(logging.INFO, logger="engine.cli.console"):
        assert list(console.Reporter()(range(5), label="count")) == [0, 1, 2, 3, 4]
    assert "count: 5 of 5" in caplog.text


def test_json_holds_no_nan():
    """NaN is no JSON; scripts get null."""
    value = {"a": [float("nan"), np.float32(0.5), np.int64(3)], 2: (1, None)}
    assert console.plain(value) == {"a": [None, 0.5, 3], "2": [1, None]}
