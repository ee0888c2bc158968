"""One text of the list: what each prototype adds to its score, and the prototype behind a bar."""

import pandas as pd
import streamlit as st

from dashboard import data, documents, rankings, state, text as sentences, theme
from dashboard.components.card import card_head
from dashboard.components.chart import chart
from dashboard.components.clicked import new_click
from dashboard.components.doors import door, escape_markdown
from dashboard.components.neighbours import UNWANTED
from dashboard.components.panel import attempt, plain_errors
from dashboard.components.slice_panel import indexed
from dashboard.components.token_strip import Strip, TokenCell, token_strips
from dashboard.figures import attribution


AROUND = 300
"""Tokens of a document read to either side of the sequence."""


def pick(rows: pd.DataFrame, scored: pd.DataFrame) -> pd.Series | None:
    """The sequence of the link if the pool has it, else the first of the list."""
    sequence = state.read_int("sequence", None)
    if sequence is not None:
        found = scored[scored["sequence"] == sequence]
        if len(found):
            return found.iloc[0]
        state.refuse("sequence", str(sequence), "a sequence of this pool")
    return None if rows.empty else rows.iloc[0]


def shares_panel(ref: data.RunRef, row: pd.Series, shares: pd.DataFrame, place: str) -> None:
    """Bars of the prototypes of one text; a click, or the list below, opens a card.

    Args:
        ref: Run.
        row: Row of the scored pool.
        shares: prototype, label, share; they add up to the row's score.
        place: Place of the text in words.
    """
    first = int(row["position"])
    st.markdown(f"##### {place}: why this text")
    st.caption(f"{_whence(ref, row)} · tokens {first:,}–{first + int(row['n_tokens']) - 1:,}")
    if shares.empty:
        st.caption("No prototype is active in both this text and the query; the score is zero.")
        return
    drawn = attribution.folded_shares(shares)
    ids = [int(p) for p in drawn["prototype"] if p >= 0]
    selected = state.read_int("slice", None)
    key = "attribution_shares"
    points = chart(
        attribution.share_bars(shares, dark=theme.is_dark(), selected=selected or ids[0]),
        key=key,
        alt=attribution.share_alt(shares),
        file_name=f"attribution-{int(row['sequence'])}-prototypes",
        select=("points",),
    )
    clicked = new_click(key, [p for p in points if p >= 0])
    if clicked is not None and clicked != selected:
        state.write(slice=clicked)
        st.rerun()
    _prototype(ref, shares, ids, selected)
    _open_document(row)


def _whence(ref: data.RunRef, row: pd.Series) -> str:
    """Domain and source of a text, as the list has them; its id where the source is not known."""
    found, _ = attempt(documents.sources, ref.path, (str(row["doc_id"]),))
    return f"{row['domain']} · {escape_markdown(found[0] if found else str(row['doc_id']))}"


def _prototype(
    ref: data.RunRef, shares: pd.DataFrame, ids: list[int], selected: int | None
) -> None:
    """The prototype behind a bar: its label with score, and the doors to its pages."""
    labels = dict(zip(shares["prototype"], shares["label"], strict=True))
    options = ids if selected is None or selected in ids else [*ids, selected]
    key = "attribution_prototype"
    st.session_state[key] = selected if selected is not None else ids[0]

    def choose() -> None:
        state.write(slice=st.session_state[key])

    chosen = st.selectbox(
        "Prototype behind a bar",
        options,
        format_func=lambda i: f"#{i}  {labels.get(i, '')}",
        key=key,
        on_change=choose,
        help="The same as a click on its bar.",
    )
    card = indexed(ref, chosen)
    if card is None:
        st.caption("This run has no index, so nothing more is known of its prototypes.")
        return
    card_head(card, level="######")
    with st.container(horizontal=True, gap="small"):
        door("prototypes", "Open its card", ":material/open_in_new:", prototype=str(chosen))
        door("suppression", "Switch it off", ":material/toggle_off:", set=str(chosen))


def _open_document(row: pd.Series) -> None:
    def show() -> None:
        state.write(sequence=int(row["sequence"]), read=int(row["sequence"]))

    st.button(
        "Read the text in its document",
        key="attribution_open",
        on_click=show,
        icon=":material/article:",
        type="tertiary",
    )


def _close() -> None:
    state.write(read=None)


@st.dialog("Text in its document", width="large", on_dismiss=_close)
def _dialog(ref: data.RunRef, row: pd.Series, tokens: pd.DataFrame) -> None:
    with plain_errors():
        _document(ref, row, tokens)


def document_dialog(ref: data.RunRef, row: pd.Series, tokens: pd.DataFrame) -> None:
    """Open the document that the URL asks for, around the sequence shown beside the list.

    Args:
        ref: Run.
        row: Row of the scored pool.
        tokens: position and score of the tokens of that sequence.
    """
    if state.read_int("read", None) == int(row["sequence"]):
        _dialog(ref, row, tokens)


def _document(ref: data.RunRef, row: pd.Series, tokens: pd.DataFrame) -> None:
    start, n_tokens = int(row["position"]), int(row["n_tokens"])
    found, problem = attempt(
        documents.window, ref.path, str(row["doc_id"]), start, AROUND, n_tokens + AROUND
    )
    if not found:
        st.info(f"{sentences.TEXT_NOT_HERE} {problem or ''}", icon=":material/hourglass_empty:")
        return
    values = {int(p): float(s) for p, s in zip(tokens["position"], tokens["score"], strict=True)}
    cells = [TokenCell(t, values.get(p, 0.0), _title(p, values), p) for p, t in found]
    st.caption(
        f"{_whence(ref, row)}. Shaded: tokens {start:,} to {start + n_tokens - 1:,}, "
        "the sequence that was scored; the text around it was not."
    )
    strongest = max(values, key=lambda p: abs(values[p]), default=start)
    strip = Strip(
        cells,
        focus=strongest - found[0][0],
        masked=row["domain"] == UNWANTED,
        key="attribution_document",
    )
    with st.container(height=460, border=False):
        token_strips([strip], key="attribution_document_strip", scale="signed")


def _title(position: int, values: dict[int, float]) -> str:
    if position not in values:
        return f"position {position:,}"
    return f"adds {theme.signed(values[position])} · position {position:,}"


def place_of(scored: pd.DataFrame, sequence: int, tail: str) -> str:
    """Place of a sequence in a tail of the whole pool, 1 first, in words."""
    ordered = rankings.placed(scored, tail)
    place = int(ordered.loc[ordered["sequence"] == sequence, "place"].iloc[0])
    return f"Place {place:,} of the {rankings.TAILS[tail]}"
