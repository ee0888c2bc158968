"""What two models answer to one question, and the sums of its words as a table."""

import numpy as np
import pandas as pd
import streamlit as st

from dashboard import text_pair as text, theme
from dashboard.components.chart import chart
from dashboard.components.export import export_buttons
from dashboard.components.pair_words import Reading
from dashboard.figures import pair as figures


def answers_panel(run: str, read: Reading, style: str) -> None:
    """What each model gives the options, drawn; sums of both as a table beside.

    Args:
        run: Name of the run, for files.
        read: The question.
        style: What is scored: letters or texts.
    """
    options = option_rows(read, style)
    names = (read.sides[0].name, read.sides[1].name)
    left, right = st.columns([2, 3], gap="large")
    with left:
        by_text = style == "texts"
        axis = "log-probability a byte (nats)" if by_text else "log-probability (nats)"
        chart(
            figures.option_dots(options, names, dark=theme.is_dark(), axis=axis),
            key="pair_options",
            alt=figures.options_alt(options, names),
            file_name=f"{run}-pair-options-{read.probe}",
        )
        st.caption(text.TEXTS_CHOICE if by_text else text.LETTERS_CHOICE)
    with right:
        _sums_table(run, read)


def option_rows(read: Reading, style: str) -> pd.DataFrame:
    """option, right, and for each side `value_SIDE` (what decides) and `chosen_SIDE`."""
    places = np.arange(len(read.options))
    rows = pd.DataFrame({"option": read.options, "right": places == read.answer})
    sizes = np.array([max(1, len(option.encode())) for option in read.options])
    for place, side in enumerate(read.sides):
        rows[f"value_{place}"] = side.scores / (sizes if style == "texts" else 1)
        rows[f"chosen_{place}"] = places == side.choice
    return rows


def sums_rows(read: Reading) -> pd.DataFrame:
    """Sums of every option of both models."""
    parts = []
    for side in read.sides:
        if side.block.size:
            sums = side.sums
            sums.insert(0, "option", read.options)
            sums.insert(0, "model", side.name)
            parts.append(sums.assign(log_probability=side.scores))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def _sums_table(run: str, read: Reading) -> None:
    rows = sums_rows(read)
    if rows.empty:
        return
    st.markdown("**Sums**")
    st.dataframe(
        rows.drop(columns="log_probability"),
        key="pair_sums",
        hide_index=True,
        height="content",
        column_config={
            "model": st.column_config.TextColumn("Model"),
            "option": st.column_config.TextColumn("Option"),
            "raises": st.column_config.NumberColumn("Raises", format="%.3f"),
            "lowers": st.column_config.NumberColumn("+ lowers", format="%.3f"),
            "words": st.column_config.NumberColumn("= words", format="%.3f"),
            "slot": st.column_config.NumberColumn("+ outside words", format="%.3f"),
            "total": st.column_config.NumberColumn("= whole", format="%.3f"),
        },
        alt=f"Sums of {len(rows)} options.",
    )
    first, second = (theme.number(side.rounding, 2) for side in read.sides)
    st.caption(f"{text.ADDS_UP} {text.ROUNDED.format(a=first, b=second)}")
    export_buttons(
        word_rows(read), name=f"{run}-pair-words-{read.probe}", key="pair_words_file"
    )  # fmt: skip


def word_rows(read: Reading) -> pd.DataFrame:
    """Every word of every option with its attribution in both models, in nats."""
    names = [word for word, _ in read.words]
    n = len(read.options)
    rows = pd.DataFrame(
        {
            "probe": read.probe,
            "option": np.repeat(read.options, len(names)),
            "place": np.tile(np.arange(len(names)), n),
            "word": np.tile(names, n),
        }
    )
    for side in read.sides:
        rows[side.name] = side.block.ravel() if side.block.size else np.nan
    return rows
