"""Upper half of the Control page: gains in numbers, accuracy and paired differences in pictures."""

import pandas as pd
import streamlit as st

from dashboard import data, text_control as text, theme
from dashboard.components.chart import chart
from dashboard.components.export import export_buttons
from dashboard.components.facts import Fact, facts
from dashboard.figures import control as figures
from dashboard.figures.control import MEAN


def gain_facts(gains: pd.DataFrame, results: pd.DataFrame, n_prototypes: int) -> None:
    """The mean differences with intervals, and how many weights are not 0."""
    means = figures.mean_gains(gains)
    shown = (
        ("prototypes-none", "Gain of the prototype controller", text.GAIN),
        ("sae-none", "Gain of the SAE controller", text.GAIN),
        ("prototypes-sae", "Prototypes over SAE", text.AGAINST_SAE),
    )
    items = [
        Fact(
            name,
            f"{theme.signed(means[comparison]['gain'])} points",
            _interval(means[comparison]),
            help_text,
        )
        for comparison, name, help_text in shown
        if comparison in means
    ]
    facts([*items, _nonzero(results, n_prototypes), *_counts(gains, results)])


def _interval(row: dict[str, float]) -> str:
    """The 95 % interval, and whether it leaves a difference open."""
    low, high = row["low"], row["high"]
    said = " · covers 0" if low <= 0 <= high else ""
    return f"[{theme.signed(low)}, {theme.signed(high)}]{said}"


def _nonzero(results: pd.DataFrame, n_prototypes: int) -> Fact:
    counts = results.groupby("condition")["nonzeros"].mean()
    ours = counts.get("prototypes")
    note = f"of {n_prototypes:,}" if n_prototypes else ""
    if "sae" in counts:
        note += f" · SAE {theme.number(float(counts['sae']))}"
    value = "–" if ours is None else theme.number(float(ours))
    return Fact("Non-zero weights", value, note.strip(), text.NONZERO)


def _counts(gains: pd.DataFrame, results: pd.DataFrame) -> list[Fact]:
    splits = results["seed"].nunique()
    train = int(results.groupby("set")["n_train"].mean().sum())
    tested = int(gains.loc[gains["set"] != MEAN].groupby("set")["n_questions"].max().sum())
    return [
        Fact("Questions tested", theme.count(tested), f"{splits} splits"),
        Fact("Trained on", theme.count(train), "a split"),
    ]


def results_panel(ref: data.RunRef, gains: pd.DataFrame, results: pd.DataFrame) -> None:
    """Accuracy on the left, paired differences on the right."""
    chance = chance_of(ref)
    tested = int(gains.loc[gains["set"] != MEAN].groupby("set")["n_questions"].max().sum())
    left, right = st.columns(2, gap="large")
    with left:
        chart(
            figures.accuracy_dots(results, chance, tested, dark=theme.is_dark()),
            key="control_accuracy",
            alt=_accuracy_alt(results, chance),
            file_name=f"{ref.name}-control-accuracy",
        )
    with right:
        chart(
            figures.gain_dots(gains, dark=theme.is_dark()),
            key="control_gains",
            alt=figures.gains_alt(gains),
            file_name=f"{ref.name}-control-gains",
        )


def chance_of(ref: data.RunRef) -> dict[str, float]:
    """Accuracy of guessing by set: mean of 1 over the number of options."""
    questions = data.table(ref, "control_questions", ("set", "question", "n_options"))
    shares = (1 / questions["n_options"]).groupby(questions["set"]).mean()
    return {str(name): float(value) for name, value in shares.items()}


def _accuracy_alt(results: pd.DataFrame, chance: dict[str, float]) -> str:
    parts = []
    for name, rows in results.groupby("set"):
        means = rows.groupby("condition")["accuracy"].mean()
        said = ", ".join(
            f"{words} {means[condition]:.1%}"
            for condition, words in figures.CONDITIONS.items()
            if condition in means.index
        )
        parts.append(f"{figures.set_name(str(name))}: {said}, chance {chance[str(name)]:.1%}")
    return f"Accuracy on held-out questions. {'; '.join(parts)}."


def results_export(ref: data.RunRef, gains: pd.DataFrame, results: pd.DataFrame) -> None:
    """Both tables as files."""
    with st.expander("Numbers behind both figures", icon=":material/download:"):
        for words, rows, name in (
            ("Accuracies", results, "control-results"),
            ("Differences", gains, "control-gains"),
        ):
            with st.container(horizontal=True, gap="small", vertical_alignment="center"):
                st.caption(f"{words}: {len(rows):,} rows", width=170)
                export_buttons(rows, name=f"{ref.name}-{name}", key=f"{name}_file")
