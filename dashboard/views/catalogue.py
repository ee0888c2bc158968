"""The Catalogue page: public models, what is documented of them, and which are embedded."""

import streamlit as st

from dashboard import service_catalogue as service, text_catalogue as text
from dashboard.components.catalogue_card import card
from dashboard.components.catalogue_controls import CatalogueView, controls
from dashboard.components.catalogue_graph import graph_panel, table_panel
from dashboard.components.facts import Fact, facts, page_head
from dashboard.components.panel import plain_errors
from dashboard.service_catalogue import Held


def page() -> None:
    """Draw the page; it opens on the model that most others go back to. No run is needed."""
    page_head("Catalogue", text.CATALOGUE, text.HOW)
    with plain_errors():
        held = service.held()
        _numbers(held)
        view = controls(service.models(), held)
        _browse(view, held)


def _numbers(held: dict[str, Held]) -> None:
    """How many models, with what evidence, scores and embeddings."""
    frame = service.models()
    counts = frame["evidence"].value_counts()
    lineage = service.lineage_of(frame)
    embedded = sum(found.status == "embedded" for found in held.values())
    facts(
        [
            Fact("Models", f"{len(frame)}", f"{frame['label'].nunique()} family labels"),
            Fact("With a stated parent", f"{int(frame['parent'].ne('').sum())}",
                 f"{len(lineage.outside)} parents not listed"),
            Fact("Source named", f"{int(counts.get('checked', 0))}", "of these",
                 text.EVIDENCE_HELP),
            Fact("General knowledge", f"{int(counts.get('unchecked', 0))}", "unchecked",
                 text.EVIDENCE_HELP),
            Fact("With published scores", f"{int(frame['published'].sum())}"),
            Fact("Embedded here", f"{embedded}", f"of {len(frame)}"),
        ]
    )  # fmt: skip


def _browse(view: CatalogueView, held: dict[str, Held]) -> None:
    frame = service.models()
    left, right = st.columns([14, 5], gap="medium")
    with left:
        graph_panel(frame, held, view)
        table_panel(frame, held, view)
    with right, st.container(border=True):
        card(frame, held, view.chosen)
