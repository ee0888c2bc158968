"""How the model answers without any training, beside its dense twin, and whether that says much."""

import pandas as pd
import streamlit as st

from dashboard import data, text_control as text, theme
from dashboard.components.chart import chart
from dashboard.components.export import export_buttons
from dashboard.components.panel import empty_state
from dashboard.figures import control as figures


def downstream_panel(ref: data.RunRef) -> None:
    """Accuracy of both with chance, the paired difference in words, what is not comparable."""
    if not data.has(ref, "downstream"):
        empty_state(text.NO_DOWNSTREAM, data.run_of(ref).command_for("downstream"))
        return
    frame = data.table(ref, "downstream")
    left, right = st.columns([3, 2], gap="large")
    with left:
        chart(
            figures.downstream_dots(frame, dark=theme.is_dark()),
            key="downstream",
            alt=f"{difference_sentence(frame)} {chance_sentence(frame)}".strip(),
            file_name=f"{ref.name}-downstream",
        )
    with right:
        st.markdown("##### Without a controller")
        st.caption(text.TWIN)
        verdict = chance_sentence(frame)
        if verdict:
            st.markdown(f":material/horizontal_rule: {verdict}")
        st.markdown(difference_sentence(frame))
        export_buttons(frame, name=f"{ref.name}-downstream", key="downstream_file")


def at_chance(frame: pd.DataFrame) -> list[str]:
    """Sets, the mean left out, on which neither model's interval lies above chance.

    Args:
        frame: Rows of `downstream`.
    """
    sets = frame[frame["set"] != figures.MEAN]
    above = (sets["low"] > sets["chance"]).groupby(sets["set"]).any()
    return [str(name) for name, value in above.items() if not value]


def chance_sentence(frame: pd.DataFrame) -> str:
    """Which sets say nothing because both models guess; empty when there is none."""
    low = at_chance(frame)
    if not low:
        return ""
    if len(low) == frame.loc[frame["set"] != figures.MEAN, "set"].nunique():
        return text.AT_CHANCE
    return text.SOME_AT_CHANCE.format(", ".join(figures.set_name(name) for name in low))


def difference_sentence(frame: pd.DataFrame) -> str:
    """The mean paired difference to the dense twin with its interval."""
    rows = frame[(frame["set"] == figures.MEAN) & (frame["model"] == "prism")]
    if rows.empty or pd.isna(rows["difference"].iloc[0]):
        return ""
    row = rows.iloc[0]
    return (
        f"PRISM minus dense twin, mean over sets: {theme.signed(row['difference'])} percentage "
        f"points [{theme.signed(row['difference_low'])}, {theme.signed(row['difference_high'])}], "
        "paired."
    )
