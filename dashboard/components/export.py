"""Rows on screen as CSV and Parquet files, made when the button is pressed."""

import pandas as pd
import streamlit as st

from engine import store


def export_buttons(frame: pd.DataFrame, *, name: str, key: str) -> None:
    """Two buttons that save exactly `frame`.

    Args:
        frame: Rows to save; read only when a button is pressed.
        name: File name without extension.
        key: Prefix of the widget keys.
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
