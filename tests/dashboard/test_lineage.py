"""The graph of documented lineage: who goes back to whom, and places that can be read."""

from itertools import combinations

import numpy as np
import pytest

from dashboard.lineage import RADIAL_FROM, Lineage, graph_layout, map_layout


def family(n: int) -> Lineage:
    """A root with n children, the last of which has a child of its own, and a model alone."""
    parents: dict[str, tuple[str, ...]] = {"root": ()}
    parents |= {f"child-{k}": ("root",) for k in range(n)}
    parents |= {"grandchild": (f"child-{n - 1}",), "alone": (), "adopted": ("elsewhere",)}
    return Lineage(parents)


def test_ancestors_and_descendants_come_nearest_first():
    """The order of a card."""
    lineage = family(3)
    assert lineage.ancestors("grandchild") == ["child-2", "root"]
    assert lineage.descendants("root") == ["child-0", "child-1", "child-2", "grandchild"]
    assert lineage.around("child-2") == {"child-2", "root", "grandchild"}
    assert lineage.outside == ["elsewhere"]
    assert lineage.ancestors("adopted") == ["elsewhere"]


def test_a_circle_in_the_data_ends():
    """Two models that name each other as parents must not hang a page."""
    lineage = Lineage({"a": ("b",), "b": ("a",)})
    assert lineage.ancestors("a") == ["b"]
    assert lineage.descendants("a") == ["b"]


def test_a_merge_has_both_parents_as_ancestors():
    """Of two parents none is lost."""
    lineage = Lineage({"a": (), "b": (), "m": ("a", "b")})
    assert lineage.ancestors("m") == ["a", "b"]
    assert lineage.children["b"] == ("m",)


@pytest.mark.parametrize("n", [2, RADIAL_FROM + 3])
def test_no_two_models_lie_on_one_another(n: int):
    """In rows as in rings, marks must not cover one another."""
    lineage = family(n)
    layout = graph_layout(lineage, dict.fromkeys(lineage.parents, "f"), {})
    assert set(layout.places) == {*lineage.parents, "elsewhere"}
    for (_, a), (_, b) in combinations(layout.places.items(), 2):
        assert np.hypot(a[0] - b[0], a[1] - b[1]) > 0.7


def test_models_without_an_edge_stand_in_the_band_by_group_and_size():
    """Below everything else, the smaller first."""
    parents: dict[str, tuple[str, ...]] = {"a": (), "b": ("a",), "x2": (), "x1": (), "y": ()}
    groups = {"a": "f", "b": "f", "x1": "x", "x2": "x", "y": "y"}
    layout = graph_layout(Lineage(parents), groups, {"x1": 1.0, "x2": 2.0})
    assert layout.band == {"x1", "x2", "y"}
    assert layout.places["x1"][0] < layout.places["x2"][0]
    assert all(layout.places[name][1] < layout.band_top for name in layout.band)
    assert all(layout.places[name][1] > layout.band_top for name in ("a", "b"))
    assert {(name, n) for name, n, *_ in layout.labels} == {("f", 2), ("x", 2), ("y", 1)}


def test_places_are_the_same_every_time_and_for_any_order_of_the_rows():
    """A graph that changes on reload destroys trust."""
    lineage = family(11)
    turned = Lineage(dict(reversed(lineage.parents.items())))
    groups = dict.fromkeys(lineage.parents, "f")
    first, second = (graph_layout(one, groups, {}) for one in (lineage, lineage))
    assert first.places == second.places
    other = graph_layout(turned, groups, {})
    assert set(other.places) == set(first.places)
    assert all(other.places[name] == pytest.approx(first.places[name]) for name in first.places)


def test_an_empty_catalogue_is_an_empty_graph():
    """Nothing to lay out is no error."""
    assert graph_layout(Lineage({}), {}, {}).places == {}


def test_a_map_keeps_its_proportions_and_the_others_stand_in_the_band():
    """Distances of the picture stay in proportion; who has no place is not hidden."""
    points = {"a": (0.0, 0.0), "b": (3.0, 0.0), "c": (0.0, 4.0)}
    layout = map_layout(points, ["d"], {"d": "g"}, {})
    xy = {name: np.array(place) for name, place in layout.places.items()}
    ratio = np.linalg.norm(xy["b"] - xy["a"]) / np.linalg.norm(xy["c"] - xy["a"])
    assert ratio == pytest.approx(3 / 4)
    assert layout.band == {"d"}
    assert layout.places["d"][1] < min(xy[name][1] for name in "abc")
