"""What the page Forecast looks at: target, method, regimes and groups, all of it in the URL."""

from dataclasses import dataclass

import pandas as pd
import streamlit as st

from dashboard import data, forecast_rows, state, text_forecast as text, theme
from dashboard.data import RunRef


@dataclass(frozen=True)
class ForecastView:
    """What is looked at."""

    target: str
    method: str
    regimes: tuple[str, ...]
    """Both regimes that stand side by side, the leaking one first."""
    by: str
    """family or root."""


def controls(results: pd.DataFrame) -> ForecastView:
    """Draw the controls of the page.

    Args:
        results: Rows of `model_forecast_results`.
    """
    targets = [t for t in sorted(set(results["target"])) if t != text.OVER_ALL]
    methods = in_order(text.METHODS, set(results["method"]))
    regimes = in_order(text.REGIMES, set(results["regime"]))
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        target = choice("Score of", "target", targets, 190)
        method = named("Told by", "method", {m: text.method_words(m) for m in methods}, 260)
        strict = _strict(regimes)
        by = choice("Groups", "group", list(text.GROUPS), 120, text.GROUP_HELP)
    return ForecastView(target, method, tuple(dict.fromkeys((regimes[0], strict))), by.lower())


def _strict(regimes: list[str]) -> str:
    """The regime beside the first; asked for where there are several."""
    others = regimes[1:]
    if len(others) < 2:
        return others[0] if others else regimes[0]
    return named(
        f"Beside {text.regime_words(regimes[0])}",
        "beside",
        {r: text.regime_words(r) for r in others},
        200,
    )


def in_order(known: dict[str, str], found: set[str]) -> list[str]:
    """Names that were found: those that are known first, in their order."""
    return [n for n in known if n in found] + sorted(n for n in found if n not in known)


def choice(label: str, key: str, options: list[str], width: int, help_text: str = "") -> str:
    """One of some options, in the link by its name."""
    state.read_choice(key, options, options[0])
    shown = st.selectbox(
        label, options, key=key, bind="query-params", width=width, help=help_text or None
    )
    return str(shown or options[0])


def named(label: str, key: str, names: dict[str, str], width: int) -> str:
    """One of some names, in the link by its words on screen."""
    shown = choice(label, key, list(names.values()), width)
    return next(name for name, words in names.items() if words == shown)


def grouped(ref: RunRef, view: ForecastView) -> tuple[pd.DataFrame, list[str], dict[str, str]]:
    """Forecasts of the view with groups, the groups by size, and their colours."""
    where = (("target", view.target), ("method", view.method), ("regime", view.regimes))
    rows = data.table(ref, "model_forecasts", where=where)
    cards = (
        data.table(ref, "model_cards", ("model", "family", "roots"))
        if data.has(ref, "model_cards")
        else pd.DataFrame(columns=["model", "family", "roots"])
    )
    found = forecast_rows.with_groups(rows, cards, view.by)
    one = found[found["regime"] == view.regimes[0]]
    groups = forecast_rows.largest_first(one["group"])
    named_groups = [group for group in groups if group != forecast_rows.UNKNOWN]
    return found, groups, theme.category_colours(named_groups, theme.palette())
