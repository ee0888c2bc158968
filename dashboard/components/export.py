"""Rows on screen as files, made when the button is pressed."""

from collections.abc import Callable

import pandas as pd
import streamlit as st

from engine import store


def export_buttons(
    frame: pd.DataFrame, *, name: str, key: str, as_json: Callable[[], str] | None = None
) -> None:
    """Buttons that save exactly `frame`, and what stands behind it as JSON where that is given.

    Args:
        frame: Rows to save; read only when a button is pressed.
        name: File name without extension.
        key: Prefix of the widget keys.
        as_json: Makes the JSON text when its button is pressed.
    """
    with st.container(horizontal=True, gap="small"):
        st.download_button(
            "CSV",
            lambda: frame.to_csv(index=False).encode(),
            f"{name}.csv",
            "text/csv",
            key=f"{key}_csv",
            on_click="ignore",
            icon=":material/download:",
            disabled=frame.empty,
            help=f"Save these {len(frame):,} rows as CSV.",
        )
        st.download_button(
            "Parquet",
            lambda: store.parquet_bytes(frame),
            f"{name}.parquet",
            "application/vnd.apache.parquet",
            key=f"{key}_parquet",
            on_click="ignore",
            icon=":material/download:",
            disabled=frame.empty,
            help=f"Save these {len(frame):,} rows as Parquet.",
        )
        if as_json is not None:
            st.download_button(
                "JSON",
                as_json,
                f"{name}.json",
                "application/json",
                key=f"{key}_json",
                on_click="ignore",
                icon=":material/download:",
                disabled=frame.empty,
                help=f"Save these {len(frame):,} rows with all that is needed to make them again.",
            )
