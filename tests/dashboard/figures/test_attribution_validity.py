"""Validity of scores as data: intervals, order, the noise ceiling."""

import numpy as np
import pandas as pd
import pytest

from dashboard import theme
from dashboard.figures import attribution_validity as figures


AXES = {"all": "LDS over all", "within": "LDS within a domain"}


@pytest.fixture
def rows() -> pd.DataFrame:
    """Three methods, two panels; one method is not measured within domains."""
    return pd.DataFrame(
        {
            "method": ["random", "cached", "EK-FAC"] * 2,
            "panel": ["all"] * 3 + ["within"] * 3,
            "value": [0.01, 0.42, 0.35, -0.02, 0.3, np.nan],
            "low": [-0.05, 0.36, 0.3, -0.1, 0.2, np.nan],
            "high": [0.07, 0.48, 0.4, 0.06, 0.4, np.nan],
        }
    )


def dots(rows: pd.DataFrame, **changes):
    settings = {
        "dark": False,
        "title": "LDS",
        "subtitle": "n = 7",
        "axes": AXES,
        "ceilings": {"all": (0.6, 0.55, 0.65)},
        "chosen": "cached",
    }
    return figures.interval_dots(rows, **{**settings, **changes})


def test_methods_stand_best_first_in_every_panel(rows: pd.DataFrame):
    """One order for all panels, so that a row is one method."""
    first, second = dots(rows).data
    assert list(first.y) == list(second.y) == ["cached", "EK-FAC", "random"]
    assert first.marker.symbol[0] == "diamond"
    assert first.marker.color[0] == theme.LIGHT.accent
    assert list(first.error_x.array) == pytest.approx([0.06, 0.05, 0.06])


def test_what_was_not_measured_is_no_dot_at_zero(rows: pd.DataFrame):
    """A gap stays a gap."""
    second = dots(rows).data[1]
    assert np.isnan(second.x[1])
    assert second.text[1] == ""


def test_the_noise_ceiling_is_drawn_where_it_was_measured(rows: pd.DataFrame):
    """A line with its interval as a band, named; no line in the panel without one."""
    figure = dots(rows)
    words = [note.text for note in figure.layout.annotations]
    assert words == ["noise ceiling 0.60"]
    bands = [shape for shape in figure.layout.shapes if shape.type == "rect"]
    assert [(b.x0, b.x1, b.xref) for b in bands] == [(0.55, 0.65, "x")]
    assert figure.layout.xaxis.range[1] > 0.65


def test_the_alt_text_names_the_best_first(rows: pd.DataFrame):
    """Readers who do not see the dots hear the order and the intervals."""
    said = figures.interval_alt(rows, "all", "LDS over all")
    assert said.startswith("LDS over all, best first: cached 0.42 [0.36, 0.48]; EK-FAC")


def test_a_score_that_rounds_to_nothing_has_no_minus():
    """Chance is 0.00, on either side of it."""
    assert figures.two_decimals(-0.004) == "0.00"
    assert figures.two_decimals(-0.125) == "−0.12"
