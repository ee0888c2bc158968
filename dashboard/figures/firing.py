"""Which prototypes are active where in a prompt."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from dashboard.figures.tokens import escaped, shortened
from dashboard.theme import MONOSPACE, layout, palette


N_ROWS = 14
"""Prototypes drawn, those with the largest summed activation."""
N_COLUMNS = 48
"""Tokens drawn, those around the chosen one."""
ROW_HEIGHT = 24
"""Pixels a prototype takes."""


def strongest(frame: pd.DataFrame, first: int, last: int) -> pd.DataFrame:
    """Activation by prototype (rows, largest sum first) and position (columns, `first` to `last`).

    Args:
        frame: Active prototypes: position, prototype, label, activation.
        first: First position drawn.
        last: Last position drawn.
    """
    inside = frame[frame["position"].between(first, last)]
    grid = inside.pivot_table(
        index="prototype", columns="position", values="activation", aggfunc="max"
    )
    grid = grid.reindex(columns=range(first, last + 1))
    return grid.loc[grid.sum(axis=1).sort_values(ascending=False, kind="stable").index[:N_ROWS]]


def firing_map(
    frame: pd.DataFrame, tokens: Sequence[str], position: int, dark: bool
) -> tuple[go.Figure, str]:
    """Heat-map of the prompt's strongest prototypes over its tokens, and its text.

    Args:
        frame: Active prototypes: position, prototype, label, activation.
        tokens: Text of every token as it is to be written.
        position: Chosen token, marked by a line on either side.
        dark: Theme.
    """
    colours = palette(dark)
    first = max(0, min(position - N_COLUMNS // 2, len(tokens) - N_COLUMNS))
    last = min(len(tokens), first + N_COLUMNS) - 1
    grid = strongest(frame, first, last)
    labels = frame.drop_duplicates("prototype").set_index("prototype")["label"]
    names = [f"{escaped(shortened(str(labels[p])))}  #{p}" for p in grid.index]
    figure = go.Figure(
        layout=layout(
            dark, height=ROW_HEIGHT * len(names) + 96, margin={"l": 8, "r": 8, "t": 4, "b": 8}
        )
    )
    figure.add_heatmap(
        z=grid.to_numpy(dtype=np.float32),
        x=list(grid.columns),
        y=names,
        zmin=0,
        zmax=1,
        xgap=1,
        ygap=1,
        colorscale=[[0, colours.panel], [1, colours.accent]],
        colorbar={
            "title": {"text": "activation<br>(cosine)", "font": {"size": 11}},
            "thickness": 8,
            "len": 0.9,
            "outlinewidth": 0,
            "tickvals": [0, 0.5, 1],
        },
        customdata=np.broadcast_to(
            np.array([escaped(t) for t in tokens[first : last + 1]], dtype=object), grid.shape
        ),
        hovertemplate="%{y}<br>‘%{customdata}’ at %{x}<br>activation %{z:.3f}<extra></extra>",
    )
    figure.add_vrect(
        x0=position - 0.5, x1=position + 0.5, line={"color": colours.text, "width": 1.5}
    )
    figure.update_yaxes(autorange="reversed", showgrid=False, tickfont_color=colours.text)
    figure.update_xaxes(
        tickvals=list(grid.columns),
        ticktext=[escaped(t) for t in tokens[first : last + 1]],
        tickangle=-60,
        showgrid=False,
        zeroline=False,
        tickfont={"family": MONOSPACE, "size": 11, "color": colours.text},
    )
    return figure, _alt(grid, labels, len(tokens))


def _alt(grid: pd.DataFrame, labels: pd.Series, n_tokens: int) -> str:
    parts = [f"prototype {p} ({labels[p]})" for p in grid.index[:3]]
    return (
        f"Activation of {len(grid)} prototypes over {grid.shape[1]} of {n_tokens} tokens; "
        f"the most active are {', '.join(parts)}."
    )
