"""What of a map can be taken away: embeddings, cosines, lineage, relations, a report."""

import pandas as pd
import streamlit as st

from dashboard import (
    data,
    models_report,
    service_models as service,
    service_pair,
    text_models as text,
)
from dashboard.components.export import export_buttons
from dashboard.components.models_controls import ModelsView
from dashboard.data import RunRef


TABLES = {
    "model_cards": "What is documented of every model",
    "model_neighbours": "Neighbours with percentiles and verdicts",
    "model_pairs": "Pairs with their documented relation",
    "model_parents": "Bases that were predicted",
    "model_relation_results": "How well relations are told",
    "model_layouts": "Places on the pictures",
}
"""Tables that are offered whole."""


def embeddings(ref: RunRef, variant: str) -> pd.DataFrame:
    """Embeddings of one way, a row a model, a column a dimension."""
    vectors = service_pair.vectors(ref, variant)
    named = vectors.rename(columns=lambda k: f"d{int(k):03d}").rename_axis("model")
    return named.reset_index()


def export_panel(ref: RunRef, frame: pd.DataFrame, view: ModelsView) -> None:
    """Buttons for embeddings, every table that there is, and the report."""
    st.caption(text.EXPORT_SAID)
    st.markdown(f"**Embeddings, {view.variant}**, at length 1")
    export_buttons(
        embeddings(ref, view.variant), name=f"{ref.name}-embeddings-{view.variant}",
        key="export_embeddings",
    )  # fmt: skip
    for name, words in TABLES.items():
        if data.has(ref, name):
            st.markdown(f"**{words}**")
            export_buttons(data.table(ref, name), name=f"{ref.name}-{name}", key=f"export_{name}")
    st.markdown("**Report**: one page with map, numbers and tables, to read without this program")
    st.download_button(
        "HTML",
        lambda: models_report.report(ref, frame, view.variant, view.layout, view.chosen).encode(),
        f"{ref.name}-report.html",
        "text/html",
        key="export_report",
        on_click="ignore",
        icon=":material/download:",
    )
    n = service.n_failed(ref)
    if n:
        st.caption(f"{n} models of the catalogue could not be embedded and are in no export but "
                   "that of the cards.")  # fmt: skip
