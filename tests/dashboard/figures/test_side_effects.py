"""The side-effect meter and the batch of generations as data."""

import numpy as np
import pandas as pd
import pytest

from dashboard.figures import side_effects


@pytest.fixture
def batch() -> pd.DataFrame:
    """Seven generations a condition; the suppressed ones score 0.3 lower."""
    scores = np.array([0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0])
    shift = {"baseline": 0.0, "suppressed": -0.3, "random": -0.05}
    return pd.concat(
        pd.DataFrame(
            {
                "condition": condition,
                "classifier_score": scores + by,
                "wordlist_score": (scores + by) / 10,
            }
        )
        for condition, by in shift.items()
    )


def test_the_summary_has_the_mean_inside_its_interval(batch: pd.DataFrame):
    """Each condition of each score once, with its n."""
    summary = side_effects.batch_summary(batch)
    assert len(summary) == 6
    assert (summary["low"] < summary["mean"]).all()
    assert (summary["mean"] < summary["high"]).all()
    assert summary["mean"].tolist()[:3] == pytest.approx([0.7, 0.4, 0.65])
    assert (summary["n"] == 7).all()


def test_a_missing_condition_is_left_out(batch: pd.DataFrame):
    """No number stands where nothing was measured."""
    summary = side_effects.batch_summary(batch[batch["condition"] != "random"])
    assert set(summary["condition"]) == {"baseline", "suppressed"}


def test_every_generation_and_every_control_is_drawn(batch: pd.DataFrame):
    """The random control is in the picture, not in a footnote."""
    figure = side_effects.batch_strips(batch, dark=False)
    drawn = [len(trace.x) for trace in figure.data]
    assert drawn == [7, 7, 7, 3, 7, 7, 7, 3]


def test_the_meter_draws_the_set_above_its_random_controls():
    """Three measures, each with one diamond and the controls; the alt text names both."""
    effects = pd.DataFrame(
        {
            "condition": ["suppressed", "random", "random"],
            "draw": [0, 1, 2],
            "kl": [0.05, 0.01, 0.02],
            "perplexity_before": 40.0,
            "perplexity_after": [44.0, 40.5, 41.0],
            "touched_share": [0.2, 0.1, 0.15],
        }
    )
    figure = side_effects.meter(effects, dark=True)
    assert [len(trace.x) for trace in figure.data] == [1, 2, 1, 2, 1, 2]
    assert "nats per token" in figure.layout.xaxis.title.text
    alt = side_effects.meter_alt(effects)
    assert "KL 0.05 nats per token" in alt
    assert "mean KL 0.015" in alt
