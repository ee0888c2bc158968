"""The dashboard: Streamlit pages over the tables and the live engine of a run."""
