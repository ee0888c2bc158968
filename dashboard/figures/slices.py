"""How prototype slices, other prototypes and the residual add up to one logit."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from dashboard.figures.tokens import escaped, glyphs, logit_text, shortened
from dashboard.theme import Palette, layout, palette


if TYPE_CHECKING:
    from engine.live import Decomposition

TOLERANCE = 1e-4
"""Largest gap allowed, relative to the sum of absolute terms (`docs/GLOSSARY.md`)."""
ROW_HEIGHT = 26
"""Pixels a row of the waterfall takes."""
BAR_WIDTH = 0.72
"""Share of a row that its bar takes."""


@dataclass(frozen=True)
class SliceSum:
    """A logit (or difference of two) as terms that add up, in the order they are drawn.

    `rows` has one row per term: kind ("prototype", "other", "residual", "bias"), prototype (-1
    where the term is none), label, activation and logit (nats; positive raises the target), start
    and end (running sum before and after the term).
    """

    rows: pd.DataFrame
    total: float
    total_label: str
    gap: float
    """Signed, in logits."""
    relative_gap: float
    """|gap| over the sum of absolute terms."""
    axis: str
    """Title of the axis the terms are drawn on."""

    @property
    def adds_up(self) -> bool:
        """Whether the gap stays within the tolerance (NaN does not)."""
        return self.relative_gap <= TOLERANCE

    def sum_of(self, kind: str) -> float:
        """Sum of the terms of one kind."""
        return float(self.rows.loc[self.rows["kind"] == kind, "logit"].sum())


def slice_sum(
    explained: "Decomposition", target: str | None = None, distractor: str | None = None
) -> SliceSum:
    """Arrange a decomposition: its slices by falling size, the other prototypes, the residual.

    Args:
        explained: With a distractor every logit is the target's minus the distractor's.
        target: How the target is written; its glyphs when None.
        distractor: How the distractor is written; its glyphs when None.
    """
    first = target or glyphs(explained.target)
    second = distractor or glyphs(explained.distractor or "")
    if explained.distractor is None:
        second = ""
    rows = explained.slices.assign(kind="prototype")
    rows = rows[["kind", "prototype", "label", "activation", "logit"]]
    extra = [_term("residual", "Residual", explained.residual)]
    if explained.n_other:
        noun = "prototype" if explained.n_other == 1 else "prototypes"
        extra.insert(0, _term("other", f"{explained.n_other} other {noun}", explained.other))
    if explained.bias:
        extra.append(_term("bias", "Bias of the head", explained.bias))
    rows = pd.concat([rows, pd.DataFrame(extra)], ignore_index=True)
    end = rows["logit"].astype(float).cumsum()
    return SliceSum(
        rows.assign(start=end - rows["logit"], end=end),
        total=explained.logit,
        total_label=f"‘{first}’ minus ‘{second}’" if second else f"Logit of ‘{first}’",
        gap=explained.gap_logit,
        relative_gap=explained.gap,
        axis=_axis(first, second),
    )


def _axis(target: str, distractor: str) -> str:
    if not distractor:
        return "Logits, running sum (blue + raises, orange − lowers)"
    first, second = escaped(target), escaped(distractor)
    return f"Difference of logits, running sum (blue + for ‘{first}’, orange − for ‘{second}’)"


def _term(kind: str, label: str, logit: float) -> dict[str, object]:
    return {
        "kind": kind,
        "prototype": -1,
        "label": label,
        "activation": float("nan"),
        "logit": float(logit),
    }


def additivity_sentence(terms: SliceSum) -> str:
    """The sum in words: "Shown 12 slices = 7.31, other 4 = 0.42, residual 1.2, gap 3e-6"."""
    n_shown = int((terms.rows["kind"] == "prototype").sum())
    parts = [f"Shown {n_shown} slices = {terms.sum_of('prototype'):+.3g}"]
    rest = terms.rows[terms.rows["kind"] != "prototype"].to_dict("records")
    parts += [f"{str(term['label']).lower()} = {term['logit']:+.3g}" for term in rest]
    return f"{', '.join(parts)}; sum = {terms.total:+.4g} with a gap of {terms.gap:.1e}"


def waterfall(terms: SliceSum, dark: bool, selected: int | None = None) -> go.Figure:
    """Horizontal waterfall of the terms; a click on a bar gives its prototype in `customdata`.

    Blue raises, orange lowers, grey is the rest; the sign is written beside each bar.
    """
    colours = palette(dark)
    names = _row_names(terms.rows)
    total = f"<b>{escaped(terms.total_label)}</b>"
    figure = go.Figure(
        layout=layout(
            dark,
            height=ROW_HEIGHT * (len(names) + 1) + 64,
            showlegend=False,
            barmode="overlay",
            margin={"l": 8, "r": 60, "t": 4, "b": 44},
        )
    )
    figure.add_bar(**_term_bars(terms.rows, names, colours, selected))
    figure.add_bar(
        orientation="h",
        y=[total],
        x=[terms.total],
        width=BAR_WIDTH,
        marker={"color": colours.text},
        text=[f"<b>{logit_text(terms.total)}</b>"],
        textposition="outside",
        cliponaxis=False,
        customdata=[[-1, float("nan"), terms.total_label]],
        hovertemplate="%{customdata[2]}<br>%{x:+.4f} logits<extra></extra>",
    )
    for row, end in enumerate(terms.rows["end"]):
        step = {"x0": end, "x1": end, "y0": row + BAR_WIDTH / 2, "y1": row + 1 - BAR_WIDTH / 2}
        figure.add_shape(type="line", **step, line={"color": colours.rest, "width": 1})
    figure.update_yaxes(range=[len(names) + 0.5, -0.5], showgrid=False, ticklabelstandoff=4)
    figure.update_yaxes(tickfont_color=colours.text)
    figure.update_xaxes(title_text=terms.axis)
    figure.update_xaxes(zeroline=True, zerolinecolor=colours.muted, range=_reach(terms))
    return figure


def _term_bars(
    rows: pd.DataFrame, names: list[str], colours: Palette, selected: int | None
) -> dict[str, object]:
    """The bars of the terms, each from its running sum on."""
    prototype = rows["kind"] == "prototype"
    raises = np.where(rows["logit"] >= 0, colours.raises, colours.lowers)
    chosen = prototype & (rows["prototype"] == selected)
    return {
        "orientation": "h",
        "y": names,
        "base": rows["start"],
        "x": rows["logit"],
        "width": BAR_WIDTH,
        "marker": {
            "color": np.where(prototype, raises, colours.rest),
            "line": {"color": colours.text, "width": np.where(chosen, 2, 0)},
            "pattern": {"shape": np.where(rows["kind"] == "residual", "/", "")},
        },
        "text": [logit_text(value) for value in rows["logit"]],
        "textposition": "outside",
        "cliponaxis": False,
        "customdata": rows[["prototype", "activation", "label"]].to_numpy(dtype=object),
        "hovertemplate": (
            "%{customdata[2]}<br>%{x:+.4f} logits<br>activation %{customdata[1]:.3f}<extra></extra>"
        ),
    }


def _row_names(rows: pd.DataFrame) -> list[str]:
    """A label and the id where the term is a prototype, each distinct."""
    names: list[str] = []
    for kind, prototype, label in zip(rows["kind"], rows["prototype"], rows["label"], strict=True):
        text = shortened(label)
        names.append(f"{escaped(text)}  #{prototype}" if kind == "prototype" else escaped(text))
    return names


def _reach(terms: SliceSum) -> list[float]:
    """Range of the axis: every bar, zero, and room for the written values."""
    ends = [0.0, terms.total, *terms.rows["start"], *terms.rows["end"]]
    low, high = min(ends), max(ends)
    room = 0.12 * max(high - low, 1e-6)
    return [low - room, high + room]


def alt_text(terms: SliceSum) -> str:
    """The waterfall in one sentence, for screen readers."""
    shown = terms.rows[terms.rows["kind"] == "prototype"]
    largest = "; ".join(
        f"prototype {p} ({label}) {value:+.2f}"
        for p, label, value in zip(
            shown["prototype"][:3], shown["label"][:3], shown["logit"][:3], strict=True
        )
    )
    return f"Waterfall of {terms.total_label}: {additivity_sentence(terms)}. Largest: {largest}."
