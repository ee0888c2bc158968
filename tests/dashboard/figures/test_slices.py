"""The waterfall as data: it adds up, and says so when it does not."""

from dataclasses import replace

import pandas as pd
import pytest

from dashboard.figures import slices
from engine.live.results import Decomposition, Token


@pytest.fixture
def explained() -> Decomposition:
    """2.0 - 0.5 (shown) + 0.25 (three others) + 1.0 (residual) = 2.75."""
    frame = pd.DataFrame(
        {
            "prototype": [7, 3],
            "label": ["Syntax · <b>", "Words · the"],
            "activation": [0.8, 0.4],
            "logit": [2.0, -0.5],
        }
    )
    return Decomposition(
        tokens=(Token(0, 5, "a"),),
        position=0,
        target_id=11,
        target=" said",
        logit=2.75,
        slices=frame,
        other=0.25,
        n_other=3,
        residual=1.0,
        residual_share=0.2,
        gap_logit=1e-7,
        gap=1e-7 / 3.75,
    )


def test_the_terms_run_from_zero_to_the_logit(explained: Decomposition):
    """Each bar starts where the one before ended; the last ends at the logit."""
    rows = slices.slice_sum(explained).rows
    assert rows["kind"].tolist() == ["prototype", "prototype", "other", "residual"]
    assert rows["start"].tolist() == [0.0, 2.0, 1.5, 1.75]
    assert rows["end"].iloc[-1] == pytest.approx(explained.logit)


def test_the_sum_in_words_names_every_term_and_the_gap(explained: Decomposition):
    """A decomposition that drops its error term would be a lie."""
    sentence = slices.additivity_sentence(slices.slice_sum(explained))
    assert "Shown 2 slices = +1.5" in sentence
    assert "3 other prototypes = +0.25" in sentence
    assert "residual = +1" in sentence
    assert "gap of 1.0e-07" in sentence


@pytest.mark.parametrize("gap", [2e-4, float("nan")])
def test_a_gap_above_the_tolerance_does_not_add_up(explained: Decomposition, gap: float):
    """NaN is no agreement either."""
    assert slices.slice_sum(explained).adds_up
    assert not slices.slice_sum(replace(explained, gap=gap)).adds_up


def test_a_click_on_a_bar_carries_its_prototype(explained: Decomposition):
    """Selections carry ids, never row numbers; others and residual carry none."""
    figure = slices.waterfall(slices.slice_sum(explained), dark=False, selected=3)
    assert [row[0] for row in figure.data[0].customdata] == [7, 3, -1, -1]
    assert list(figure.data[0].marker.line.width) == [0, 2, 0, 0]


def test_signs_are_written_and_not_only_coloured(explained: Decomposition):
    """Colour is never alone."""
    figure = slices.waterfall(slices.slice_sum(explained), dark=True)
    assert list(figure.data[0].text) == ["+2.00", "−0.50", "+0.25", "+1.00"]
    colours = figure.data[0].marker.color
    assert colours[0] != colours[1]
    assert colours[2] == colours[3]


def test_a_label_is_never_read_as_markup(explained: Decomposition):
    """Plotly reads a small HTML dialect in labels."""
    figure = slices.waterfall(slices.slice_sum(explained), dark=False)
    assert "<b>" not in figure.data[0].y[0]
    assert "&lt;b&gt;" in figure.data[0].y[0]


def test_a_contrast_says_which_side_is_which(explained: Decomposition):
    """Positive favours the target, negative the distractor."""
    contrast = replace(explained, distractor_id=12, distractor=" asked")
    terms = slices.slice_sum(contrast)
    assert terms.total_label == "‘·said’ minus ‘·asked’"
    assert "+ for ‘·said’" in terms.axis
    assert "− for ‘·asked’" in terms.axis
