"""Listings of a scored pool: tails, filters that say what they hide, places under two methods."""

import numpy as np
import pandas as pd
import pytest

from dashboard import rankings


@pytest.fixture
def scored() -> pd.DataFrame:
    """Eleven sequences; scores fall by their number but for one pair of equals."""
    domains = ["law", "code", "code", "law", "verse", "code", "law", "law", "verse", "code", "law"]
    scores = [5.0, 4.0, 3.0, 3.0, 1.0, 0.5, -0.5, -1.0, -2.0, -3.0, -4.0]
    return pd.DataFrame(
        {
            "sequence": np.arange(11),
            "document": np.arange(11) // 2,
            "doc_id": [f"{i:016x}" for i in range(11)],
            "domain": domains,
            "position": 0,
            "n_tokens": 31,
            "score": scores,
        }
    ).sample(frac=1, random_state=3)


def test_both_tails_start_at_their_end(scored: pd.DataFrame):
    """Most helpful from the top, most harmful from the bottom; equals in the pool's order."""
    helpful = rankings.listing(scored, "helpful", 5)
    assert helpful.rows["sequence"].tolist() == [0, 1, 2, 3, 4]
    assert helpful.rows["place"].tolist() == [1, 2, 3, 4, 5]
    harmful = rankings.listing(scored, "harmful", 3)
    assert harmful.rows["sequence"].tolist() == [10, 9, 8]
    assert "3 most harmful of 11 sequences" in harmful.sentence


def test_a_filter_says_what_it_hides(scored: pd.DataFrame):
    """Places stay those of the whole tail, so that a filtered list is not mistaken for it."""
    found = rankings.listing(scored, "helpful", 3, "law")
    assert found.rows["sequence"].tolist() == [0, 3, 6]
    assert found.rows["place"].tolist() == [1, 4, 7]
    assert found.n_hidden == 2
    assert found.n_domain == 5
    assert "2 of the 3 most helpful of the whole pool lie in other domains" in found.sentence


def test_a_list_says_how_much_of_it_helps_nothing(scored: pd.DataFrame):
    """A small pool has fewer helpful texts than a list has rows."""
    assert "score 0" not in rankings.listing(scored, "helpful", 5).sentence
    assert "; 2 of those listed score 0 or less." in rankings.listing(scored, "helpful", 8).sentence
    assert (
        "; 6 of those listed score 0 or more." in rankings.listing(scored, "harmful", 11).sentence
    )


def test_a_domain_that_is_not_there_lists_nothing(scored: pd.DataFrame):
    """An empty list with a count, no exception."""
    found = rankings.listing(scored, "helpful", 3, "music")
    assert found.rows.empty
    assert found.n_hidden == 3


def test_equal_methods_agree_in_full(scored: pd.DataFrame):
    """Overlap n of n and correlation 1, whatever the order of rows."""
    found = rankings.compare(scored, scored.sample(frac=1, random_state=5), 7)
    assert found.shared == 7
    assert found.correlation == pytest.approx(1)
    assert (found.ranks["rank_first"] == found.ranks["rank_second"]).all()
    assert sorted(found.ranks["rank_first"])[:5] == [1, 2, 3.5, 3.5, 5]
    assert found.ranks["n_tops"].tolist().count(2) == 7


def test_opposite_methods_share_what_chance_forces(scored: pd.DataFrame):
    """7 of 11 from either end share three; two random orders would share 49/11."""
    other = scored.assign(score=-scored["score"] - 0.001 * scored["sequence"])
    found = rankings.compare(scored, other, 7)
    assert found.shared == 3
    assert found.expected == pytest.approx(49 / 11)
    assert found.correlation < -0.9


def test_a_method_that_ties_all_has_no_correlation(scored: pd.DataFrame):
    """A constant ranks nothing; no number stands for that."""
    found = rankings.compare(scored, scored.assign(score=0.0), 7)
    assert np.isnan(found.correlation)


def test_a_pool_smaller_than_n_is_its_own_top(scored: pd.DataFrame):
    """n is cut to the pool."""
    found = rankings.compare(scored, scored, 100)
    assert (found.n, found.shared, found.expected) == (11, 11, 11.0)


@pytest.mark.parametrize(
    ("raw", "span"),
    [
        ("4-9", (4, 9)),
        ("4", (4, 4)),
        ("1-12", (1, 12)),
        ("0-12", None),
        ("9-4", None),
        ("4-13", None),
        ("", None),
        ("-3", None),
        ("a-b", None),
        ("1-2-3", None),
        ("1" * 30, None),
    ],
)
def test_spans_of_links_are_read_or_refused(raw: str, span: tuple[int, int] | None):
    """Thirteen tokens: what lies outside or is no span is None."""
    assert rankings.parse_span(raw, 13) == span
