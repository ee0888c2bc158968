"""Scores of training texts as data: shares that add up, domains, ranks, tails."""

import numpy as np
import pandas as pd
import pytest

from dashboard import theme
from dashboard.figures import attribution, attribution_ranks


@pytest.fixture
def shares() -> pd.DataFrame:
    """Seventeen summands; the largest is negative, the sum is 3."""
    scores = np.array([-4.0, 2.5, 2.0, 1.0, *([0.1] * 13)])
    scores[-1] += 3.0 - scores.sum()
    labels = [f"law · <b>{i}</b> after a long role" for i in range(17)]
    return pd.DataFrame({"prototype": np.arange(17) + 100, "label": labels, "share": scores})


@pytest.fixture
def pool() -> pd.DataFrame:
    """Eleven sequences of three domains; five, four and two."""
    domains = ["law"] * 5 + ["code"] * 4 + ["verse"] * 2
    return pd.DataFrame({"sequence": np.arange(11), "domain": domains})


def test_folded_shares_keep_the_sum(shares: pd.DataFrame):
    """What is not drawn alone is drawn together: a bar for the rest, never dropped."""
    rows = attribution.folded_shares(shares, 3)
    assert rows["prototype"].tolist() == [100, 101, 102, -1]
    assert rows["share"].sum() == pytest.approx(shares["share"].sum())
    assert rows["label"].iloc[-1] == "14 other prototypes"


def test_few_shares_have_no_rest(shares: pd.DataFrame):
    """No grey bar of nothing."""
    assert (attribution.folded_shares(shares.head(2), 3)["prototype"] >= 0).all()


@pytest.mark.parametrize("dark", [False, True])
def test_share_bars_colour_by_sign_and_carry_ids(shares: pd.DataFrame, dark: bool):
    """Orange lowers, blue raises, grey is the rest; a click finds the prototype."""
    colours = theme.palette(dark)
    bar = attribution.share_bars(shares, dark=dark, selected=101).data[0]
    assert bar.marker.color[0] == colours.lowers
    assert bar.marker.color[1] == colours.raises
    assert bar.marker.color[-1] == colours.rest
    assert [int(row[0]) for row in bar.customdata][:2] == [100, 101]
    assert int(bar.customdata[-1][0]) == -1
    assert list(bar.marker.line.width).index(2) == 1
    assert bar.y[0] == "#100  &lt;b&gt;0&lt;/b&gt; after a long role"
    assert bar.hovertext[0].startswith("law · &lt;b&gt;")


def test_share_bars_say_the_sign_and_the_sum(shares: pd.DataFrame):
    """The legend of the sign stands on the axis, the sum in the subtitle."""
    figure = attribution.share_bars(shares, dark=False)
    assert "blue +" in figure.layout.xaxis.title.text
    assert "orange −" in figure.layout.xaxis.title.text
    assert "+3.00" in figure.layout.title.text
    assert figure.layout.annotations[0].text == "−4.00  (−133%)"


def test_prototypes_without_labels_keep_their_names(shares: pd.DataFrame):
    """A run without an index has numbers alone; the axis must not take them for numbers."""
    figure = attribution.share_bars(shares.assign(label=""), dark=False)
    assert figure.layout.yaxis.type == "category"
    assert figure.data[0].y[0] == "#100"


def test_a_share_of_nearly_nothing_is_not_written():
    """Where summands cancel, a per cent of the sum would be noise."""
    shares = pd.DataFrame({"prototype": [1, 2], "label": ["a", "b"], "share": [1.0, -1.0]})
    assert attribution.share_bars(shares, dark=False).layout.annotations[0].text == "+1.00"


def test_domains_stand_against_the_pool(pool: pd.DataFrame):
    """Share, base rate and lift of every domain of the pool, listed or not."""
    rows = pool.iloc[[0, 1, 9]]
    found = attribution_ranks.domain_shares(rows, pool).set_index("domain")
    assert found.loc["law", "share"] == pytest.approx(2 / 3)
    assert found.loc["law", "base"] == pytest.approx(5 / 11)
    assert found.loc["verse", "lift"] == pytest.approx((1 / 3) / (2 / 11))
    assert found.loc["code", ["n", "share"]].tolist() == [0, 0]
    assert found["base"].sum() == pytest.approx(1)
    figure = attribution_ranks.domain_dots(found.reset_index(), dark=False, listed="top 3")
    assert len(figure.layout.shapes) == 3
    assert list(figure.data[1].x) == found["share"].tolist()


def test_no_rows_listed_give_no_share(pool: pd.DataFrame):
    """A filter that hides everything divides by nothing."""
    found = attribution_ranks.domain_shares(pool.iloc[:0], pool)
    assert (found["share"] == 0).all()


def test_the_scatter_of_ranks_tells_shared_from_unshared():
    """Places of the top of both, of one and of neither; ids travel."""
    ranks = pd.DataFrame(
        {
            "sequence": np.arange(13) + 50,
            "name": ["<script>"] * 13,
            "rank_first": np.arange(13) + 1,
            "rank_second": [1, 9, 3, *range(4, 9), 2, *range(10, 14)],
            "n_tops": [2, 1, 2, *[0] * 5, 1, *[0] * 4],
        }
    )
    figure = attribution_ranks.rank_scatter(ranks, dark=False, first="a", second="b", n=3)
    neither, one, both = figure.data
    assert [int(v[0]) for v in both.customdata] == [50, 52]
    assert sorted(int(v[0]) for v in one.customdata) == [51, 58]
    assert len(neither.x) == 9
    assert figure.layout.xaxis.type == figure.layout.yaxis.type == "log"
    assert "2 of 3 shared" in figure.layout.title.text
    assert both.text[0] == "&lt;script&gt;"
    assert "2 of the top 3" in attribution_ranks.rank_alt(ranks, "a", "b", 3)


def test_a_large_pool_draws_its_best(monkeypatch: pytest.MonkeyPatch):
    """The browser never gets more points than it can move."""
    monkeypatch.setattr(attribution_ranks, "MOST_POINTS", 7)
    n = 101
    ranks = pd.DataFrame(
        {
            "sequence": np.arange(n),
            "name": "text",
            "rank_first": np.arange(n) + 1,
            "rank_second": n - np.arange(n),
            "n_tops": ((np.arange(n) < 2) | (np.arange(n) >= n - 2)).astype(int),
        }
    )
    figure = attribution_ranks.rank_scatter(ranks, dark=False, first="a", second="b", n=2)
    drawn = np.concatenate([[int(v[0]) for v in t.customdata] for t in figure.data if len(t.x)])
    assert {0, 1, n - 1, n - 2} <= set(drawn.tolist())
    assert len(drawn) <= 9
    assert "n = 101" in figure.layout.title.text


def test_the_histogram_counts_every_score_and_marks_both_ends():
    """Nothing falls out of the bins; the lines stand at the last text listed on either side."""
    scores = np.linspace(-3, 5, 89)
    figure = attribution.score_histogram(scores, dark=False, n=7)
    assert np.nansum(figure.data[0].y) == 89
    places = sorted(shape.x0 for shape in figure.layout.shapes)
    assert places == pytest.approx([np.sort(scores)[6], np.sort(scores)[-7]])
    assert figure.layout.yaxis.type == "log"
    assert "89" in attribution.score_alt(scores)
    assert "loss" in figure.layout.xaxis.title.text


def test_likenesses_say_nothing_of_the_loss():
    """A similarity of words neither lowers nor raises anything."""
    figure = attribution.score_histogram(np.linspace(0, 1, 11), dark=False, n=2, likeness=True)
    assert figure.layout.xaxis.title.text == "score · the larger, the more alike"


def test_an_empty_pool_draws_and_says_so():
    """No division and no picture of nothing in disguise."""
    attribution.score_histogram(np.array([]), dark=False, n=7)
    assert attribution.score_alt(np.array([])) == "The pool is empty."


def test_one_prototype_is_no_prototypes():
    """A text may share a single prototype with the query."""
    one = pd.DataFrame({"prototype": [5], "label": ["role"], "share": [1.5]})
    assert (
        "1 prototype adds up to +1.5" in attribution.share_bars(one, dark=False).layout.title.text
    )
