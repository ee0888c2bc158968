"""The side-effect meter and the batch of generations as data."""

import pandas as pd

from dashboard.figures import side_effects


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
