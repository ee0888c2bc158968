"""Figures as data: every one has units, survives hostile names, carries ids."""

from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest

from dashboard.figures import prototype, quality, training
from dashboard.figures.map import COLOURS, prototype_map


HOSTILE = "<script>alert(1)</script>"


def layout(figure: go.Figure) -> Any:
    return figure.layout


def plain(figure: go.Figure) -> str:
    return str(figure.to_json()).encode().decode("unicode_escape")


def map_frame(n: int = 11) -> pd.DataFrame:
    generator = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "prototype": np.arange(n) * 3,
            "label": [HOSTILE] * n,
            "category": [HOSTILE if i % 2 else "Words" for i in range(n)],
            "top_domain": [None if i % 3 else "law" for i in range(n)],
            "firing_rate": generator.random(n) / 100,
            "label_score": [np.nan, *generator.random(n - 1)],
            "unwanted_share": generator.random(n),
            "x": generator.normal(size=n),
            "y": generator.normal(size=n),
        }
    )


@pytest.mark.parametrize("colour", list(COLOURS))
@pytest.mark.parametrize("dark", [True, False])
def test_the_map_carries_ids_and_no_markup(colour: str, dark: bool):
    """A selection is read from `customdata`, never from row positions."""
    frame = map_frame()
    figure = prototype_map(
        frame.iloc[:7], frame.iloc[7:], colour=colour, chosen=3, picked=(3, 6), dark=dark
    )
    points = next(t for t in figure.data if t.name == "prototypes")
    assert points.type == "scattergl"
    assert list(points.customdata) == frame["prototype"].iloc[:7].tolist()
    assert list(points.selectedpoints) == [1, 2]
    assert "<script>" not in plain(figure)


def test_a_large_map_carries_no_text():
    """16,384 labels would be a megabyte that nobody reads."""
    frame = map_frame(16_384)
    figure = prototype_map(
        frame, frame.iloc[:0], colour="category", chosen=None, picked=(), dark=False
    )
    assert len(plain(figure)) < 600_000


def histogram_frame() -> pd.DataFrame:
    edges = np.linspace(0, 1, 6)
    return pd.DataFrame({"low": edges[:-1], "high": edges[1:], "count": [0, 4, 9, 1, 0]})


def test_the_bin_of_the_marked_token_stands_out():
    """0.55 lies in the third bin of five."""
    figure = prototype.activation_histogram(histogram_frame(), dark=False, value=0.55)
    colours = list(figure.data[0].marker.color)
    assert colours.count(colours[2]) == 1
    assert "n = 14" in layout(figure).title.text


def test_a_signature_shows_sign_by_side_and_colour():
    """Raised tokens are blue and right of zero, lowered ones orange and left."""
    frame = pd.DataFrame(
        {
            "side": ["top"] * 3 + ["bottom"] * 3,
            "rank": [0, 1, 2] * 2,
            "token_id": range(6),
            "logit": [3.0, 2.0, 1.0, -3.0, -2.0, -1.0],
            "token": [HOSTILE, "b", "c", "d", "e", "f"],
        }
    )
    figure = prototype.signature_bars(frame, dark=False, n=2)
    assert list(figure.data[0].x) == [3.0, 2.0, -2.0, -3.0]
    assert len(set(figure.data[0].marker.color)) == 2
    assert "<script>" not in str(layout(figure).yaxis.ticktext)


def every_figure() -> list[go.Figure]:
    log = pd.DataFrame(
        {"step": range(1, 30), "cross_entropy": np.linspace(8, 3, 29), "tokens_seen": range(29)}
    )
    met = pd.DataFrame(
        {
            "step": [10, 20],
            "validation_loss": [5.0, 4.0],
            "coverage_r1": [None, 0.9],
            "coverage_r2": [None, 0.9],
            "residual_share": [None, 0.2],
            "pair_cosine": [0.1, 0.1],
            "dead_share": [None, 0.0],
        }
    )
    arms = pd.DataFrame(
        {
            "arm": ["a", HOSTILE],
            "reconstruction_weight": [0.1, 0.1],
            "prototype_to_token_weight": [0.1, 1.5],
            "validation_loss": [3.1, 3.2],
            "dense_loss": [3.0, 3.0],
            "coverage_r1": [0.8, 0.9],
            "coverage_r2": [0.8, 0.9],
            "residual_share": [0.1, 0.2],
            "dead_share": [0.0, 0.1],
        }
    )
    banks = pd.DataFrame(
        {
            "bank": ["trained", "random"],
            "coverage_r1": [0.9, 0.3],
            "coverage_r2": [0.9, 0.3],
            "residual_share": [0.1, 0.7],
            "tokens_scanned": [100_003, 100_003],
        }
    )
    losses = pd.DataFrame(
        {
            "model": ["prism", "dense"],
            "domain": [HOSTILE] * 2,
            "loss": [3.1, 3.0],
            "n_tokens": [7, 7],
        }
    )
    domains = pd.DataFrame(
        {
            "domain": [HOSTILE, "law"],
            "share": [0.7, 0.3],
            "lift": [2.0, 0.5],
            "n_active_tokens": [7, 3],
        }
    )
    return [
        training.loss_curve(log, met, dark=False),
        training.loss_curve(log, met.iloc[:0], dark=True),
        training.coverage_curve(met, dark=False),
        quality.tradeoff(arms, dark=True),
        quality.coverage_banks(banks, dark=False),
        quality.loss_by_domain(losses, dark=True),
        quality.label_scores(map_frame().assign(random_label_score=0.5), dark=False),
        prototype.activation_histogram(histogram_frame(), dark=False),
        prototype.domain_bars(domains, dark=True),
    ]


def test_a_fit_without_cross_entropy_draws_the_losses_of_the_bank():
    """A retrofit trains nothing but the bank: its picture must not be an empty loss curve."""
    log = pd.DataFrame(
        {
            "tokens_seen": [3, 5, 7],
            "cross_entropy": [None, None, None],
            "reconstruction": [0.5, 0.4, 0.3],
            "prototype_to_token": [0.2, 0.1, 0.05],
            "token_to_prototype": [0.3, 0.2, 0.11],
        }
    )
    figure = training.bank_loss_curve(log, dark=False)
    assert {trace.name: list(trace.y) for trace in figure.data} == {
        "REC": [0.5, 0.4, 0.3],
        "R1": [0.2, 0.1, 0.05],
        "R2": [0.3, 0.2, 0.11],
    }


@pytest.mark.parametrize("place", range(9))
def test_every_figure_names_its_axis_and_its_n(place: int):
    """A number without a unit says nothing; a name of the data is never markup."""
    figure = every_figure()[place]
    assert layout(figure).xaxis.title.text
    assert layout(figure).title.text
    assert "<script>" not in plain(figure)
