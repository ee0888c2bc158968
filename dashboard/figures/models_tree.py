"""Tree and heat-map of models: twins of the map that show every distance."""

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float

from dashboard import theme
from dashboard.figures.model_marks import LEGEND_TEXT, legend_entries, ramp, symbols
from dashboard.figures.tokens import escaped
from dashboard.model_trees import MIXED, ModelTree


ROW = 11
"""Pixels of a leaf."""
AROUND = 208
"""Pixels of title, axis and legend."""
NAMED_CELLS = 60
"""Models up to which the heat-map names rows and columns."""
MOST_COLOURS = 12


def lineage_colours(tree: ModelTree, colours: theme.Palette) -> dict[str, str]:
    """A hue for each of the lineages with most leaves, grey for others."""
    leaves = [root for root, name in zip(tree.lineage, tree.models, strict=True) if name]
    counts = {root: leaves.count(root) for root in dict.fromkeys(leaves) if root != MIXED}
    ordered = sorted(counts, key=lambda root: (-counts[root], root))
    return theme.category_colours(ordered[:MOST_COLOURS], colours)


def models_tree(
    tree: ModelTree, relations: Mapping[str, str], chosen: str, *, dark: bool, subtitle: str
) -> go.Figure:
    """Neighbour joining from left to right; clades of one lineage coloured, wrong edges marked.

    Args:
        tree: What is drawn.
        relations: How each model was made, for its shape.
        chosen: Model of the card.
        dark: Theme.
        subtitle: n and reading.
    """
    colours = theme.palette(dark)
    shades = lineage_colours(tree, colours)
    n_leaves = sum(bool(name) for name in tree.models)
    figure = go.Figure(
        layout=theme.layout(
            dark,
            height=ROW * n_leaves + AROUND,
            title={"text": "Neighbour-joining tree", "subtitle": {"text": subtitle}},
            margin={"l": 4, "r": 4, "t": 48, "b": AROUND - 52},
            xaxis={"title": {"text": "distance from the top (1 − cosine)"}, "nticks": 8,
                   "range": [-0.01 * tree.height.max(), 1.32 * max(tree.height.max(), 1e-9)]},
            yaxis={"visible": False, "range": [n_leaves - 0.3, -0.7]},
        )
    )  # fmt: skip
    _branches(figure, tree, shades, colours)
    _leaves(figure, tree, relations, chosen, shades, colours)
    entries = [
        go.Scatter(mode="lines", name=name, line={"color": shade, "width": 3})
        for name, shade in shades.items()
    ]
    entries += [
        go.Scatter(mode="lines", name=name, line={"color": colours.rest, "width": width})
        for name, width in (("other roots, thick", 3), ("mixed or unknown, thin", 1))
    ]
    entries.append(
        go.Scatter(mode="markers", name="wrong: apart from its own", marker=_cross(colours))
    )
    height = ROW * n_leaves + AROUND
    legend_entries(
        figure, entries, "legend", "Lineage", (AROUND - 104) / height, width=150, alike=False
    )
    return figure


def _cross(colours: theme.Palette) -> dict[str, object]:
    return {"symbol": "x-thin", "size": 8, "line": {"width": 2.2, "color": colours.lowers}}


def _look(root: str, shades: Mapping[str, str], colours: theme.Palette) -> tuple[str, float]:
    """Colour and width of a branch: thin where the clade below it is mixed."""
    if root == MIXED:
        return colours.rest, 0.9
    return shades.get(root, colours.rest), 2.2


def _branches(
    figure: go.Figure, tree: ModelTree, shades: Mapping[str, str], colours: theme.Palette
) -> None:
    """Horizontal edges and the bars that join them, a trace a look."""
    parts: dict[tuple[str, float], list[tuple[float | None, float | None]]] = {}
    for node, above in enumerate(tree.parent):
        if above < 0:
            continue
        own = _look(tree.lineage[node], shades, colours)
        bar = _look(tree.lineage[above], shades, colours)
        left, right = float(tree.height[above]), float(tree.height[node])
        y, middle = float(tree.line[node]), float(tree.line[above])
        parts.setdefault(own, []).extend(((left, y), (right, y), (None, None)))
        parts.setdefault(bar, []).extend(((left, middle), (left, y), (None, None)))
    for (shade, width), points in parts.items():
        figure.add_scatter(
            x=[x for x, _ in points], y=[y for _, y in points], mode="lines",
            line={"color": shade, "width": width}, hoverinfo="skip", showlegend=False,
        )  # fmt: skip
    wrong = np.flatnonzero(tree.wrong & (tree.parent >= 0))
    middle = (tree.height[wrong] + tree.height[tree.parent[wrong]]) / 2
    figure.add_scatter(
        x=middle, y=tree.line[wrong], mode="markers", marker=_cross(colours), showlegend=False,
        hovertext=[f"apart from the larger clade of {escaped(tree.lineage[k])}" for k in wrong],
        hovertemplate="%{hovertext}<extra></extra>", name="wrong",
    )  # fmt: skip


def _leaves(
    figure: go.Figure,
    tree: ModelTree,
    relations: Mapping[str, str],
    chosen: str,
    shades: Mapping[str, str],
    colours: theme.Palette,
) -> None:
    """A mark and the name of every model; a click gives the place of its node."""
    leaves = [k for k, name in enumerate(tree.models) if name]
    names = [tree.models[k] for k in leaves]
    figure.add_scatter(
        x=tree.height[leaves],
        y=tree.line[leaves],
        mode="markers+text",
        text=[f"<b>{escaped(n)}</b>" if n == chosen else escaped(n) for n in names],
        textposition="middle right",
        textfont={
            "size": 9.5,
            "color": [colours.accent if n == chosen else colours.text for n in names],
        },
        marker={
            "size": 7,
            "symbol": symbols(relations.get(n, "") for n in names),
            "color": [shades.get(tree.lineage[k], colours.rest) for k in leaves],
        },
        customdata=np.array(leaves)[:, None],
        selected={"marker": {"opacity": 1}},
        unselected={"marker": {"opacity": 1}, "textfont": {"color": colours.text}},
        cliponaxis=False,
        hovertext=[f"<b>{escaped(n)}</b><br>{escaped(relations.get(n, ''))}" for n in names],
        hovertemplate="%{hovertext}<extra></extra>",
        showlegend=False,
        name="models",
    )


def tree_alt(tree: ModelTree) -> str:
    """The tree in one sentence."""
    n = sum(bool(name) for name in tree.models)
    return (
        f"Neighbour-joining tree of {n} models; {int(tree.wrong.sum())} edges put models apart "
        "from a larger clade of their lineage."
    )


def heatmap(
    cosines: Float[np.ndarray, "models models"],
    names: Sequence[str],
    roots: Sequence[str],
    *,
    dark: bool,
    subtitle: str,
) -> go.Figure:
    """Cosines of all pairs in an order in which alike models stand together.

    Args:
        cosines: Cosines in the order drawn.
        names: Models in that order.
        roots: Root of each; a line stands where a model's root is not that of the one before.
        dark: Theme.
        subtitle: n and order.
    """
    colours = theme.palette(dark)
    n = len(names)
    shown = [escaped(name) for name in names]
    off = cosines[~np.eye(n, dtype=bool)] if n > 1 else cosines.ravel()
    axis = {
        "type": "category",
        "showgrid": False,
        "zeroline": False,
        "showticklabels": n <= NAMED_CELLS,
        "tickfont": {"size": 9},
        "constrain": "domain",
    }
    figure = go.Figure(
        layout=theme.layout(
            dark,
            height=760,
            title={"text": "Cosine of every pair of models", "subtitle": {"text": subtitle}},
            xaxis={**axis, "tickangle": 90},
            yaxis={**axis, "autorange": "reversed", "scaleanchor": "x"},
        )
    )
    figure.add_heatmap(
        z=cosines.astype(np.float32),
        x=shown,
        y=shown,
        zmin=float(np.quantile(off, 0.02)) if len(off) else 0,
        zmax=1,
        colorscale=ramp(colours),
        colorbar={"thickness": 8, "outlinewidth": 0, "nticks": 6,
                  "title": {"text": "cosine", "font": {"size": LEGEND_TEXT}}},
        hovertemplate="%{y}<br>%{x}<br>cosine %{z:.3f}<extra></extra>",
    )  # fmt: skip
    _borders(figure, roots, colours)
    return figure


def _borders(figure: go.Figure, roots: Sequence[str], colours: theme.Palette) -> None:
    """A box around each run of at least three models of one root."""
    start = 0
    for at in range(1, len(roots) + 1):
        if at < len(roots) and roots[at] == roots[start]:
            continue
        if at - start >= 3 and roots[start]:
            figure.add_shape(
                type="rect", x0=start - 0.5, x1=at - 0.5, y0=start - 0.5, y1=at - 0.5,
                line={"color": colours.text, "width": 1},
            )  # fmt: skip
        start = at
