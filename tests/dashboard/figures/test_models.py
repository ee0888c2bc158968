"""Figures of models and their lineage as data: what is drawn where, with which stroke and unit."""

import numpy as np
import pandas as pd
import pytest

from dashboard import theme
from dashboard.figures import lineage as graphs, model_marks as marks, models_map, models_results
from dashboard.figures.lineage import Shown
from dashboard.figures.models_map import DrawnEdges, OnMap, Said
from dashboard.figures.models_tree import heatmap, lineage_colours, models_tree
from dashboard.lineage import Lineage, graph_layout
from dashboard.model_trees import tree_of


HOSTILE = "<script>alert(1)</script>"


def catalogue() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "model": ["o/base", "o/chat", "o/tune", "o/alone"],
            "label": ["f", "f", "f", "g"],
            "relation": ["base", "instruct", "finetune", "base"],
            "evidence": ["missing", "checked", "unchecked", "missing"],
            "n_parameters": [7e9, 7e9, 7e9, 0],
            "hover": ["base", "chat", HOSTILE, "alone"],
        }
    )


def graph(shown: Shown, dark: bool = False):
    rows = catalogue()
    parents = {"o/base": (), "o/chat": ("o/base",), "o/tune": ("o/gone",), "o/alone": ()}
    lineage = Lineage(parents)
    layout = graph_layout(lineage, dict(zip(rows["model"], rows["label"], strict=True)), {})
    shades = marks.by_group(rows["label"], theme.palette(dark))
    return graphs.lineage_graph(
        rows, lineage, layout, shades, shown, dark=dark, title="t", subtitle="n"
    )


def traced(figure, name: str):
    return next(trace for trace in figure.data if trace.name == name)


@pytest.mark.parametrize("dark", [True, False])
def test_edges_are_strong_where_a_source_is_named_and_faint_where_not(dark: bool):
    """Stroke is how it was made, strength is the evidence."""
    figure = graph(Shown("", frozenset(), frozenset()), dark)
    lines = [t for t in figure.data if t.mode == "lines" and t.x[0] is not None]
    by_dash = {trace.line.dash: trace for trace in lines}
    assert set(by_dash) == {"dash", "solid"}
    assert by_dash["dash"].opacity > by_dash["solid"].opacity
    assert by_dash["dash"].line.width > by_dash["solid"].line.width


def test_a_click_names_the_row_and_ancestors_from_outside_are_hollow():
    """Ids in `customdata`; what is not listed cannot be mistaken for a listed model."""
    figure = graph(Shown("o/chat", frozenset({"o/alone"}), frozenset({"o/base"})))
    models = traced(figure, "models")
    assert [int(k[0]) for k in models.customdata] == [0, 1, 2, 3]
    assert traced(figure, "outside").marker.color == "rgba(0,0,0,0)"
    assert len(traced(figure, "outside").x) == 1
    assert models.marker.color[3].endswith(",0.13)")
    assert models.marker.color[0].endswith(",1)")
    assert len(traced(figure, "embedded").x) == 1
    assert "<script>" not in str(figure.to_json()).encode().decode("unicode_escape")


def test_the_graph_carries_its_legends_and_says_it_in_words():
    """A saved picture explains itself; a screen reader hears the numbers."""
    figure = graph(Shown("", frozenset(), frozenset()))
    named = {t.legend: [] for t in figure.data if t.showlegend}
    for trace in figure.data:
        if trace.showlegend:
            named[trace.legend].append(trace.name)
    assert named["legend"] == ["f 3", "g 1"]
    assert "not listed" in named["legend2"]
    assert "strong: a source is named" in named["legend3"]
    lineage = Lineage({"a": (), "b": ("a",)})
    said = graphs.lineage_alt(catalogue(), lineage, graph_layout(lineage, {"a": "f"}, {}))
    assert "4 models and 1 documented edges" in said


def rows() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "place": [0, 1, 2, 3],
            "model": ["root", "child", "far", "unplaced"],
            "x": [0.0, 1.0, 5.0, np.nan],
            "y": [0.0, 1.0, 5.0, np.nan],
            "relation": ["root", "lora", "root", "root"],
            "root": ["root", "root", "far", ""],
            "n_parameters": [1e5, 1e6, 1e7, 0],
            "added": [False, True, False, False],
            "hover": ["root", HOSTILE, "far", "unplaced"],
        }
    )


def test_wrong_predictions_have_a_stroke_and_a_cross_of_their_own():
    """Halfway between model and base; right ones have none."""
    edges = DrawnEdges(
        documented=np.array([[0, 1]]), right=np.array([[0, 1]]), wrong=np.array([[0, 2]])
    )
    everything = OnMap(0, np.ones(4, bool), marked=(2,))
    figure = models_map.models_map(
        rows(), marks.by_group(rows()["root"], theme.LIGHT), edges, everything, dark=False,
        said=Said("t", "n"),
    )  # fmt: skip
    cross = traced(figure, "wrong")
    assert (cross.x[0], cross.y[0]) == (2.5, 2.5)
    dashes = {t.name: t.line.dash for t in figure.data if t.mode == "lines" and t.x[0] is not None}
    assert dashes["documented, weights"] == "solid"
    assert dashes["predicted, wrong (✕)"] == "dot"
    assert len(traced(figure, "marked").x) == len(traced(figure, "added later").x) == 1
    models = traced(figure, "models")
    assert [int(k[0]) for k in models.customdata] == [0, 1, 2]
    assert "&lt;script&gt;" in models.hovertext[1]
    assert "1 wrong" in models_map.map_alt(rows(), edges, "UMAP")


def test_what_filters_and_lasso_leave_out_is_faded_not_gone():
    """A model that is hidden keeps its place."""
    on_map = OnMap(None, np.array([True, False, True, True]), picked=(0,))
    figure = models_map.models_map(
        rows(), marks.by_group(rows()["root"], theme.LIGHT), DrawnEdges(), on_map, dark=True,
        said=Said("t", "n"),
    )  # fmt: skip
    shades = [c.rpartition(",")[2] for c in traced(figure, "models").marker.color]
    assert shades == ["0.95)", "0.14)", "0.14)"]
    assert [note.text for note in figure.layout.annotations] == ["root"]


def test_sizes_grow_with_the_logarithm_and_unknown_ones_are_smallest():
    """Hand-computed: 10^5, 10^6, 10^7 lie at the ends and in the middle."""
    found = marks.sizes([1e5, 1e6, 1e7, 0], 6, 14)
    assert found.tolist() == pytest.approx([6, 10, 14, 6])
    assert marks.sizes([0, 0], 6, 14).tolist() == [10, 10]


def test_numbers_without_a_value_are_grey_and_the_scale_has_units():
    """A missing score is no low score."""
    shades = marks.by_number([0.1, np.nan, 0.9], "share", theme.LIGHT)
    assert shades.colours[1] == theme.LIGHT.faint
    assert shades.colours[0] != shades.colours[2]
    assert shades.bar is not None
    assert shades.bar["colorbar"]["title"]["text"] == "share"
    assert marks.by_number([], "share", theme.LIGHT).colours == []


def test_twelve_hues_at_most_and_nothing_stated_is_grey():
    """Thirteen groups: the smallest is grey, and so is an empty label."""
    values = [f"g{k}" for k in range(13) for _ in range(20 - k)] + [""]
    shades = marks.by_group(values, theme.DARK)
    assert shades.colours[-1] == shades.colours[-2] == theme.DARK.rest
    assert [name for name, *_ in shades.groups[-2:]] == ["1 more", "not stated"]
    assert len({c for _, c, _ in shades.groups}) == 13


@pytest.mark.parametrize(
    ("n", "said"), [(0, "unknown"), (97, "97"), (1_500, "1.5k"), (7.24e9, "7.24B")]
)
def test_parameters_are_written_as_people_do(n: float, said: str):
    """7.2B and not 7240000000."""
    assert marks.parameters_text(n) == said


def small_tree():
    table = pd.DataFrame(
        {
            "node": range(9),
            "parent": pd.array([5, 5, 6, 7, 7, 6, 8, 8, None], dtype="Int32"),
            "length": [0.2] * 9,
            "model": ["a1", "a2", "b1", "a3", HOSTILE, "", "", "", ""],
        }
    )
    return tree_of(table, {"a1": "a", "a2": "a", "a3": "a", "b1": "b", HOSTILE: "b"})


def test_the_tree_marks_wrong_edges_and_colours_clades_of_one_root_alone():
    """Mixed clades are thin and grey."""
    tree = small_tree()
    figure = models_tree(tree, {"a1": "root"}, "a1", dark=False, subtitle="n")
    assert len(traced(figure, "wrong").x) == 2
    assert [int(k[0]) for k in traced(figure, "models").customdata] == [0, 1, 2, 3, 4]
    grey = [t for t in figure.data if t.mode == "lines" and t.line.color == theme.LIGHT.rest]
    assert {t.line.width for t in grey if t.x[0] is not None} == {0.9}
    keys = {t.name: t.line.width for t in figure.data if t.showlegend and t.mode == "lines"}
    assert keys["other roots, thick"] > keys["mixed or unknown, thin"]
    assert figure.layout.legend.itemsizing == "trace"
    assert set(lineage_colours(tree, theme.LIGHT)) == {"a", "b"}
    assert "<script>" not in str(figure.to_json()).encode().decode("unicode_escape")


def test_the_heat_map_boxes_models_of_one_root_that_stand_together():
    """Three in a row make a box; two do not."""
    cosines = np.eye(5)
    names = ["a", "b", "c", "d", "e"]
    figure = heatmap(cosines, names, ["r", "r", "r", "s", "s"], dark=False, subtitle="n")
    assert len(figure.layout.shapes) == 1
    assert (figure.layout.shapes[0].x0, figure.layout.shapes[0].x1) == (-0.5, 2.5)
    assert figure.data[0].zmax == 1


def test_bars_show_one_sd_or_an_interval_and_chance():
    """Whichever the table has; baselines that know labels alone are grey."""
    table = pd.DataFrame(
        {
            "method": ["able", "tokenizer", "phylolm"],
            "value": [0.8, 0.7, 0.6],
            "sd": [0.04, np.nan, np.nan],
            "low": [np.nan, 0.5, np.nan],
            "high": [np.nan, 0.75, np.nan],
            "n": [31, 31, 31],
        }
    )
    down, up = models_results.spread(table)
    assert down.tolist() == pytest.approx([0.04, 0.2, 0])
    assert up.tolist() == pytest.approx([0.04, 0.05, 0])
    figure = models_results.method_bars(table, "auc", dark=False, title="t", subtitle="n")
    shades = {bar.name: bar.marker.color for bar in figure.data}
    assert shades["Labels alone"] == theme.LIGHT.rest
    assert any(shape.x0 == 0.5 for shape in figure.layout.shapes)
    assert "ABLE 0.80" in models_results.bars_alt(table, "auc", "all")


def test_shares_with_their_spread_stay_between_0_and_1():
    """A rate of 0.02 with an sd of 0.1 does not reach below nothing."""
    table = pd.DataFrame(
        {"method": ["able"], "group": ["hard:twin"], "value": [0.02], "sd": [0.1], "low": [None],
         "high": [None], "n": [7]}
    )  # fmt: skip
    figure = models_results.group_dots(
        table, ["able"], dark=True, title="t", subtitle="n", axis="share"
    )
    assert figure.data[0].error_x.arrayminus[0] == pytest.approx(0.02)
    assert figure.layout.yaxis.ticktext == ("twin roots",)


def test_stability_has_a_panel_a_study_with_the_settings_as_ticks():
    """Settings are few and far apart, so they are the ticks."""
    table = pd.DataFrame(
        {"study": ["noise"] * 3, "x": [0.001, 0.01, 0.1], "measure": ["distance"] * 3,
         "value": [0.1, 0.2, 0.3], "low": [0.1] * 3, "high": [None, 0.3, 0.4]}
    )  # fmt: skip
    figure = models_results.stability_curves(table, ["noise"], dark=False)
    assert figure.layout.xaxis.type == "log"
    assert figure.layout.xaxis.ticktext == ("0.001", "0.01", "0.1")
    assert len(figure.data) == 1
    apart = pd.concat([table, table.assign(measure="quotient", value=60.0)])
    figure = models_results.stability_curves(apart, ["noise"], dark=False)
    assert {trace.yaxis for trace in figure.data} == {"y", "y2"}
