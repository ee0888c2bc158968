"""The Forecast page: scores told without the model or its family, and bases ranked for a task."""

import streamlit as st

from dashboard import data, text_forecast as text
from dashboard.components.elsewhere import no_models
from dashboard.components.facts import page_head
from dashboard.components.forecast_candidates import candidates_panel
from dashboard.components.forecast_controls import ForecastView, controls
from dashboard.components.forecast_panels import baselines, forecast_facts, residuals, scatters
from dashboard.components.panel import empty_state, panel
from dashboard.data import RunRef


def page() -> None:
    """Draw the page; it opens on the first target, one model out beside one root out."""
    ref = data.current()
    page_head("Forecast", text.FORECAST, text.FORECAST_HOW)
    if not data.has(ref, "model_embeddings"):
        no_models("model_forecasts")
        return
    if data.has(ref, "model_forecasts") and data.has(ref, "model_forecast_results"):
        _forecasts(ref)
    else:
        empty_state(text.NO_FORECASTS, data.run_of(ref).command_for("model_forecasts"))
    _candidates(ref)


def _forecasts(ref: RunRef) -> None:
    results = data.table(ref, "model_forecast_results")
    view = controls(results)
    forecast_facts(results, view)
    _pictures(ref, view)
    _baselines(ref, view)


@panel
def _pictures(ref: RunRef, view: ForecastView) -> None:
    scatters(ref, view, data.table(ref, "model_forecast_results"))
    residuals(ref, view)


@panel
def _baselines(ref: RunRef, view: ForecastView) -> None:
    baselines(ref, view, data.table(ref, "model_forecast_results"))


@panel
def _candidates(ref: RunRef) -> None:
    st.markdown("### Candidates for adaptation")
    candidates_panel(ref)
