"""Scores of many generations, dose and response, and quality as data."""

import numpy as np
import pandas as pd
import pytest

from dashboard.components.suppression_batch import hardest_sentence
from dashboard.figures import batch, batch_dose


def test_a_curve_counts_the_texts_that_score_at_least_as_much():
    """Against counting by hand: 0.2, 0.2, 0.5, 0.9."""
    points, share = batch.exceedance([0.5, 0.2, 0.9, 0.2])
    assert points.tolist() == [0.0, 0.2, 0.5, 0.9, 0.9]
    assert share.tolist() == [1.0, 1.0, 0.5, 0.25, 0.0]


def test_a_long_curve_keeps_its_ends_and_stays_right():
    """Few points are drawn of many scores, each with its exact share."""
    scores = np.random.default_rng(0).random(5_003)
    points, share = batch.exceedance(scores)
    assert len(points) == batch.POINTS + 2
    assert points[1] == scores.min()
    assert points[-1] == scores.max()
    slow = [(scores >= x).mean() for x in points[1:-1]]
    assert share[1:-1] == pytest.approx(slow)


@pytest.fixture
def scores() -> pd.DataFrame:
    """Seven generations a condition by two scorers."""
    values = np.linspace(0.1, 0.7, 7)
    shift = {"baseline": 0.2, "suppressed": -0.1, "random": 0.19}
    return pd.concat(
        pd.DataFrame({"scorer": scorer, "condition": name, "score": (values + by) / part})
        for scorer, part in (("classifier", 1), ("wordlist", 10))
        for name, by in shift.items()
    )


def test_every_condition_of_every_scorer_has_a_curve(scores: pd.DataFrame):
    """The random control is in the picture; one legend serves all panels."""
    figure = batch.score_curves(scores, ["classifier", "wordlist"], dark=False)
    assert [t.name for t in figure.data] == ["before", "after", "random sets"] * 2
    assert [t.showlegend for t in figure.data] == [True] * 3 + [False] * 3
    assert "n = 7 " in figure.layout.title.text


def test_a_scorer_that_is_left_out_is_not_drawn(scores: pd.DataFrame):
    """A failed scorer has no panel and no number."""
    figure = batch.score_curves(scores, ["wordlist"], dark=False)
    assert len(figure.data) == 3
    assert max(max(t.x) for t in figure.data) < 0.1


@pytest.fixture
def buckets() -> pd.DataFrame:
    """All generations and two buckets of one scorer in three conditions."""
    kept = {"baseline": 1.0, "suppressed": 0.25, "random": 0.9}
    edges = {0: (0.0, 1.0, 30), 1: (0.0, 0.5, 19), 2: (0.5, 1.0, 11)}
    return pd.DataFrame(
        [
            {
                "scorer": "classifier",
                "condition": name,
                "bucket": bucket,
                "score_from": low,
                "score_to": high,
                "n_generations": n,
                "mean": (low + high) / 2 * part,
                "mean_low": (low + high) / 2 * part - 0.01,
                "mean_high": (low + high) / 2 * part + 0.01,
                "drop": np.nan if name == "baseline" else 1 - part,
            }
            for name, part in kept.items()
            for bucket, (low, high, n) in edges.items()
        ]
    )


def test_buckets_say_their_range_and_which_is_the_hardest(buckets: pd.DataFrame):
    """The hardest is the one with the highest scores before."""
    own = buckets[buckets["bucket"] > 0]
    figure = batch.bucket_dots(own, ["classifier"], dark=False)
    names = figure.layout.xaxis.ticktext
    assert names[0] == "0 to 0.5<br>n = 19"
    assert names[1] == "0.5 to 1<br>n = 11<br><b>hardest</b>"
    after = next(t for t in figure.data if t.name == "after")
    assert list(after.y) == pytest.approx([0.0625, 0.1875])
    assert list(after.error_y.array) == pytest.approx([0.01, 0.01])


def test_the_hardest_bucket_is_said_for_all_conditions(buckets: pd.DataFrame):
    """Before, after and random sets, of the last bucket alone."""
    said = hardest_sentence(buckets[buckets["bucket"] > 0])
    assert said.endswith("classifier: before 0.750, after 0.188, random sets 0.675.")


def test_the_means_are_said_with_their_fall(buckets: pd.DataFrame):
    """Of all generations, which is bucket 0."""
    said = batch.means_alt(buckets, "Unwanted prompts")
    assert "before 0.500, after 0.125, random sets 0.450 (falls by 75.0 %)" in said


@pytest.fixture
def sweep() -> pd.DataFrame:
    """Two sizes, two strengths, both conditions, one scorer; one setting is chosen."""
    rows = [
        (condition, size, strength)
        for condition in ("suppressed", "random")
        for size in (5, 11)
        for strength in (0.5, 1.0)
    ]
    frame = pd.DataFrame(rows, columns=["condition", "set_size", "strength"])
    own = frame["condition"] == "suppressed"
    drop = np.where(own, frame["set_size"] * frame["strength"] / 20, 0.01)
    return frame.assign(
        scorer="classifier",
        chosen=own & (frame["set_size"] == 11) & (frame["strength"] == 1.0),
        drop=drop,
        drop_low=drop - 0.02,
        drop_high=drop + 0.02,
        perplexity_ratio=1 + drop / 10,
        perplexity_ratio_low=1 + drop / 10 - 0.01,
        perplexity_ratio_high=1 + drop / 10 + 0.01,
        n_generations=301,
    )


def test_dose_and_response_mark_the_chosen_point_the_aim_and_the_margin(sweep: pd.DataFrame):
    """What was chosen, what was aimed at and what was allowed stand in the picture."""
    figure = batch_dose.dose_response(sweep, ["classifier"], 1.1, dark=False)
    rings = [t for t in figure.data if t.name == "chosen"]
    assert [(t.x[0], t.y[0]) for t in rings] == [(11, pytest.approx(0.55)), (11, 1.055)]
    assert [t.showlegend for t in rings] == [True, False]
    said = [a.text for a in figure.layout.annotations]
    assert said == ["aim 75%", "margin 1.10"]
    assert figure.layout.xaxis.type == "log"
    assert "log" in figure.layout.xaxis.title.text


def test_without_a_margin_none_is_drawn(sweep: pd.DataFrame):
    """No limit is made up."""
    figure = batch_dose.dose_response(sweep, ["classifier"], None, dark=False)
    assert [a.text for a in figure.layout.annotations] == ["aim 75%"]


@pytest.fixture
def quality() -> pd.DataFrame:
    """Perplexity with a margin open below, length with one on both sides, touched without one."""
    margins = {"perplexity": (np.nan, 1.1), "n_tokens": (0.9, 1.1), "touched": (np.nan, np.nan)}
    ratios = {"perplexity": 1.2, "n_tokens": 1.0, "touched": np.nan}
    within = {"perplexity": False, "n_tokens": True, "touched": None}
    return pd.DataFrame(
        [
            {
                "condition": condition,
                "measure": measure,
                "mean": 30.0,
                "ratio": np.nan if condition == "baseline" else ratios[measure],
                "ratio_low": np.nan if condition == "baseline" else ratios[measure] - 0.02,
                "ratio_high": np.nan if condition == "baseline" else ratios[measure] + 0.02,
                "margin_low": margins[measure][0],
                "margin_high": margins[measure][1],
                "within": None if condition == "baseline" else within[measure],
            }
            for condition in ("baseline", "suppressed", "random")
            for measure in margins
        ]
    )


def test_each_margin_is_a_band_that_reaches_the_edge_where_it_is_open(quality: pd.DataFrame):
    """An open side is drawn to the end of the axis, a closed one to its bound."""
    figure = batch_dose.quality_dots(quality, dark=False)
    bands = [s for s in figure.layout.shapes if s.type == "rect"]
    low = figure.layout.xaxis.range[0]
    assert [(b.x0, b.x1) for b in bands] == [(low, 1.1), (0.9, 1.1)]


def test_a_measure_outside_its_margin_is_crossed(quality: pd.DataFrame):
    """The verdict is a mark beside the name, not a colour alone."""
    names = batch_dose.quality_dots(quality, dark=False).layout.yaxis.ticktext
    assert names[0].endswith("<b>✗</b>")
    assert names[1].endswith("✓")
    assert len(names) == 2
    said = batch_dose.quality_alt(quality)
    assert "perplexity 1.200, outside the margin" in said
    assert "length (tokens) 1.000, within the margin" in said
