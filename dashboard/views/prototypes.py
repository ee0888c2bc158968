"""The Prototypes page."""

import streamlit as st


def page() -> None:
    """Draw the page."""
    st.title("Prototypes")
