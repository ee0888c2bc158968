"""The axis of figures that have a row for each model, group or domain, from top to bottom."""

from collections.abc import Sequence
from typing import Any

from dashboard.theme import Palette


def row_axis(names: Sequence[str], colours: Palette) -> dict[str, Any]:
    """Layout of a vertical axis with one name a row; names are escaped and cut by the caller."""
    return {
        "tickvals": list(range(len(names))),
        "ticktext": list(names),
        "tickfont": {"color": colours.text, "size": 11},
        "range": [len(names) - 0.45, -0.55],
        "showgrid": False,
        "zeroline": False,
        "ticklabelstandoff": 4,
    }
