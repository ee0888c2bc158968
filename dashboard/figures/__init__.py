"""Pure figures: a frame in, a Plotly figure out; no Streamlit."""
