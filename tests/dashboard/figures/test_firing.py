"""Which prototypes are active where, as data."""

import numpy as np
import pandas as pd

from dashboard.figures.firing import N_COLUMNS, N_ROWS, firing_map, strongest


def activations(n_tokens: int) -> pd.DataFrame:
    """Prototype p is active at every p-th token with activation 1 / p."""
    rows = [
        {"position": t, "prototype": p, "label": f"label {p}", "activation": 1 / p}
        for t in range(n_tokens)
        for p in range(1, 20)
        if t % p == 0
    ]
    return pd.DataFrame(rows)


def test_rows_are_ordered_by_summed_activation():
    """1 fires everywhere with activation 1, 2 at every second token with a half, and so on."""
    grid = strongest(activations(13), 0, 12)
    assert grid.index.tolist()[:3] == [1, 2, 3]
    assert len(grid) == N_ROWS
    assert np.isnan(grid.loc[2, 1])
    assert grid.loc[2, 4] == 0.5


def test_a_long_prompt_is_drawn_around_the_chosen_token():
    """At most so many columns, the chosen one among them, at either end too."""
    frame = activations(211)
    for position in (0, 100, 210):
        figure, alt = firing_map(frame, ["x"] * 211, position, dark=False)
        columns = list(figure.data[0].x)
        assert len(columns) == N_COLUMNS
        assert position in columns
        assert "of 211 tokens" in alt


def test_labels_and_tokens_are_never_markup():
    """Plotly reads a small HTML dialect."""
    frame = activations(3).assign(label="<b>bold</b>")
    figure, _ = firing_map(frame, ["<i>", "a", "b"], 1, dark=True)
    assert "<b>" not in figure.data[0].y[0]
    assert figure.layout.xaxis.ticktext[0] == "&lt;i&gt;"
