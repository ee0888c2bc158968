"""Windows over the Prototypes page: a document in context, two prototypes side by side."""

import pandas as pd
import streamlit as st

from dashboard import data, documents, state, text, theme
from dashboard.components.card import small_card
from dashboard.components.facts import Fact, facts
from dashboard.components.neighbours import sensitive
from dashboard.components.panel import attempt, plain_errors
from dashboard.components.token_strip import Strip, TokenCell, token_strips


AROUND = 400
"""Tokens read to either side of the place asked for."""
SCROLLED = 500
"""Tokens from which on the text scrolls inside the window."""


def open_dialogs(ref: data.RunRef, prototype: pd.Series) -> None:
    """Open the window that the URL asks for, if any; one at a time."""
    document = state.read_int("document", None)
    if document is not None:
        _document_dialog(ref, prototype, document)
        return
    frame = data.prototypes(ref)
    other = state.read_int("compare", None, high=max(0, len(frame) - 1))
    if other is not None and other != int(prototype["prototype"]):
        _compare_dialog(ref, prototype, frame[frame["prototype"] == other].iloc[0])


def _close_document() -> None:
    state.write(document=None, at=None)


def _close_compare() -> None:
    state.write(compare=None)


@st.dialog("Document in context", width="large", on_dismiss=_close_document)
def _document_dialog(ref: data.RunRef, prototype: pd.Series, document: int) -> None:
    with plain_errors():
        rows = data.table(ref, "documents", where=(("document", document),))
        if rows.empty:
            st.text(text.no_document(document))
            return
        _document(ref, prototype, rows.iloc[0])


def _document(ref: data.RunRef, prototype: pd.Series, row: pd.Series) -> None:
    number = int(prototype["prototype"])
    at = state.read_int("at", 0) or 0
    facts(
        [
            Fact("Document", str(row["doc_id"])),
            Fact("Domain", str(row["domain"])),
            Fact("Source", str(row["source"])),
            Fact("Split", str(row["split"])),
            Fact("Size", theme.bytes_text(float(row["n_bytes"]))),
        ]
    )
    tokens, problem = attempt(documents.window, ref.path, str(row["doc_id"]), at, AROUND, AROUND)
    if not tokens:
        st.info(f"{text.TEXT_NOT_HERE} {problem or ''}", icon=":material/hourglass_empty:")
        return
    values = _activations(ref, int(row["document"]), number)
    cells = [
        TokenCell(t, values.get(p, 0.0), f"activation {values.get(p, 0.0):.3f} · position {p:,}", p)
        for p, t in tokens
    ]
    first, last = tokens[0][0], tokens[-1][0]
    st.caption(
        f"Prototype #{number} over tokens {first:,} to {last:,}; the underlined token is {at:,}. "
        + ("" if _kept_whole(ref, int(row["document"])) else text.DOCUMENT_NOT_KEPT)
    )
    focus = at - first if first <= at <= last else None
    strip = Strip(cells, focus=focus, masked=sensitive(row["domain"], prototype), key="document")
    tall = len(cells) > SCROLLED
    with st.container(height=430 if tall else "content", border=False):
        token_strips(
            [strip], key="document_strip", limit=float(prototype["max_activation"]) or None
        )


def _activations(ref: data.RunRef, document: int, number: int) -> dict[int, float]:
    """Activation of the prototype by position of the document, as far as the run keeps it.

    A run may keep every activation of some documents only; around an example it keeps them for all.
    """
    found: dict[int, float] = {}
    examples = data.one(ref, "prototype_examples", number)
    for row in examples[examples["document"] == document].to_dict("records"):
        start = int(row["window_start"])
        found |= {start + i: float(v) for i, v in enumerate(row["window_activations"]) if v > 0}
    if data.has(ref, "prototype_activations"):
        where = (("document", document), ("prototype", number))
        rows = data.table(ref, "prototype_activations", ("position", "activation"), where)
        found |= dict(
            zip(rows["position"].astype(int), rows["activation"].astype(float), strict=True)
        )
    return found


def _kept_whole(ref: data.RunRef, document: int) -> bool:
    """Whether the run keeps every activation of the document."""
    if not data.has(ref, "prototype_activations"):
        return False
    where = (("document", document),)
    return len(data.table(ref, "prototype_activations", ("position",), where, limit=1)) > 0


@st.dialog("Two prototypes side by side", width="large", on_dismiss=_close_compare)
def _compare_dialog(ref: data.RunRef, one: pd.Series, other: pd.Series) -> None:
    with plain_errors():
        near = data.one(ref, "prototype_neighbours", int(one["prototype"]))
        found = near[near["neighbour"] == int(other["prototype"])]["cosine"]
        if len(found):
            st.caption(f"Cosine of their directions: {float(found.iloc[0]):.3f}.")
        left, right = st.columns(2, gap="medium")
        with left:
            small_card(ref, one, key="one")
        with right:
            small_card(ref, other, key="other")
