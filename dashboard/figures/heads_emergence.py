"""How heads form by arm: scores and losses over steps with seed bands; effects with intervals."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from dashboard import text_heads as text, theme


ROW = 168
"""Pixels a row of the emergence figure takes."""
ARM_ROW = 27
"""Pixels an arm takes in the effects figure."""
PER_LINE = 6
"""Arms a line of the legend holds."""


@dataclass(frozen=True)
class Style:
    """How an arm is drawn."""

    colour: str
    dash: str
    symbol: str


def style(arm: str, colours: theme.Palette) -> Style:
    """Colour, dash and symbol of an arm; blue and orange are kept for what raises and lowers."""
    styles = {
        "baseline": Style(colours.text, "solid", "circle"),
        "delete_top": Style(colours.lowers, "solid", "diamond"),
        "augment_top": Style(colours.raises, "solid", "square"),
        "delete_random": Style(colours.rest, "dash", "diamond"),
        "augment_random": Style(colours.rest, "dot", "square"),
        "replace_top": Style("#009E73", "solid", "triangle-up"),
        "replace_random": Style("#009E73", "dash", "triangle-down"),
        "synthetic": Style("#CC79A7", "solid", "star"),
        "synthetic_control": Style("#CC79A7", "dash", "x"),
    }
    return styles.get(arm, Style(colours.rest, "longdash", "circle"))


def veiled(colour: str, opacity: float) -> str:
    """A colour with an opacity."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity})"


def in_order(arms: pd.Series) -> list[str]:
    """The arms of a column in the order they are listed; ones without a name last."""
    found = {str(arm) for arm in arms.unique()}
    return [a for a in text.ARMS if a in found] + sorted(found - set(text.ARMS))


def panel_title(panel: str) -> str:
    """Title of a row's axis, with its unit."""
    if panel in text.PANELS:
        return text.PANELS[panel].replace(" (", "<br>(")
    return f"{text.unit_name(panel)}<br>score (share)"


def emergence(
    bands: pd.DataFrame,
    curves: pd.DataFrame,
    panels: Sequence[str],
    *,
    dark: bool,
    along: str,
    axis: str,
    window: tuple[float, float] | None,
    each_seed: bool,
) -> go.Figure:
    """Scores and losses of every arm over one step axis, a row a measure.

    Args:
        bands: panel, arm, `along`, mean, low, high, n; where it is empty only seeds are drawn.
        curves: panel, seed, arm, `along`, value.
        panels: Rows from top to bottom.
        dark: Theme.
        along: Column of the step axis.
        axis: Its title.
        window: Steps in which samples were changed, shaded.
        each_seed: Draw a thin line for each seed.
    """
    colours = theme.palette(dark)
    arms = in_order(curves["arm"])
    means, seeds = (dict(list(f.groupby(["panel", "arm"]))) for f in (bands, curves))
    lines = -(-len(arms) // PER_LINE)
    figure = make_subplots(
        rows=len(panels),
        cols=1,
        shared_xaxes=True,
        vertical_spacing=0.14 / max(2, len(panels)),
        figure=go.Figure(
            layout=theme.layout(
                dark,
                height=ROW * len(panels) + 100 + 20 * lines,
                legend={"orientation": "h", "x": 0, "y": 1.0, "yanchor": "bottom"},
                margin={"l": 8, "r": 12, "t": 28 + 22 * lines, "b": 8},
            )
        ),
    )
    traces = []
    for row, panel in enumerate(panels, start=1):
        for arm in arms:
            own = means.get((panel, arm), bands.iloc[:0])
            shown = seeds.get((panel, arm), curves.iloc[:0])
            shown = shown if each_seed or own.empty else shown.iloc[:0]
            traces += _arm_traces(own, shown, arm, along, row, colours)
        figure.update_yaxes(title_text=panel_title(panel), nticks=5, row=row, col=1)
    figure.add_traces(traces)
    if window is not None:
        figure.add_shape(
            type="rect", x0=window[0], x1=window[1], y0=0, y1=1, xref="x", yref="paper",
            fillcolor=colours.faint, opacity=0.3, line_width=0, layer="below",
        )  # fmt: skip
    figure.update_xaxes(showgrid=False)
    figure.update_xaxes(title_text=axis, row=len(panels), col=1)
    return figure


def _arm_traces(
    band: pd.DataFrame,
    seeds: pd.DataFrame,
    arm: str,
    along: str,
    row: int,
    colours: theme.Palette,
) -> list[go.Scatter]:
    """Band, mean and thin lines of an arm in one row, and its entry of the legend in the first."""
    look, name = style(arm, colours), text.arm_name(arm)
    place = {"xaxis": f"x{row}", "yaxis": f"y{row}"} if row > 1 else {}
    traces = [
        _line(own[along], own["value"], f"{name}, seed {seed}", arm, look, place, thin=True)
        for seed, own in seeds.groupby("seed")
    ]
    spread = band.dropna(subset=["low", "high"])
    if len(spread):
        traces.append(_band(spread, along, arm, look, place))
    if len(band):
        traces.append(
            _line(band[along], band["mean"], name, arm, look, place, thin=False, means=band)
        )
    if row == 1:  # one entry of the legend an arm, whatever is drawn of it
        traces.append(
            go.Scatter(
                x=[None], y=[None], mode="lines", name=name, legendgroup=arm, showlegend=True,
                line={"color": look.colour, "dash": look.dash, "width": 2.4},
            )
        )  # fmt: skip
    return traces


def _line(
    x: pd.Series,
    y: pd.Series,
    name: str,
    arm: str,
    look: Style,
    place: dict[str, str],
    *,
    thin: bool,
    means: pd.DataFrame | None = None,
) -> go.Scatter:
    """A seed's line or, with `means`, the line of a mean that tells its interval on hover."""
    hover = f"{name}<br>step %{{x:,}}: %{{y:.3g}}<extra></extra>"
    if means is not None:
        hover = (
            f"{name}, mean of %{{customdata[2]}} seeds<br>step %{{x:,}}: %{{y:.3g}}"
            "<br>[%{customdata[0]:.3g}, %{customdata[1]:.3g}]<extra></extra>"
        )
    return go.Scatter(
        x=x,
        y=y,
        mode="lines",
        name=name,
        legendgroup=arm,
        showlegend=False,
        opacity=0.6 if thin else 1,
        line={"color": look.colour, "dash": look.dash, "width": 1 if thin else 2.2},
        customdata=None if means is None else means[["low", "high", "n"]].to_numpy(),
        hovertemplate=hover,
        **place,
    )


def _band(
    spread: pd.DataFrame, along: str, arm: str, look: Style, place: dict[str, str]
) -> go.Scatter:
    return go.Scatter(
        x=np.concatenate([spread[along], spread[along][::-1]]),
        y=np.concatenate([spread["low"], spread["high"][::-1]]),
        fill="toself",
        mode="lines",
        line={"width": 0, "color": veiled(look.colour, 0)},
        fillcolor=veiled(look.colour, 0.16),
        legendgroup=arm,
        showlegend=False,
        hoverinfo="skip",
        **place,
    )


def emergence_alt(bands: pd.DataFrame, panels: Sequence[str]) -> str:
    """Where each arm's first row ends."""
    own = bands[bands["panel"] == panels[0]] if len(bands) else bands
    ends = [
        f"{text.arm_name(str(arm))} {float(rows['mean'].iloc[-1]):.2f}"
        for arm, rows in own.groupby("arm")
    ]
    what = panel_title(panels[0]).replace("<br>", " ")
    return f"{what} by arm, at the last step drawn: {', '.join(ends) or 'seeds only'}."


@dataclass(frozen=True)
class EffectPanel:
    """One panel of an effects figure."""

    rows: pd.DataFrame
    """arm, effect, low, high, n_seeds."""
    name: str
    unit: str


def effects(
    rows: pd.DataFrame, measures: Sequence[str], *, dark: bool, title: str, subtitle: str
) -> go.Figure:
    """Effect of each arm with its interval, one panel a measure; 0 is the baseline.

    Args:
        rows: Rows of `head_effects` of one kind of head.
        measures: Measures in the order drawn.
        dark: Theme.
        title: What is compared.
        subtitle: n and reading.
    """
    panels = [EffectPanel(rows[rows["measure"] == m], *text.MEASURES[m]) for m in measures]
    return _effect_panels(panels, dark=dark, title=title, subtitle=subtitle)


def effects_by_kind(rows: pd.DataFrame, units: Sequence[str], *, dark: bool) -> go.Figure:
    """Effect of each arm on the score, one panel a kind of head.

    Args:
        rows: Rows of `head_effects` of the measure score.
        units: Kinds of heads in the order drawn.
        dark: Theme.
    """
    panels = [
        EffectPanel(rows[rows["unit"] == unit], f"{text.unit_name(unit)} head", "share")
        for unit in units
    ]
    return _effect_panels(
        panels,
        dark=dark,
        title="Score over the window: arm minus baseline",
        subtitle=f"n = {seeds_text(rows)}; bars: 95 % t-interval; filled: it leaves out 0",
    )


def seeds_text(rows: pd.DataFrame) -> str:
    """How many seeds the effects rest on, in words."""
    found = sorted({int(n) for n in rows["n_seeds"]})
    if not found:
        return "no seeds"
    return f"{found[0]} seeds" if len(found) == 1 else f"{found[0]} to {found[-1]} seeds"


def _effect_panels(
    panels: Sequence[EffectPanel], *, dark: bool, title: str, subtitle: str
) -> go.Figure:
    colours = theme.palette(dark)
    arms = in_order(pd.concat([panel.rows["arm"] for panel in panels]))
    figure = make_subplots(
        rows=1,
        cols=len(panels),
        shared_yaxes=True,
        horizontal_spacing=0.025,
        subplot_titles=[panel.name for panel in panels],
        figure=go.Figure(
            layout=theme.layout(
                dark,
                height=ARM_ROW * max(2, len(arms)) + 144,
                showlegend=False,
                title={"text": title, "subtitle": {"text": subtitle}},
                margin={"l": 8, "r": 16, "t": 84, "b": 8},
            )
        ),
    )
    figure.update_annotations(font={"size": 12, "color": colours.text})
    for col, panel in enumerate(panels, start=1):
        own = panel.rows.set_index("arm").reindex(arms).reset_index()
        figure.add_trace(_effect_dots(own, colours), row=1, col=col)
        figure.update_xaxes(
            title_text=panel.unit, title_font_size=11, range=_reach(own), tickvals=_ticks(own),
            tickangle=0, exponentformat="none", row=1, col=col,
        )  # fmt: skip
    figure.update_xaxes(zeroline=True, zerolinecolor=colours.muted)
    figure.update_yaxes(
        range=[len(arms) - 0.5, -0.5], showgrid=False, zeroline=False, ticklabelstandoff=4,
        tickfont_color=colours.text,
    )  # fmt: skip
    return figure


def leaves_out_zero(rows: pd.DataFrame) -> np.ndarray:
    """Whether each interval leaves out 0."""
    return ((rows["low"] > 0) | (rows["high"] < 0)).to_numpy()


def _effect_dots(own: pd.DataFrame, colours: theme.Palette) -> go.Scatter:
    looks = [style(str(arm), colours) for arm in own["arm"]]
    clear = leaves_out_zero(own)
    return go.Scatter(
        x=own["effect"],
        y=[text.arm_name(str(arm)) for arm in own["arm"]],
        mode="markers",
        marker={
            "color": [look.colour for look in looks],
            "symbol": [
                look.symbol if full else f"{look.symbol}-open"
                for look, full in zip(looks, clear, strict=True)
            ],
            "size": 10,
            "line": {"width": 1.6, "color": [look.colour for look in looks]},
        },
        error_x={
            "type": "data",
            "symmetric": False,
            "array": own["high"] - own["effect"],
            "arrayminus": own["effect"] - own["low"],
            "color": colours.rest,
            "thickness": 1.4,
            "width": 3,
        },
        customdata=own[["low", "high", "n_seeds"]].to_numpy(),
        hovertemplate=(
            "%{y}: %{x:+.3g}<br>95 % interval %{customdata[0]:+.3g} to %{customdata[1]:+.3g}"
            "<br>%{customdata[2]} seeds<extra></extra>"
        ),
        cliponaxis=False,
    )


def _reach(own: pd.DataFrame) -> list[float]:
    """Range of a panel: every interval and zero."""
    values = own[["effect", "low", "high"]].to_numpy(np.float64)
    known = values[np.isfinite(values)]
    low, high = min(0.0, *known, 0.0), max(0.0, *known, 0.0)
    room = 0.1 * max(high - low, 1e-9)
    return [low - room, high + room]


def _ticks(own: pd.DataFrame) -> list[float]:
    """0 and a round number on each side that the range reaches: at least two ticks."""
    low, high = _reach(own)
    far = 0.85 * max(-low, high)
    if far < 1e-9:
        return [0.0]
    power = 10.0 ** np.floor(np.log10(far))
    step = float(max(d for d in (1, 2, 5) if d * power <= far * (1 + 1e-9)) * power)
    return [tick for tick in (-step, 0.0, step) if low <= tick <= high]


def effects_alt(rows: pd.DataFrame, measure: str) -> str:
    """The first measure in one sentence."""
    own = rows[rows["measure"] == measure].sort_values("effect")
    said = "; ".join(
        f"{text.arm_name(str(r['arm']))} {r['effect']:+.3g} [{r['low']:+.3g}, {r['high']:+.3g}]"
        for r in own.to_dict("records")
    )
    return f"{text.MEASURES[measure][0]}, arm minus baseline: {said}."
