"""Pictures of the Overview page: each draws one table of the run."""

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from dashboard import data, theme
from dashboard.components.chart import chart
from dashboard.figures import quality, training


@dataclass(frozen=True)
class _Picture:
    """A figure of one table: when the run has the table, how it is drawn and said."""

    table: str
    name: str
    """Key of the chart and end of the saved file's name."""
    figure: Callable[[pd.DataFrame], go.Figure]
    alt: Callable[[pd.DataFrame], str]


def pictures(ref: data.RunRef) -> None:
    """Training curve, coverage on the way, trade-off, loss by domain, banks: what there is."""
    drawn = [picture for picture in _pictures(ref) if data.has(ref, picture.table)]
    for start in range(0, len(drawn), 2):
        for column, picture in zip(
            st.columns(2, gap="large"), drawn[start : start + 2], strict=False
        ):
            with column:
                _draw(ref, picture)


def _draw(ref: data.RunRef, picture: _Picture) -> None:
    labelled = picture.table == "prototypes"
    rows = data.prototypes(ref) if labelled else data.table(ref, picture.table)
    chart(
        picture.figure(rows),
        key=picture.name.replace("-", "_"),
        alt=picture.alt(rows),
        file_name=f"{ref.name}-{picture.name}",
    )


def _pictures(ref: data.RunRef) -> tuple[_Picture, ...]:
    """Every picture in order, in the theme on screen."""
    dark = theme.is_dark()
    return (
        _training(ref, dark),
        _Picture(
            "evaluations",
            "training-coverage",
            lambda rows: training.coverage_curve(rows, dark=dark),
            lambda rows: (
                f"Coverage and signs of collapse at {len(rows)} evaluations while training."
            ),
        ),
        _Picture(
            "tradeoff",
            "tradeoff",
            lambda rows: quality.tradeoff(rows, dark=dark),
            lambda rows: (
                f"Loss above the dense twin against mean coverage for {len(rows)} loss weightings."
            ),
        ),
        _Picture(
            "coverage",
            "banks",
            lambda rows: quality.coverage_banks(rows, dark=dark),
            lambda rows: f"Coverage and residual share of {len(rows)} banks of the same size.",
        ),
        _Picture(
            "validation_loss",
            "loss-by-domain",
            lambda rows: quality.loss_by_domain(rows, dark=dark),
            lambda rows: (
                f"Held-out loss of model and dense twin in {rows['domain'].nunique()} domains."
            ),
        ),
        _Picture(
            "prototypes",
            "label-scores",
            lambda rows: quality.label_scores(rows, dark=dark),
            lambda rows: f"Label scores of {len(rows):,} prototypes beside those of random labels.",
        ),
    )


def _training(ref: data.RunRef, dark: bool) -> _Picture:
    """The loss while training; of a run that trains nothing but its bank, the bank's losses."""
    met = data.table(ref, "evaluations") if data.has(ref, "evaluations") else pd.DataFrame()

    def figure(log: pd.DataFrame) -> go.Figure:
        if log["cross_entropy"].isna().all():
            return training.bank_loss_curve(log, dark=dark)
        return training.loss_curve(log, met, dark=dark)

    def alt(log: pd.DataFrame) -> str:
        if log["cross_entropy"].isna().all():
            return f"Losses of the bank over {len(log):,} fitting steps."
        last = float(log["cross_entropy"].iloc[-1])
        return f"Loss over {len(log):,} training steps, ending at {last:.2f} nats per token."

    return _Picture("training_log", "training-loss", figure, alt)
