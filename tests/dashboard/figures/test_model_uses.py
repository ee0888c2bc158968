"""Figures of pairs, routers, forecasts and added models as data: what is drawn where, and said."""

import numpy as np
import pandas as pd
import pytest

from dashboard import theme
from dashboard.figures import forecast, pair, placed, routing
from dashboard.figures.attribution_validity import interval_dots


HOSTILE = "<b onclick=x>&"


def shares() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "probe": [7, 2, 5],
            "source": ["jobs", "jobs", HOSTILE],
            "question": ["What?", HOSTILE, "x" * 99],
            "share": [0.5, 0.3, 0.2],
            "cosine": [0.1, -0.4, np.nan],
        }
    )


@pytest.mark.parametrize("dark", [True, False])
def test_questions_stand_by_share_and_a_click_names_one(dark: bool):
    """The one looked at has the accent; nothing of a question is read as markup."""
    figure = pair.probe_bars(shares(), 2, dark=dark, subtitle="n = 3")
    (bars,) = figure.data
    assert list(bars.x) == [0.5, 0.3, 0.2]
    assert [c[0] for c in bars.customdata] == [7, 2, 5]
    colours = theme.palette(dark)
    assert list(bars.marker.color) == [colours.rest, colours.accent, colours.rest]
    names = figure.layout.yaxis.ticktext
    assert names[1].startswith("&lt;b onclick=x&gt;&amp;")
    assert names[2].endswith("…  #5")
    assert "question 7 (jobs) 50.0%" in pair.probes_alt(shares())


def test_no_question_is_an_empty_figure_and_a_sentence():
    """A domain without any."""
    none = shares().iloc[:0]
    assert not len(pair.probe_bars(none, 0, dark=False, subtitle="").data[0].x)
    assert "none" in pair.probes_alt(none)


def test_domains_have_their_share_of_both_lengths_as_a_line():
    """What the share would be were the models equally unlike everywhere."""
    rows = pd.DataFrame(
        {
            "source": ["a", "b"], "n": [3, 4], "share": [0.9, 0.1],
            "length_a": [0.2, 0.8], "length_b": [0.4, 0.6], "cosine": [0.5, -0.25],
        }
    )  # fmt: skip
    bars, lines, words = pair.domain_bars(rows, dark=False).data
    assert list(bars.x) == [0.9, 0.1]
    assert list(lines.x) == pytest.approx([0.3, 0.7])
    assert list(words.text) == ["cos +0.50", "cos −0.25"]
    assert min(words.x) > max(0.1, 0.3)


def test_chosen_options_are_filled_and_the_right_one_is_marked():
    """One symbol a model; a model that did not read the question chooses none."""
    rows = pd.DataFrame(
        {
            "option": ["A", HOSTILE],
            "right": [False, True],
            "value_0": [-1.0, -2.0],
            "value_1": [np.nan, np.nan],
            "chosen_0": [True, False],
            "chosen_1": [False, False],
        }
    )
    figure = pair.option_dots(rows, ("m", HOSTILE), dark=True, axis="nats")
    first, second = figure.data
    assert list(first.marker.symbol) == ["circle", "circle-open"]
    assert list(second.marker.symbol) == ["diamond-open", "diamond-open"]
    assert figure.layout.yaxis.ticktext[1].startswith("✓ &lt;b")
    said = pair.options_alt(rows, ("m", "k"))
    assert said == "m chooses A, wrong; k did not read it."


def router_rows() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "name": ["all", "jobs", "all"],
            "router": ["knn", "able", "able"],
            "value": [0.5, 0.6, 0.7],
            "low": [0.4, 0.5, 0.65],
            "high": [0.6, 0.7, 0.75],
            "n": [11, 5, 11],
        }
    )


def test_routers_stand_in_one_order_with_their_intervals():
    """able first; a row that a router lacks is left out."""
    figure = routing.interval_rows(
        router_rows(), ["all", "jobs"], dark=False, title="t", subtitle="s", axis="x"
    )
    able, knn = figure.data
    assert (able.name, knn.name) == ("able", "knn")
    assert list(able.x) == [0.7, 0.6]
    assert list(able.error_x.arrayminus) == pytest.approx([0.05, 0.1])
    assert len(knn.x) == 1
    assert "able 70.0% [65.0%, 75.0%]; knn" in routing.interval_alt(router_rows(), "all", "A")


def test_new_models_stand_by_what_is_known_of_them_and_budgets_by_size():
    """Not in the order of the table."""
    rows = router_rows().assign(router="able", name=["k=100", "k=0", "retrained"])
    (line,) = routing.new_model_lines(rows, dark=True, title="", subtitle="", axis="").data
    assert list(line.y) == pytest.approx([0.6, 0.5, np.nan, 0.7], nan_ok=True)
    budgets = router_rows().assign(router="able", name=["900", "10000", "80"])
    figure = routing.budget_lines(budgets, dark=True, subtitle="")
    assert list(figure.data[0].x) == [80, 900, 10000]
    assert figure.layout.xaxis.type == "log"


def test_a_ranking_marks_right_and_wrong_and_draws_known_intervals_alone():
    """A typed question has no right answer."""
    rows = pd.DataFrame(
        {
            "model": ["a", "b", HOSTILE],
            "predicted": [0.9, 0.5, 0.1],
            "low": [0.8, np.nan, 0.0],
            "high": [0.95, np.nan, 0.2],
            "correct": np.array([True, None, False], dtype=object),
        }
    )
    figure = routing.ranking_bars(rows, dark=False, title="", subtitle="", chosen="a", band="b")
    band, marks = figure.data
    assert list(band.base) == [0.8, 0.0]
    assert list(marks.x) == [0.9, 0.5, 0.1]
    assert figure.layout.xaxis.tickvals[-1] == 1
    assert list(figure.layout.yaxis.ticktext)[:2] == ["✓ <b>a</b>", "b"]
    assert figure.layout.yaxis.ticktext[2].startswith("✗ &lt;b")


def told() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "model": ["a", "b", "c"],
            "true": [0.2, 0.5, 0.9],
            "predicted": [0.3, 0.5, 0.4],
            "group": ["f", "f", HOSTILE],
            "residual": [0.1, 0.0, -0.5],
        }
    )


def test_told_and_true_share_one_square_and_a_line():
    """Both axes have one range; the worst are named."""
    reach = forecast.reach_of(told())
    figure = forecast.told_and_true(
        told(), {"f": "#123456"}, dark=False, title="", subtitle="", reach=reach
    )
    line, points = figure.data
    assert list(line.x) == list(line.y) == list(reach)
    assert list(points.marker.color)[:2] == ["#123456"] * 2
    assert "&lt;b" in points.customdata[2]
    assert reach[0] < 0.2
    assert reach[1] > 0.9
    assert "Furthest off: c −50" in forecast.told_alt(told(), "s")
    assert forecast.reach_of(told().iloc[:0]) == (0, 1)


def test_residuals_stand_in_their_group_with_the_mean():
    """Points, in percentage points."""
    figure = forecast.residual_strips(told(), ["f", HOSTILE], {}, dark=True, title="", reach=0.5)
    points, means = figure.data
    assert list(points.x) == pytest.approx([10, 0, -50])
    assert np.round(points.y).tolist() == [0, 0, 1]
    assert list(means.x) == pytest.approx([5, -50])


def test_candidates_stand_in_predicted_order_and_the_first_ten_are_dark():
    """NDCG@10 looks at no more."""
    n = 13
    rows = pd.DataFrame(
        {
            "model": [f"m{i}" for i in range(n)], "true": np.linspace(1, 0, n),
            "predicted": np.linspace(0.9, 0, n), "place": range(1, n + 1),
            "true_place": range(1, n + 1),
        }
    )  # fmt: skip
    bars, marks = forecast.candidate_bars(rows, dark=False, title="", subtitle="", axis="").data
    colours = theme.palette(False)
    assert list(bars.marker.color) == [colours.rest] * 10 + [colours.faint] * 3
    assert list(marks.x) == pytest.approx(list(rows["predicted"]))


@pytest.mark.parametrize(("least", "wanted"), [(False, ["b", "a"]), (True, ["a", "b"])])
def test_ways_of_telling_stand_best_first(least: bool, wanted: list[str]):
    """Of errors the least is best; a way without a figure stands last."""
    rows = pd.DataFrame(
        {
            "method": ["a", "b", "c"], "panel": ["p", "p", "q"], "value": [0.1, 0.2, 0.3],
            "low": [0.0, 0.1, 0.2], "high": [0.2, 0.3, 0.4],
        }
    )  # fmt: skip
    figure = interval_dots(
        rows, dark=False, title="", subtitle="", axes={"p": "P", "q": "Q"}, least_first=least
    )
    assert list(figure.data[0].y) == [*wanted, "c"]


def test_an_added_model_is_a_star_beside_its_neighbours():
    """Every model is drawn once; neighbours are named by rank."""
    rows = pd.DataFrame(
        {"model": ["a", "b", "c", HOSTILE], "x": [0.0, 1, 2, 3], "y": [0.0, 1, 2, 3]}
    )
    figure = placed.placed(rows, HOSTILE, ["c", "a"], dark=False, title="", subtitle="")
    others, near, own = figure.data
    assert [len(t.x) for t in (others, near, own)] == [1, 2, 1]
    assert own.marker.symbol == "star"
    assert own.name.startswith("&lt;b")
    assert [a.text for a in figure.layout.annotations] == ["1. c", "2. a"]
    assert "nearest by cosine: c, a" in placed.placed_alt(rows, "x", ["c", "a"])
