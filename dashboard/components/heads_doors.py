"""From a training sample of a head to the same text in a run with prototypes."""

from dataclasses import dataclass

import pandas as pd
import streamlit as st

from dashboard import data, documents
from dashboard.components.doors import door
from dashboard.components.panel import attempt
from dashboard.data import RunRef


PROMPT_CHARACTERS = 600
"""Characters of a sample that travel to another page."""


@dataclass(frozen=True)
class Place:
    """A place of a document in another run."""

    document: int
    position: int
    """Token, as that run counts them."""
    prototype: int | None
    """A prototype that is active near it, if the run knows one."""


def prototype_run() -> RunRef | None:
    """The run with prototypes that doors lead to: the first of the list."""
    return next((ref for ref in data.run_refs() if data.has(ref, "prototypes")), None)


@st.cache_data(max_entries=256, show_spinner=False)
def place_in(other: RunRef, ref: RunRef, doc_id: str, position: int) -> Place | None:
    """Where a run has the document of a sample; None where it lacks it.

    Args:
        other: Run with prototypes.
        ref: Run of the sample.
        doc_id: Document, the same in both.
        position: First token of the sample, as `ref` counts them.
    """
    if not data.has(other, "documents"):
        return None
    rows = data.table(other, "documents", ("document",), (("doc_id", doc_id),))
    if rows.empty:
        return None
    document = int(rows["document"].iloc[0])
    before, _ = attempt(documents.characters_before, ref.path, doc_id, position)
    at = 0
    if before is not None:
        found, _ = attempt(documents.token_at, other.path, doc_id, before)
        at = found or 0
    return Place(document, at, _prototype_near(other, document, at))


def _prototype_near(other: RunRef, document: int, at: int) -> int | None:
    """The prototype with an example nearest to a token of the document."""
    if not data.has(other, "prototype_examples"):
        return None
    columns = ("prototype", "position", "activation")
    rows = data.table(other, "prototype_examples", columns, (("document", document),))
    if rows.empty:
        return None
    ordered = rows.assign(far=(rows["position"] - at).abs()).sort_values(
        ["far", "activation"], ascending=[True, False], kind="stable"
    )
    return int(ordered["prototype"].iloc[0])


def sample_doors(ref: RunRef, sample: pd.Series, doc_id: str | None, text: str) -> None:
    """Doors to Prompt, Attribution and Prototypes of a run with prototypes."""
    other = prototype_run()
    if other is None:
        st.caption("No run with prototypes is on this machine, so no door leads there.")
        return
    prompt = text[:PROMPT_CHARACTERS]
    with st.container(horizontal=True, gap="small"):
        if prompt.strip() and "\0" not in prompt:
            door(
                "prompt",
                f"Prompt ({other.name})",
                ":material/edit_note:",
                run=other.name,
                prompt=prompt,
            )
            door(
                "attribution",
                f"Attribution ({other.name})",
                ":material/travel_explore:",
                run=other.name,
                prompt=prompt,
            )
        if doc_id is None:
            return
        place = place_in(other, ref, doc_id, int(sample["position"]))
        if place is None:
            st.caption(f"Run {other.name} has not indexed this document.")
            return
        parameters = {"document": str(place.document), "at": str(place.position)}
        if place.prototype is not None:
            parameters["prototype"] = str(place.prototype)
        door("prototypes", f"Its prototypes ({other.name})", ":material/scatter_plot:",
             run=other.name, **parameters)  # fmt: skip
