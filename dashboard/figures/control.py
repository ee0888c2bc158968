"""What controllers change: accuracy by question set, paired differences, the model and its twin."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from dashboard.figures.tokens import escaped
from dashboard.theme import Palette, layout, palette, signed


ROW_HEIGHT = 46
"""Pixels a question set takes."""
MEAN, REFERENCE = "mean", "paper"
"""Rows of the mean over sets, and of the means that the paper reports."""
SET_NAMES = {
    "commonsense_qa": "CommonsenseQA",
    "mmlu": "MMLU",
    "openbook_qa": "OpenBookQA",
    "piqa": "PIQA",
    "logiqa": "LogiQA",
    "medqa": "MedQA",
    "medmcqa": "MedMCQA",
    "siqa": "SIQA",
    "social_iqa": "SIQA",
    MEAN: "mean",
    REFERENCE: "paper's mean",
}
"""How question sets are written on screen."""
CONDITIONS = {
    "none": "no controller",
    "per-byte": "no controller, per byte",
    "sae": "SAE controller",
    "prototypes": "prototype controller",
}
"""Conditions of `control_results` with the words drawn, in the order drawn."""
COMPARISONS = {
    "prototypes-none": "prototypes − none",
    "sae-none": "SAE − none",
    "prototypes-sae": "prototypes − SAE",
    "prototypes-per-byte": "prototypes − per byte",
}
"""Comparisons of `control_gains` with the words drawn, in the order drawn."""
PAPER = {"prototypes-none": 2.72, "sae-none": 0.32}
"""Mean gains the paper reports, in percentage points."""
Look = tuple[str, str]
"""Colour and symbol."""


def set_name(name: str) -> str:
    """A question set as written on screen."""
    return SET_NAMES.get(name, name)


def accuracy_dots(
    results: pd.DataFrame, chance: Mapping[str, float], n_questions: int, *, dark: bool
) -> go.Figure:
    """Accuracy on held-out questions by set and condition, chance marked; small dots are splits.

    Args:
        results: Rows of `control_results`.
        chance: Accuracy expected of guessing, in [0, 1], by set.
        n_questions: Distinct questions that were in a test split.
        dark: Theme.
    """
    colours = palette(dark)
    sets = sorted(results["set"].unique())
    means = results.groupby(["set", "condition"])["accuracy"].mean().unstack("condition")
    means.loc[MEAN] = means.mean()
    marked = dict(chance) | {MEAN: float(np.mean([chance[name] for name in sets]))}
    seeds = results["seed"].nunique()
    subtitle = f"n = {n_questions:,} held-out questions, {seeds} splits; small dots: single splits"
    figure = _rows_figure([*sets, MEAN], "Accuracy with and without a controller", subtitle, dark)
    _chance_marks(figure, [*sets, MEAN], marked, colours)
    looks = _condition_looks(colours)
    drawn = [name for name in CONDITIONS if name in means.columns]
    for lane, name in zip(_lanes(len(drawn)), drawn, strict=True):
        shade, symbol = looks[name]
        single = results[results["condition"] == name]
        figure.add_scatter(
            x=single["accuracy"],
            y=[sets.index(s) + lane for s in single["set"]],
            mode="markers",
            marker={"size": 4, "color": shade, "opacity": 0.45},
            hovertemplate="%{x:.1%}<extra>one split</extra>",
            showlegend=False,
        )
        figure.add_scatter(
            x=means[name],
            y=np.arange(len(means)) + lane,
            mode="markers",
            name=CONDITIONS[name],
            marker=_marker(shade, symbol),
            customdata=[set_name(str(s)) for s in means.index],
            hovertemplate=f"%{{customdata}}: {CONDITIONS[name]} %{{x:.1%}}<extra></extra>",
        )
    figure.update_xaxes(title_text="answered right (share of questions)", tickformat=".0%")
    return figure


def gain_dots(gains: pd.DataFrame, *, dark: bool) -> go.Figure:
    """Paired differences of accuracy with 95 % intervals; the paper's means in a row of their own.

    Args:
        gains: Rows of `control_gains`: gain, low and high in percentage points.
        dark: Theme.
    """
    colours = palette(dark)
    sets = [*sorted(set(gains["set"]) - {MEAN}), *([MEAN] if MEAN in set(gains["set"]) else [])]
    mean = gains[gains["set"] == MEAN]
    counted = int((mean if len(mean) else gains)["n_questions"].max()) if len(gains) else 0
    subtitle = f"n = {counted:,} held-out questions; 95 % bootstrap intervals over questions"
    figure = _rows_figure([*sets, REFERENCE], "Paired difference in accuracy", subtitle, dark)
    looks = _comparison_looks(colours)
    drawn = [name for name in COMPARISONS if (gains["comparison"] == name).any()]
    for lane, name in zip(_lanes(len(drawn)), drawn, strict=True):
        rows = gains[gains["comparison"] == name]
        places = [sets.index(s) + lane for s in rows["set"]]
        figure.add_scatter(
            x=rows["gain"],
            y=places,
            mode="markers",
            name=COMPARISONS[name],
            marker=_marker(*looks[name]),
            error_x=_interval(rows, "gain", "low", "high", looks[name][0]),
            customdata=rows.assign(name=rows["set"].map(set_name))[
                ["name", "low", "high", "n_questions"]
            ].to_numpy(),
            hovertemplate=(
                f"%{{customdata[0]}}: {COMPARISONS[name]} %{{x:+.2f}} points<br>95 % interval "
                "%{customdata[1]:+.2f} to %{customdata[2]:+.2f}<br>"
                "n = %{customdata[3]:,}<extra></extra>"
            ),
        )
        if name in PAPER:
            _paper_mark(figure, PAPER[name], len(sets) + lane, looks[name])
    figure.add_vline(x=0, line={"color": colours.muted, "width": 1})
    figure.update_xaxes(title_text="percentage points (+ the first answers more)")
    return figure


def mean_gains(gains: pd.DataFrame) -> dict[str, dict[str, float]]:
    """gain, low and high of each comparison, mean over sets, in percentage points."""
    rows = gains[gains["set"] == MEAN].set_index("comparison")[["gain", "low", "high"]]
    found = rows.astype(float).to_dict("index")
    return {str(name): {str(k): float(v) for k, v in row.items()} for name, row in found.items()}


def gains_alt(gains: pd.DataFrame) -> str:
    """The mean differences in one sentence."""
    means = mean_gains(gains)
    parts = [
        f"{words} {signed(means[name]['gain'])} points "
        f"[{signed(means[name]['low'])}, {signed(means[name]['high'])}]"
        for name, words in COMPARISONS.items()
        if name in means
    ]
    return f"Paired differences of accuracy, mean over sets: {'; '.join(parts)}."


def downstream_dots(frame: pd.DataFrame, *, dark: bool) -> go.Figure:
    """Accuracy of the model and of its dense twin without any controller, chance marked.

    Args:
        frame: Rows of `downstream`.
        dark: Theme.
    """
    colours = palette(dark)
    sets = [*sorted(set(frame["set"]) - {MEAN}), *([MEAN] if MEAN in set(frame["set"]) else [])]
    chance = frame.groupby("set")["chance"].first().to_dict()
    counted = int(frame.loc[frame["set"] == sets[-1], "n_questions"].max()) if sets else 0
    subtitle = f"n = {counted:,} questions; 95 % bootstrap intervals over questions"
    figure = _rows_figure(sets, "Without training: the model and its dense twin", subtitle, dark)
    _chance_marks(figure, sets, {str(k): float(v) for k, v in chance.items()}, colours)
    looks = {
        "dense": ("dense twin", (colours.rest, "circle-open")),
        "prism": ("PRISM", (colours.accent, "circle")),
    }
    for lane, (model, (name, look)) in zip(_lanes(2), looks.items(), strict=True):
        rows = frame[frame["model"] == model]
        figure.add_scatter(
            x=rows["accuracy"],
            y=[sets.index(s) + lane for s in rows["set"]],
            mode="markers",
            name=name,
            marker=_marker(*look),
            error_x=_interval(rows, "accuracy", "low", "high", look[0]),
            hovertemplate=f"{name} %{{x:.1%}}<extra></extra>",
        )
    figure.update_xaxes(title_text="answered right (share of questions)", tickformat=".0%")
    return figure


def _condition_looks(colours: Palette) -> dict[str, Look]:
    return {
        "none": (colours.rest, "circle"),
        "per-byte": (colours.rest, "circle-open"),
        "sae": (colours.raises, "square"),
        "prototypes": (colours.accent, "diamond"),
    }


def _comparison_looks(colours: Palette) -> dict[str, Look]:
    return {
        "prototypes-none": (colours.accent, "diamond"),
        "sae-none": (colours.raises, "square"),
        "prototypes-sae": (colours.text, "diamond-open"),
        "prototypes-per-byte": (colours.rest, "diamond-open"),
    }


def _marker(shade: str, symbol: str) -> dict[str, object]:
    return {"size": 9, "color": shade, "symbol": symbol, "line": {"width": 1.6, "color": shade}}


def _lanes(count: int) -> list[float]:
    """Where `count` marks of one row stand, above each other around its middle."""
    return [(i - (count - 1) / 2) * 0.6 / max(1, count - 1) for i in range(count)]


def _interval(
    rows: pd.DataFrame, middle: str, low: str, high: str, shade: str
) -> dict[str, object]:
    return {
        "type": "data",
        "symmetric": False,
        "array": rows[high] - rows[middle],
        "arrayminus": rows[middle] - rows[low],
        "color": shade,
        "thickness": 1.5,
        "width": 0,
    }


def _chance_marks(
    figure: go.Figure, sets: Sequence[str], chance: Mapping[str, float], colours: Palette
) -> None:
    """An upright line across each row at the accuracy of guessing."""
    figure.add_scatter(
        x=[x for name in sets for x in (chance[name], chance[name], None)],
        y=[y for row in range(len(sets)) for y in (row - 0.42, row + 0.42, None)],
        mode="lines",
        name="chance",
        line={"color": colours.muted, "width": 1.5, "dash": "dot"},
        hovertemplate="chance %{x:.1%}<extra></extra>",
    )


def _paper_mark(figure: go.Figure, value: float, place: float, look: Look) -> None:
    shade, symbol = look
    figure.add_scatter(
        x=[value],
        y=[place],
        mode="markers+text",
        text=[f"  {value:+.2f}  "],
        textposition="middle right" if value > 1 else "middle left",
        textfont={"size": 11, "color": shade},
        marker={"symbol": f"{symbol}-open", "size": 9, "color": shade, "line": {"width": 1.6}},
        hovertemplate=f"the paper reports {value:+.2f} points for its models<extra></extra>",
        showlegend=False,
        cliponaxis=False,
    )


def _rows_figure(sets: Sequence[str], title: str, subtitle: str, dark: bool) -> go.Figure:
    """An empty figure with a row a set and the mean set apart by a line."""
    colours = palette(dark)
    figure = go.Figure(
        layout=layout(
            dark,
            height=126 + ROW_HEIGHT * max(1, len(sets)),
            title={"text": title, "subtitle": {"text": subtitle}},
            yaxis={
                "tickvals": list(range(len(sets))),
                "ticktext": [escaped(set_name(name)) for name in sets],
                "tickfont": {"color": colours.text},
                "range": [len(sets) - 0.45, -0.55],
                "showgrid": False,
                "zeroline": False,
            },
            legend={"orientation": "h", "x": 0, "y": 0, "yanchor": "bottom", "yref": "container"},
            margin={"l": 8, "r": 16, "t": 54, "b": 66},
        )
    )
    for row, name in enumerate(sets[1:]):
        shade = colours.faint if name in (MEAN, REFERENCE) else colours.grid
        figure.add_hline(y=row + 0.5, line={"color": shade, "width": 1}, layer="below")
    return figure
