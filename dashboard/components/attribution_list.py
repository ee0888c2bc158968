"""Training texts in the order of their score, with the tokens that carry it."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from dashboard import data, documents, state, text_attribution as text, theme
from dashboard.components.neighbours import UNWANTED
from dashboard.components.panel import attempt
from dashboard.components.token_strip import Strip, StripClick, TokenCell, token_strips
from dashboard.rankings import Listing


FOLD = 56
"""Tokens of a text shown around its strongest one until the reader unfolds it."""
FAINT = 0.03
"""Share of the strongest token below which a token is not shaded; its value shows on hover."""


def missing_text(ref: data.RunRef, tokens: pd.DataFrame) -> None:
    """Say how many of the listed texts have no words here, and why."""
    without = tokens.loc[tokens["token_id"] < 0, "sequence"].nunique()
    if not without:
        return
    _, problem = attempt(documents.corpus_ready, ref.path)
    if problem:
        st.info(f"{text.UNREAD} {problem}", icon=":material/hourglass_empty:")
    else:
        st.caption(text.not_in_corpus(without, tokens["sequence"].nunique()))


def text_list(ref: data.RunRef, found: Listing, tokens: pd.DataFrame, picked: int | None) -> None:
    """One strip a sequence, shaded by what each of its tokens adds to the score.

    Args:
        ref: Run.
        found: Sequences listed.
        tokens: sequence, position, token_id (-1 without text), token, score of their tokens.
        picked: Sequence whose prototypes are shown beside the list.
    """
    missing_text(ref, tokens)
    limit = float(tokens["score"].abs().max()) if len(tokens) else 0.0
    floor = FAINT * limit
    parts = {int(str(s)): part for s, part in tokens.groupby("sequence")}
    known, _ = attempt(documents.sources, ref.path, tuple(found.rows["doc_id"]))
    sources = known or list(found.rows["doc_id"])
    strips = [
        _strip(row, source, parts[int(row["sequence"])], found.tail, picked, floor)
        for row, source in zip(found.rows.to_dict("records"), sources, strict=True)
    ]
    token_strips(
        strips,
        key="attribution_texts",
        scale="signed",
        limit=limit or None,
        selectable=True,
        on_click=_picked,
        fold=FOLD,
    )


def _strip(
    row: Mapping[Any, Any],
    source: str,
    tokens: pd.DataFrame,
    tail: str,
    picked: int | None,
    floor: float,
) -> Strip:
    """One sequence; its fold opens around the token that carries most of its score.

    Tokens below `floor` in size are not shaded.
    """
    sequence = int(row["sequence"])
    values = tokens["score"].to_numpy(dtype=np.float64)
    cells = [
        TokenCell(
            t if i >= 0 else "▯",
            float(v) if abs(v) >= floor else 0.0,
            f"adds {theme.signed(float(v))} · position {p:,}",
            int(p),
        )
        for t, i, v, p in zip(
            tokens["token"], tokens["token_id"], values, tokens["position"], strict=True
        )
    ]
    first, last = int(tokens["position"].iloc[0]), int(tokens["position"].iloc[-1])
    return Strip(
        cells,
        tag=f"{row['place']}  {row['domain']}",
        heading=source,
        note=f"score {theme.signed(float(row['score']))} · tokens {first:,}–{last:,}",
        focus=int(np.argmin(values) if tail == "harmful" else np.argmax(values))
        if values.any()
        else None,
        masked=row["domain"] == UNWANTED,
        key=str(sequence),
        link="shown beside" if sequence == picked else "its prototypes",
    )


def _picked(click: StripClick) -> None:
    """Any click on a text makes it the `sequence` of the link."""
    if click.key.isdecimal():
        state.write(sequence=int(click.key))
