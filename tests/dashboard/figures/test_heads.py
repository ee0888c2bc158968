"""Figures of attention heads as data: what is drawn where, with which sign, n and unit."""

import numpy as np
import pandas as pd
import pytest

from dashboard import head_tails, theme
from dashboard.figures import heads, heads_emergence, heads_influence, heads_panels
from dashboard.figures.heads import Marks
from dashboard.head_tails import SymmetricLog


HOSTILE = "<script>alert(1)</script>"
MARKS = Marks("1.0", {"1.0": "induction", "0.1": "previous_token"})


def atlas_rows() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "layer": [0, 0, 1, 1],
            "head": [0, 1, 0, 1],
            "name": ["0.0", "0.1", "1.0", "1.1"],
            "prefix_matching": [0.02, 0.05, 0.71, 0.1],
            "previous_token": [0.1, 0.6, 0.0, 0.0],
            "duplicate_token": [0.0, 0.0, 0.0, 0.3],
            "gini": [0.5, np.nan, 0.8, 0.6],
        }
    )


def values() -> np.ndarray:
    generator = np.random.default_rng(3)
    return np.concatenate([generator.pareto(1.5, 97), -generator.pareto(1.5, 53), [np.nan]])


@pytest.mark.parametrize("dark", [True, False])
def test_an_atlas_writes_scores_and_marks_and_a_click_names_the_head(dark: bool):
    """The cells, the heads that were chosen, and the place of each head for a click."""
    figure = heads.atlas(atlas_rows(), "prefix_matching", MARKS, dark=dark, subtitle="seed 0")
    grid, cells = figure.data
    assert np.array(grid.z).tolist() == [[0.02, 0.05], [0.71, 0.1]]
    assert grid.text[1][0] == "0.71<br>◆"
    assert grid.text[0][1] == "0.05<br>■"
    assert [int(c[0]) for c in cells.customdata] == [0, 1, 2, 3]
    box = figure.layout.shapes[0]
    assert (box.x0 + box.x1) / 2 == 0
    assert (box.y0 + box.y1) / 2 == 1
    assert figure.layout.xaxis.range == (-0.5, 1.5)
    assert figure.layout.yaxis.range == (1.5, -0.5)
    assert "1.0 0.71" in heads.atlas_alt(atlas_rows(), "prefix_matching")


def test_many_heads_are_marked_and_not_written_over():
    """Numbers that overlap say nothing."""
    places = [(layer, head) for layer in range(11) for head in range(13)]
    rows = pd.DataFrame(places, columns=["layer", "head"])
    rows["name"] = [f"{layer}.{head}" for layer, head in places]
    for metric in ("prefix_matching", "previous_token", "duplicate_token"):
        rows[metric] = 0.1
    figure = heads.atlas(rows, "prefix_matching", MARKS, dark=False, subtitle="")
    assert {cell for line in figure.data[0].text for cell in line} == {"", "◆", "■"}


def test_heads_without_a_value_are_left_out_of_the_scatter_and_counted():
    """Ids of a click are places in the rows given, not in those drawn."""
    figure = heads.head_scatter(
        atlas_rows(), ("prefix_matching", "Score"), ("gini", "Gini"), MARKS, dark=False
    )
    assert [int(c[0]) for c in figure.data[0].customdata] == [0, 2, 3]
    assert "n = 3 heads; 1 without a value left out" in figure.layout.title.text


def test_of_many_heads_the_chosen_ones_and_the_ends_are_named():
    """Names that cover one another say nothing; the pointer tells the rest."""
    rows = pd.DataFrame(
        {
            "name": [f"0.{at}" for at in range(11)],
            "prefix_matching": np.linspace(0, 1, 11),
            "gini": [0.5, 0.9, *[0.5] * 7, 0.1, 0.5],
        }
    )
    marks = Marks("0.4", {"0.6": "induction"})
    axes = ("prefix_matching", "Score"), ("gini", "Gini")
    trace = heads.head_scatter(rows, *axes, marks, dark=False).data[0]
    assert [name for name in trace.text if name] == ["0.0", "0.1", "0.4", "0.6", "0.9", "0.10"]
    assert list(trace.hovertext) == rows["name"].tolist()
    few = heads.head_scatter(rows.head(8), *axes, marks, dark=False).data[0]
    assert list(few.text) == rows["name"].tolist()[:8]


def test_attention_hides_what_a_token_cannot_see_and_escapes_its_text():
    """A causal pattern has no upper half; a token of the data is never markup."""
    pattern = np.tril(np.full((3, 3), 0.25))
    pattern[2, 0] = 0.9
    figure = heads.attention_map(pattern, ["a", HOSTILE, "\n"], "1.0", dark=True)
    grid = np.array(figure.data[0].z)
    assert np.isnan(grid[0, 1])
    assert grid[2, 0] == 0.9
    assert "<script>" not in str(figure.to_json()).encode().decode("unicode_escape")
    assert "2 ‘⏎’ to 0 ‘a’ 0.90" in heads.attention_alt(pattern, ["a", HOSTILE, "\n"], "1.0")


def test_influence_is_blue_right_of_zero_and_orange_left_of_it():
    """Position says the sign as well; the sentence says what it means; a click gives the bin."""
    scale = SymmetricLog.over(values())
    figure = heads_influence.histogram(values(), scale, "1.0", dark=False, chosen=40)
    bars = figure.data[0]
    colours = dict(zip(np.sign(bars.x), bars.marker.color, strict=True))
    assert colours == {1.0: theme.LIGHT.raises, -1.0: theme.LIGHT.lowers}
    assert [int(row[0]) for row in bars.customdata] == list(range(head_tails.BINS))
    assert np.nansum(np.array(bars.y, float)) == 150
    assert figure.layout.yaxis.type == "log"
    assert "symmetric-log" in figure.layout.xaxis.title.text
    assert "raises the head's score" in figure.layout.xaxis.title.text
    assert "97 raise" in figure.layout.title.text
    assert list(bars.marker.line.width).index(2.5) == 40


def test_the_tail_draws_the_fit_of_the_table_and_fits_nothing_itself():
    """Its exponent stands in the subtitle; a side without a fit has no line."""
    fits = pd.DataFrame(
        [{"sign": "positive", "exponent": 2.5, "low": 2.3, "high": 2.8, "xmin": 1.0, "n_tail": 41}]
    )
    figure = heads_influence.tail_plot(values(), fits, dark=True)
    lines = [trace for trace in figure.data if trace.mode == "lines"]
    assert [line.name for line in lines] == ["raises, fitted"]
    slope = np.diff(np.log(np.array(lines[0].y))) / np.diff(np.log(np.array(lines[0].x)))
    assert slope == pytest.approx(-1.5)
    assert "raises: α = 2.50 [2.30, 2.80], tail of n = 41" in figure.layout.title.text
    assert "lowers: no fit" in heads_influence.tail_alt(fits)


def test_ranks_and_shares_have_a_line_a_sign_with_a_dash_of_its_own():
    """Colour is never alone."""
    ranks = heads_influence.rank_plot(values(), dark=False)
    assert [t.line.dash for t in ranks.data] == ["solid", "dot"]
    assert ranks.data[0].y[0] == np.nanmax(values())
    shares = heads_influence.share_curve(values(), dark=False)
    carried = head_tails.carried_by(head_tails.side(values(), "positive"), 0.1)
    assert f"top 10 % carry {carried:.0%} (raises)" in shares.layout.title.text


def test_one_samples_influence_names_every_head():
    """Its sign is the colour and the side of zero."""
    figure = heads_influence.by_head(pd.Series({"0.0": -1.0, "1.0": 2.0}), "1.0", dark=False)
    assert list(figure.data[0].marker.color) == [theme.LIGHT.lowers, theme.LIGHT.raises]
    assert list(figure.data[0].marker.line.width) == [0, 2.5]


def curves() -> pd.DataFrame:
    return pd.DataFrame(
        [
            {"panel": panel, "seed": seed, "arm": arm, "step": x + 100, "x": x, "value": 0.1 * x}
            for panel in ("induction", "icl")
            for arm in ("baseline", "delete_top")
            for seed in (0, 1)
            for x in (0, 1, 2)
        ]
    )


def test_emergence_stacks_its_rows_over_one_axis_with_a_band_for_each_arm():
    """The window is shaded in every row, each arm has one entry of the legend."""
    bands = curves().groupby(["panel", "arm", "x"])["value"].mean().rename("mean").reset_index()
    bands = bands.assign(low=bands["mean"] - 1, high=bands["mean"] + 1, n=2)
    figure = heads_emergence.emergence(
        bands, curves(), ["induction", "icl"], dark=False, along="x", axis="steps",
        window=(0, 2), each_seed=False,
    )  # fmt: skip
    legend = [t.name for t in figure.data if t.showlegend]
    assert legend == ["baseline", "delete top"]
    assert len([t for t in figure.data if t.fill == "toself"]) == 4
    (window,) = figure.layout.shapes
    assert (window.x0, window.x1, window.yref) == (0, 2, "paper")
    assert {t.xaxis for t in figure.data if t.fill == "toself"} == {None, "x2"}
    assert "Induction" in figure.layout.yaxis.title.text
    assert "nats" in figure.layout.yaxis2.title.text
    seeds = heads_emergence.emergence(
        bands, curves(), ["induction"], dark=True, along="x", axis="steps", window=None,
        each_seed=True,
    )  # fmt: skip
    assert [t.name for t in seeds.data if "seed 1" in (t.name or "")] == [
        "baseline, seed 1",
        "delete top, seed 1",
    ]


def effects() -> pd.DataFrame:
    return pd.DataFrame(
        [
            ("delete_top", "score", -0.2, -0.3, -0.1),
            ("delete_random", "score", 0.01, -0.05, 0.06),
            ("delete_top", "delay", 9.0, np.nan, np.nan),
        ],
        columns=["arm", "measure", "effect", "low", "high"],
    ).assign(unit="induction", n_seeds=5)


def test_an_effect_is_filled_only_where_its_interval_leaves_out_zero():
    """An interval that is not known does not leave out anything."""
    figure = heads_emergence.effects(
        effects(), ["score", "delay"], dark=False, title="Effects", subtitle="n = 5"
    )
    score, delay = figure.data[0], figure.data[1]
    assert list(score.y) == ["delete top", "delete random"]
    assert list(score.marker.symbol) == ["diamond", "diamond-open"]
    assert delay.marker.symbol[0] == "diamond-open"
    assert list(figure.layout.xaxis.tickvals) == [-0.2, 0]
    assert list(figure.layout.xaxis2.tickvals) == [0, 5]
    assert "[-0.3, -0.1]" in heads_emergence.effects_alt(effects(), "score")
    kinds = heads_emergence.effects_by_kind(
        effects()[lambda f: f["measure"] == "score"], ["induction"], dark=True
    )
    assert "n = 5 seeds" in kinds.layout.title.text


def test_structures_are_drawn_against_their_base_rate():
    """1 is no more than among all; a structure that never occurs has no place on the axis."""
    rows = pd.DataFrame(
        {
            "tag": ["repeat", "code", HOSTILE, "repeat"],
            "sign": ["positive", "positive", "positive", "negative"],
            "enrichment": [2.5, 0.4, 0.0, 0.8],
            "low": [2.0, -0.3, 0.0, 0.7],
            "high": [3.0, 0.5, 0.1, 0.9],
            "share": 0.2,
            "base": 0.1,
        }
    )
    figure = heads_panels.enrichment(rows, dark=False, subtitle="n = 5 seeds")
    assert figure.layout.xaxis.type == "log"
    assert list(figure.data[0].x) == [2.5, 0.4]
    assert figure.data[0].error_x.arrayminus[1] == pytest.approx(0.4 - heads_panels.TIMES[0])
    low, high = 10 ** np.array(figure.layout.xaxis.range)
    assert 0 < low < 0.4
    assert high > 3
    assert "<script>" not in str(figure.to_json()).encode().decode("unicode_escape")
    assert "repeat 2.50, code 0.40" in heads_panels.enrichment_alt(rows)


def test_an_overlap_that_is_not_known_is_an_empty_cell():
    """The matrix names the chosen heads; rank correlation has two colours, a share has one."""
    rows = pd.DataFrame(
        [("0.1", "0.1", 1.0), ("0.1", "1.0", np.nan), ("1.0", "0.1", 0.2), ("1.0", "1.0", 1.0)],
        columns=["name", "other", "overlap"],
    ).assign(spearman=lambda f: -f["overlap"])
    figure = heads_panels.overlap_matrix(rows, "overlap", MARKS.kinds, dark=False, subtitle="")
    grid = np.array(figure.data[0].z, float)
    assert np.isnan(grid[0, 1])
    assert list(figure.data[0].y) == ["0.1 ■", "1.0 ◆"]
    assert figure.data[0].zmin == 0
    ranks = heads_panels.overlap_matrix(rows, "spearman", {}, dark=True, subtitle="")
    assert ranks.data[0].zmin == -1


def test_mixtures_are_ordered_by_their_share_of_repeats():
    """Every seed is drawn, for no two form heads at once; the last scores are said in words."""
    rows = pd.DataFrame(
        [
            {"mixture": name, "repeat_share": share, "seed": seed, "step": step,
             "tokens_seen": 1000 * step, "prefix_matching": share * step / 2}
            for name, share in (("much", 0.3), ("none", 0.0))
            for seed in (0, 1)
            for step in (1, 2)
        ]
    )  # fmt: skip
    figure = heads_panels.mixtures(rows, ["prefix_matching"], dark=False)
    assert [t.name for t in figure.data if t.showlegend] == ["none (2 seeds)", "much (2 seeds)"]
    assert len(figure.data) == 4
    assert "million tokens" in figure.layout.xaxis.title.text
    assert "much 0.30" in heads_panels.mixtures_alt(rows, "prefix_matching")


def test_transfer_draws_the_chosen_head_beside_the_others():
    """Three marks an arm, each of its own shape."""
    rows = pd.concat([effects().assign(measure=m) for m in ("score", "same_kind", "other_kind")])
    rows = rows.drop_duplicates(["arm", "measure"])
    figure = heads_panels.kinds_dots(rows, dark=False, subtitle="")
    assert [t.marker.symbol for t in figure.data] == ["circle", "diamond", "square"]
    assert list(figure.layout.yaxis.ticktext) == ["delete top", "delete random"]
