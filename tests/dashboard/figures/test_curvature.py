"""Figures of curvature as data: what is drawn where, with which n and unit."""

import numpy as np
import pandas as pd
import pytest

from dashboard import theme
from dashboard.figures import curvature, curvature_strength


HOSTILE = "<script>alert(1)</script>"


def cells() -> pd.DataFrame:
    names = ["small", HOSTILE]
    return pd.DataFrame(
        {
            "category": [names[0], names[0], names[1], names[1]],
            "other": [names[0], names[1], names[0], names[1]],
            "n_pairs": [0, 7, 7, 42],
            "mass": [0.0, 2.0, 2.0, 12.0],
            "share": [0.0, 0.125, 0.125, 0.75],
            "expected_share": [0.0, 0.25, 0.25, 0.5],
        }
    )


def arms(spread: float = 20.0) -> pd.DataFrame:
    rows = [
        {
            "arm": f"{seed}-{weight:g}",
            "seed": seed,
            "prototype_to_token_weight": weight,
            "token_to_prototype_weight": weight,
            "validation_loss": 3.3,
            "dense_loss": 3.0,
            "participation_ratio": spread - weight,
            "dense_participation_ratio": 40.0,
            "coverage_r2": 0.9,
            "dead_share": 0.0,
            "n_prototypes": 19,
            "d_model": 23,
            "tokens": 10_007,
        }
        for seed in (3, 5)
        for weight in (0.0, 0.5, 5.0)
    ]
    return pd.DataFrame(rows)


def figures() -> pd.DataFrame:
    table = arms()
    weight = table["prototype_to_token_weight"]
    return pd.DataFrame(
        {
            "arm": table["arm"],
            "term": "bank",
            "mean_eigenvalue": 2.0,
            "coupling": 0.8 / (1 + weight) + 0.01 * table["seed"],
            "coupling_normalised": 0.5,
            "block_diagonal_share": np.nan,
            "condition_number": 100 / (1 + weight),
        }
    )


@pytest.mark.parametrize("dark", [True, False])
def test_co_usage_is_drawn_by_order_of_magnitude_with_the_largest_category_first(dark: bool):
    """An empty cell is empty, not the smallest; a name of the data is never markup."""
    figure = curvature.cousage_map(cells(), 10_007, chance=False, dark=dark)
    grid = np.array(figure.data[0].z)
    assert grid[0] == pytest.approx([np.log10(0.75), np.log10(0.125)])
    assert np.isnan(grid[1, 1])
    assert "n = 10,007" in figure.layout.title.text
    assert "<script>" not in str(figure.to_json()).encode().decode("unicode_escape")


def test_against_chance_blue_is_more_and_orange_less():
    """Twice and half of chance lie as far from grey on either side."""
    figure = curvature.cousage_map(cells(), 7, chance=True, dark=False)
    grid = np.array(figure.data[0].z)
    assert grid[0] == pytest.approx([np.log2(1.5), -1])
    scale = figure.data[0].colorscale
    assert (scale[0][1], scale[-1][1]) == (theme.LIGHT.lowers, theme.LIGHT.raises)
    assert figure.data[0].zmin == -figure.data[0].zmax


def test_a_spectrum_is_drawn_over_its_mean_and_without_what_is_not_positive():
    """A zero has no place on a logarithmic axis; ranks count from 1 there."""
    frame = pd.DataFrame(
        {
            "term": "bank",
            "rank": [0, 1, 2, 3],
            "eigenvalue": [8.0, 2.0, 0.0, -1e-9],
            "mean_eigenvalue": 4.0,
        }
    )
    figure = curvature.spectra(
        frame,
        [("bank", HOSTILE, "#123456", "solid")],
        key="term",
        title="Spectrum",
        subtitle="n = 4",
        dark=False,
    )
    assert list(figure.data[0].x) == [1, 2]
    assert list(figure.data[0].y) == [2.0, 0.5]
    assert figure.layout.xaxis.type == figure.layout.yaxis.type == "log"
    assert "<script>" not in str(figure.to_json()).encode().decode("unicode_escape")
    assert "from 2 to 0.5" in curvature.spectra_alt(figure)


def test_small_multiples_share_the_weights_and_keep_each_seed_in_sight():
    """A mean of seeds must not hide them; weights are places, so 0 has one."""
    rows = curvature_strength.joined(arms(), figures())
    figure = curvature_strength.strength(rows, dark=False)
    coupling = [t for t in figure.data if t.xaxis == "x"]
    assert [t.name for t in coupling] == ["seed 3", "seed 5", "mean"]
    assert list(coupling[-1].x) == ["0", "0.5", "5"]
    assert coupling[-1].y[0] == pytest.approx(0.84)
    assert "n = 6 arms: 3 weights × 2 seeds, K 19, d 23" in figure.layout.title.text
    assert figure.layout.yaxis4.type == "log"
    assert [figure.layout[f"yaxis{n}"].title.text for n in (5, 6)] == ["%", "participation ÷ dense"]
    empty = [t for t in figure.data if t.xaxis == "x3"]
    assert [len(t.x) for t in empty] == [0]
    assert any(a.text == "not measured for this term" for a in figure.layout.annotations)


def test_collapse_is_read_against_the_dense_run_of_the_arm():
    """Loss above it in per cent, spread as a ratio."""
    rows = curvature_strength.joined(arms(), figures())
    assert rows["loss_above"].unique() == pytest.approx([10.0])
    assert rows["spread"].tolist()[:3] == pytest.approx([0.5, 19.5 / 40, 15 / 40])
    said = curvature_strength.strength_alt(rows)
    assert "Coupling 0.84 to" in said
    assert "block diagonal" not in said


def test_the_ramp_ends_at_the_accent():
    """The strongest clustering has the page's colour."""
    shades = curvature.ramp(5, theme.LIGHT)
    assert len(set(shades)) == 5
    assert shades[-1].upper() == theme.LIGHT.accent.upper()
    assert curvature.ramp(1, theme.DARK) == [theme.DARK.accent.lower()]


def test_a_share_of_nothing_but_zeros_has_no_axis_below_zero():
    """No share of a bank is negative."""
    rows = curvature_strength.joined(arms(), figures())
    assert (rows["dead_share"] == 0).all()
    figure = curvature_strength.strength(rows, dark=False)
    assert figure.layout.yaxis8.title.text == "share of the bank"
    assert list(figure.layout.yaxis8.range) == [-0.05, 1]
    assert figure.layout.yaxis6.range is None
