"""The next-token distribution: one, and before beside after."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from dashboard.figures.tokens import escaped, glyphs, logit_text, probability_text
from dashboard.theme import MONOSPACE, Palette, layout, palette


ROW_HEIGHT = 25
"""Pixels a token takes."""
PAIR_HEIGHT = 33
"""Pixels a token takes where two bars stand."""
_SMALLEST = 1e-12


def next_token_bars(tokens: pd.DataFrame, dark: bool, targets: tuple[int, ...] = ()) -> go.Figure:
    """Bars of the most likely next tokens, with probability and logit written beside each.

    Args:
        tokens: token_id, token, logit (nats), probability, most likely first.
        dark: Theme.
        targets: Token ids drawn with the accent and a mark (◂).
    """
    colours = palette(dark)
    chosen = tokens["token_id"].isin(targets)
    figure = go.Figure(
        layout=layout(
            dark,
            height=ROW_HEIGHT * len(tokens) + 64,
            showlegend=False,
            margin={"l": 8, "r": 12, "t": 4, "b": 44},
        )
    )
    figure.add_bar(
        orientation="h",
        y=token_names(tokens),
        x=tokens["probability"],
        width=0.7,
        marker={"color": np.where(chosen, colours.accent, colours.rest)},
        text=[
            f"{probability_text(p)}  ·  {logit_text(logit)}{'  ◂' if mark else ''}"
            for p, logit, mark in zip(tokens["probability"], tokens["logit"], chosen, strict=True)
        ],
        textposition="outside",
        cliponaxis=False,
        customdata=_hover(tokens),
        hovertemplate=(
            "%{customdata[1]}<br>probability %{x:.4f}<br>logit %{customdata[2]:.4f}<extra></extra>"
        ),
    )
    top = float(tokens["probability"].max())
    figure.update_xaxes(title_text="Probability (beside it: share · logit)", tickformat=".0%")
    figure.update_xaxes(range=[0, top * 1.5], nticks=6)
    _token_axis(figure, len(tokens), colours)
    return figure


def before_after_bars(tokens: pd.DataFrame, dark: bool) -> go.Figure:
    """Paired bars of probability before and after, and the change in log-odds beside them.

    Args:
        tokens: token_id, token, probability, probability_suppressed; one row per token drawn.
        dark: Theme. Grey is before, the accent is after; blue was raised, orange lowered.
    """
    colours = palette(dark)
    names = token_names(tokens)
    change = log_odds_change(tokens["probability"], tokens["probability_suppressed"])
    figure = make_subplots(
        rows=1, cols=2, shared_yaxes=True, column_widths=[0.56, 0.44], horizontal_spacing=0.04
    )
    _paired_bars(figure, tokens, names, colours)
    figure.add_bar(
        row=1,
        col=2,
        orientation="h",
        y=names,
        x=change,
        width=0.62,
        marker={"color": np.where(change >= 0, colours.raises, colours.lowers)},
        text=[logit_text(value) for value in change],
        textposition="outside",
        cliponaxis=False,
        showlegend=False,
        customdata=_hover(tokens),
        hovertemplate="%{customdata[1]}<br>change in log-odds %{x:+.4f}<extra></extra>",
    )
    figure.update_layout(
        layout(
            dark,
            height=PAIR_HEIGHT * len(tokens) + 106,
            barmode="overlay",
            margin={"l": 8, "r": 12, "t": 28, "b": 58},
            legend={"orientation": "h", "x": 0, "y": 1.0, "yanchor": "bottom"},
        )
    )
    top = float(max(tokens["probability"].max(), tokens["probability_suppressed"].max()))
    figure.update_xaxes(title_text="Probability", tickformat=".0%", nticks=6, row=1, col=1)
    figure.update_xaxes(range=[0, top * 1.25], row=1, col=1)
    reach = max(float(np.abs(change).max(initial=0.0)) * 1.4, 0.1)
    figure.update_xaxes(
        title_text="Change in log-odds (nats)<br>blue + raised, orange − lowered",
        range=[-reach, reach],
        zeroline=True,
        zerolinecolor=colours.muted,
        row=1,
        col=2,
    )
    _token_axis(figure, len(tokens), colours)
    return figure


def _paired_bars(
    figure: go.Figure, tokens: pd.DataFrame, names: list[str], colours: Palette
) -> None:
    """Before above after, in the first panel."""
    pairs = (
        ("probability", "before", colours.rest, -0.38),
        ("probability_suppressed", "after", colours.accent, 0.0),
    )
    for column, name, colour, offset in pairs:
        figure.add_bar(
            row=1,
            col=1,
            orientation="h",
            name=name,
            y=names,
            x=tokens[column],
            width=0.38,
            offset=offset,
            marker={"color": colour},
            text=[probability_text(p) for p in tokens[column]],
            textposition="outside",
            textfont={"size": 10},
            cliponaxis=False,
            customdata=_hover(tokens),
            hovertemplate=f"%{{customdata[1]}} {name}<br>probability %{{x:.5f}}<extra></extra>",
        )


def log_odds_change(before: pd.Series, after: pd.Series) -> np.ndarray:
    """log-odds after - log-odds before, in nats; positive: the token became likelier."""
    return _log_odds(after) - _log_odds(before)


def _log_odds(probability: pd.Series) -> np.ndarray:
    p = np.clip(probability.to_numpy(dtype=np.float64), _SMALLEST, 1 - _SMALLEST)
    return np.log(p) - np.log1p(-p)


def _hover(tokens: pd.DataFrame) -> np.ndarray:
    """What a bar carries: token id, the token written out, its logit."""
    names = [escaped(glyphs(token)) for token in tokens["token"]]
    return (
        tokens[["token_id", "logit"]]
        .assign(name=names)[["token_id", "name", "logit"]]
        .to_numpy(dtype=object)
    )


def token_names(tokens: pd.DataFrame) -> list[str]:
    """One distinct name per token, with the id where two look the same.

    A column `shown`, where there is one, is written instead of the token; hovering tells.
    """
    names = tokens["shown"] if "shown" in tokens else map(glyphs, tokens["token"])
    shown = [escaped(name) for name in names]
    repeated = {name for name in shown if shown.count(name) > 1}
    return [
        f"{name} ({token_id})" if name in repeated else name
        for name, token_id in zip(shown, tokens["token_id"], strict=True)
    ]


def _token_axis(figure: go.Figure, n_tokens: int, colours: Palette) -> None:
    """Tokens from top to bottom, monospaced."""
    figure.update_yaxes(
        range=[n_tokens - 0.5, -0.5],
        type="category",
        showgrid=False,
        zeroline=False,
        ticklabelstandoff=4,
        tickfont={"family": MONOSPACE, "size": 12, "color": colours.text},
    )


def next_token_alt(tokens: pd.DataFrame) -> str:
    """The distribution in one sentence."""
    first = ", ".join(
        f"'{name}' {probability_text(p)}"
        for name, p in zip(token_names(tokens)[:5], tokens["probability"][:5], strict=True)
    )
    return f"Bar chart of the {len(tokens)} most likely next tokens: {first}."


def before_after_alt(tokens: pd.DataFrame) -> str:
    """Before and after in one sentence."""
    change = log_odds_change(tokens["probability"], tokens["probability_suppressed"])
    names = token_names(tokens)
    order = np.argsort(-np.abs(change), kind="stable")[:3]
    moved = ", ".join(f"'{names[i]}' {change[i]:+.2f} nats of log-odds" for i in order)
    return (
        f"Probability of {len(tokens)} tokens before and after suppression. "
        f"Largest changes: {moved}."
    )
