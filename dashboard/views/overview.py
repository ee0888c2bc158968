"""The Overview page."""

import streamlit as st


def page() -> None:
    """Draw the page."""
    st.title("Overview")
