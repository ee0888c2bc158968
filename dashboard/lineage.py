"""Documented lineage as a graph: ancestors, descendants, and places chosen so that it can be read.

Places say nothing of how alike models are: families stand in blocks, every tree of a family has a
box of its own, and models without a documented edge stand in a band below. Pure and deterministic.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np


RADIAL_FROM = 9
"""Trees of so many models are laid out in rings, smaller ones from top to bottom."""
ASPECT = 1.45
"""Width over height that is aimed at."""
_RING, _PAD, _LABEL = 1.25, 0.9, 1.1
"""Distance of rings, margin around a tree, and height of a block's label; in places."""
_CHARACTER = 0.36
"""Width of a character of a label, in places."""
Place = tuple[float, float]


@dataclass(frozen=True)
class Lineage:
    """Models and the parents that are documented of them."""

    parents: Mapping[str, tuple[str, ...]]
    """Parents by model; those may be models that are not among the keys."""
    children: Mapping[str, tuple[str, ...]] = field(init=False)
    """Children by parent, in the order of the models."""

    def __post_init__(self) -> None:
        found: dict[str, list[str]] = defaultdict(list)
        for model, parents in self.parents.items():
            for parent in parents:
                found[parent].append(model)
        object.__setattr__(self, "children", {k: tuple(v) for k, v in found.items()})

    @property
    def outside(self) -> list[str]:
        """Parents that are named and not among the models, in order of appearance."""
        named = (parent for parents in self.parents.values() for parent in parents)
        return [name for name in dict.fromkeys(named) if name not in self.parents]

    def ancestors(self, model: str) -> list[str]:
        """Models it goes back to, the nearest first."""
        return _reached(model, self.parents)

    def descendants(self, model: str) -> list[str]:
        """Models that go back to it, the nearest first."""
        return _reached(model, self.children)

    def around(self, model: str) -> set[str]:
        """The model, all it goes back to, and all that goes back to it."""
        return {model, *self.ancestors(model), *self.descendants(model)}


def _reached(start: str, steps: Mapping[str, tuple[str, ...]]) -> list[str]:
    """Breadth first from `start`, which is left out; a circle in the data ends it."""
    found: dict[str, None] = {}
    front = [start]
    while front:
        front = [n for model in front for n in steps.get(model, ()) if n not in found]
        found |= dict.fromkeys(n for n in front if n != start)
        front = [n for n in dict.fromkeys(front) if n != start]
    return list(found)


@dataclass(frozen=True)
class Box:
    """Places of some models, from (0, 0) on to the right and down."""

    places: Mapping[str, Place]
    width: float
    height: float

    def moved(self, x: float, y: float) -> dict[str, Place]:
        """Places `x` further right and `y` further down."""
        return {name: (x + a, y + b) for name, (a, b) in self.places.items()}


@dataclass(frozen=True)
class Block:
    """A group of trees with its label."""

    label: str
    n: int
    box: Box


@dataclass(frozen=True)
class GraphLayout:
    """Where everything stands; x to the right, y upwards."""

    places: Mapping[str, Place]
    labels: Sequence[tuple[str, int, float, float]]
    """Group, its number of models, and the left end of its label."""
    band: frozenset[str]
    """Models that stand in the band below."""
    band_said: str
    """Why they do."""
    band_top: float
    """Height of the line above the band."""
    extent: tuple[float, float]
    """Width and height of it all."""


def graph_layout(
    lineage: Lineage, groups: Mapping[str, str], order: Mapping[str, float]
) -> GraphLayout:
    """Lay out documented lineage so that every tree can be read.

    Args:
        lineage: Models and parents.
        groups: Label of each model; a parent from outside is put with its first child.
        order: What siblings and models of the band are ordered by.
    """
    trees, alone = _trees(lineage, order)
    by_group: dict[str, list[Box]] = defaultdict(list)
    for names, box in trees:
        by_group[_label(names, groups)].append(box)
    sizes = {
        group: sum(name in lineage.parents for box in boxes for name in box.places)
        for group, boxes in by_group.items()
    }
    blocks = [
        Block(group, sizes[group], _shelves(by_group[group], _fair_width(by_group[group], 1.5)))
        for group in sorted(by_group, key=lambda g: (-sizes[g], g))
    ]
    places, labels, width, height = _blocks(blocks)
    band, band_labels, below = _band(alone, groups, order, width or 40.0)
    top = -height - 0.4
    places |= {name: (x, top - 1.6 - y) for name, (x, y) in band.items()}
    labels += [(name, n, x, top - 1.6 - y) for name, n, x, y in band_labels]
    size = (width, height + below + 2.6)
    return GraphLayout(places, labels, frozenset(alone), "without a documented edge", top, size)


def map_layout(
    points: Mapping[str, Place],
    rest: Sequence[str],
    groups: Mapping[str, str],
    order: Mapping[str, float],
) -> GraphLayout:
    """Places of a picture for models that have one, and a band below for the others.

    Args:
        points: Places of the picture, in its own units; its proportions are kept.
        rest: Models without a place.
        groups: Label of each model.
        order: What models of the band are ordered by.
    """
    width, height = 44.0, 22.0
    xy = np.array(list(points.values()), dtype=np.float64).reshape(-1, 2)
    places: dict[str, Place] = {}
    if len(xy):
        middle, reach = (xy.max(0) + xy.min(0)) / 2, np.maximum(np.ptp(xy, axis=0), 1e-9)
        scale = min(width * 0.94 / reach[0], height * 0.94 / reach[1])
        moved = (xy - middle) * scale + (width / 2, -height / 2)
        places = {name: (float(x), float(y)) for name, (x, y) in zip(points, moved, strict=True)}
    band, labels, below = _band(rest, groups, order, width)
    top = -height - 0.4
    places |= {name: (x, top - 1.6 - y) for name, (x, y) in band.items()}
    shown = [(name, n, x, top - 1.6 - y) for name, n, x, y in labels]
    size = (width, height + below + 2.6)
    return GraphLayout(places, shown, frozenset(rest), "not embedded", top, size)


def _label(names: Iterable[str], groups: Mapping[str, str]) -> str:
    """Group of a tree: that of its first model that has one."""
    return next((groups[name] for name in names if name in groups), "")


def _trees(
    lineage: Lineage, order: Mapping[str, float]
) -> tuple[list[tuple[list[str], Box]], list[str]]:
    """Boxes of trees, the largest first, and models without an edge."""
    first = {m: parents[0] if parents else None for m, parents in lineage.parents.items()}
    children: dict[str, list[str]] = defaultdict(list)
    for model, parent in first.items():
        if parent is not None:
            children[parent].append(model)
    for own in children.values():
        own.sort(key=lambda name: (-_size(name, children), order.get(name, 0.0), name))
    tops = [m for m in (*lineage.outside, *first) if first.get(m) is None]
    alone = [m for m in tops if not children.get(m)]
    found = [(_inside(top, children), top) for top in tops if children.get(top)]
    found.sort(key=lambda pair: (-len(pair[0]), order.get(pair[1], 0.0), pair[1]))
    return [(names, _tree(top, children, len(names))) for names, top in found], alone


def _size(name: str, children: Mapping[str, list[str]]) -> int:
    return 1 + sum(_size(child, children) for child in children.get(name, ()))


def _inside(top: str, children: Mapping[str, list[str]]) -> list[str]:
    return [top, *(n for child in children.get(top, ()) for n in _inside(child, children))]


def _tree(top: str, children: Mapping[str, list[str]], n: int) -> Box:
    """One tree: in rings where it is large, from top to bottom where it is small."""
    leaves: list[int] = [0]
    flat: dict[str, Place] = {}

    def walk(name: str, depth: int) -> float:
        own = [walk(child, depth + 1) for child in children.get(name, ())]
        if not own:
            at = float(leaves[0])
            leaves[0] += 1
        else:
            at = (own[0] + own[-1]) / 2
        flat[name] = (at, float(depth))
        return at

    walk(top, 0)
    return _boxed(_in_rings(flat, leaves[0]) if n >= RADIAL_FROM else flat)


def _in_rings(flat: Mapping[str, Place], n_leaves: int) -> dict[str, Place]:
    """Depth becomes the ring and the place among leaves the angle."""
    first = max(_RING, 1.02 * n_leaves / (2 * np.pi))
    found = {}
    for name, (at, depth) in flat.items():
        angle = 2 * np.pi * at / n_leaves - np.pi / 2
        radius = 0.0 if depth == 0 else first + (depth - 1) * _RING
        found[name] = (float(radius * np.cos(angle)), float(radius * np.sin(angle)))
    return found


def _boxed(places: Mapping[str, Place]) -> Box:
    """Places with a margin around them."""
    xy = np.array(list(places.values()))
    low, high = xy.min(0).tolist(), xy.max(0).tolist()
    moved = {n: (x - low[0] + _PAD / 2, y - low[1] + _PAD / 2) for n, (x, y) in places.items()}
    return Box(moved, high[0] - low[0] + _PAD, high[1] - low[1] + _PAD)


def _fair_width(boxes: Sequence[Box], aspect: float) -> float:
    """Width at which shelves of these boxes come near an aspect."""
    area = sum(box.width * box.height for box in boxes)
    return max(*(box.width for box in boxes), float(np.sqrt(area * aspect)), 0.0)


def _shelves(boxes: Sequence[Box], width: float) -> Box:
    """Boxes from left to right, a new row where one would stand out."""
    places: dict[str, Place] = {}
    x = y = row = widest = 0.0
    for box in boxes:
        if x and x + box.width > width + 1e-9:
            x, y, row = 0.0, y + row, 0.0
        places |= box.moved(x, y)
        x, row = x + box.width, max(row, box.height)
        widest = max(widest, x)
    return Box(places, widest, y + row)


def _blocks(
    blocks: Sequence[Block],
) -> tuple[dict[str, Place], list[tuple[str, int, float, float]], float, float]:
    """Blocks in rows below one another at the width that comes nearest the aspect aimed at."""
    if not blocks:
        return {}, [], 0.0, 0.0
    widest = max(block.box.width for block in blocks)
    tried = [_rows(blocks, width) for width in np.linspace(widest, 4 * widest + 20, 48)]
    return min(tried, key=lambda found: max(found[2] / ASPECT, found[3]))


def _rows(
    blocks: Sequence[Block], width: float
) -> tuple[dict[str, Place], list[tuple[str, int, float, float]], float, float]:
    """Blocks by height in rows; a block that is lower than the row has others stacked below it."""
    waiting = sorted(blocks, key=lambda b: (-b.box.height, -b.n, b.label))
    places: dict[str, Place] = {}
    labels: list[tuple[str, int, float, float]] = []
    y = reached = 0.0
    while waiting:
        x, tall = 0.0, waiting[0].box.height + _LABEL
        while waiting and (not x or x + waiting[0].box.width <= width):
            column = _column(waiting, tall)
            wide = max(max(b.box.width, _CHARACTER * (len(b.label) + 4)) for b in column)
            down = y
            for block in column:
                waiting.remove(block)
                labels.append((block.label, block.n, x + 0.2, -down - _LABEL / 2))
                moved = block.box.moved(x, down + _LABEL)
                places |= {name: (a, -b) for name, (a, b) in moved.items()}
                down += block.box.height + _LABEL
            x += wide + 0.6
        reached = max(reached, x - 0.6)
        y += tall + 0.3
    return places, labels, reached, y


def _column(waiting: Sequence[Block], tall: float) -> list[Block]:
    """The next block, and below it those that fit into the row's height and its width."""
    column = [waiting[0]]
    left = tall - waiting[0].box.height - _LABEL
    for block in waiting[1:]:
        if block.box.height + _LABEL <= left and block.box.width <= column[0].box.width + 1.2:
            column.append(block)
            left -= block.box.height + _LABEL
    return column


def _band(
    alone: Sequence[str], groups: Mapping[str, str], order: Mapping[str, float], width: float
) -> tuple[dict[str, Place], list[tuple[str, int, float, float]], float]:
    """Models without an edge, group after group, a label before each; the height they take."""
    by_group: dict[str, list[str]] = defaultdict(list)
    for name in alone:
        by_group[groups.get(name, "")].append(name)
    places: dict[str, Place] = {}
    labels: list[tuple[str, int, float, float]] = []
    x = y = 0.0
    for group in sorted(by_group, key=lambda g: (-len(by_group[g]), g)):
        own = sorted(by_group[group], key=lambda name: (order.get(name, 0.0), name))
        before = 1.15 * _CHARACTER * (len(group) + 3) + 0.7
        if x and x + before + len(own) > width:
            x, y = 0.0, y + 2.0
        labels.append((group, len(own), x, y))
        for place, name in enumerate(own):
            places[name] = (x + before + 1.15 * place, y)
        x += before + 1.15 * len(own) + 0.8
    return places, labels, y
