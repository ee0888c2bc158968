"""Training neighbours: documents as token heat-strips, the strongest and each quantile band."""

import pandas as pd
import streamlit as st

from dashboard import data, documents, state, text, theme
from dashboard.components.panel import attempt
from dashboard.components.token_strip import Strip, StripClick, TokenCell, token_strips


FOLD = 34
"""Tokens of a strip shown around its strongest token."""
UNWANTED = "unwanted"
"""Name of the unwanted domain of the embedded corpus."""


def sensitive(domain: object, prototype: pd.Series) -> bool:
    """Whether a snippet is masked until the reader reveals it."""
    return domain == UNWANTED or bool(prototype["sensitive"])


def neighbours(
    ref: data.RunRef,
    prototype: pd.Series,
    *,
    key: str,
    n_top: int = 6,
    quantiles: bool = True,
    links: bool = True,
) -> None:
    """Draw the examples of one prototype.

    Args:
        ref: Run.
        prototype: Row of `prototypes`.
        key: Prefix of the widget keys.
        n_top: Strongest examples shown.
        quantiles: Whether the quantile bands follow.
        links: Whether a document opens and a token keeps its mark when clicked.
    """
    rows = data.examples(ref, int(prototype["prototype"]))
    if rows.empty:
        st.caption(text.NO_EXAMPLES)
        return
    rows = rows[(rows["band"] > 0) | (rows["rank"] < n_top)]
    if not quantiles:
        rows = rows[rows["band"] == 0]
    windows, problem = attempt(documents.windows, ref.path, _wanted(rows))
    if windows is None:
        _ids_only(ref.path, rows, problem or "", key)
        return
    strips = _strips(rows, windows, prototype, links)
    token_strips(
        strips,
        key=f"{key}_strips",
        limit=float(prototype["max_activation"]) or None,
        selectable=links,
        on_click=lambda click: _clicked(click, rows),
        fold=FOLD,
        histogram=f"{key}_histogram",
    )


def _wanted(rows: pd.DataFrame) -> tuple[tuple[str, int, int], ...]:
    """(doc_id, first position, tokens) of every window."""
    lengths = rows["window_activations"].map(len)
    starts = rows["window_start"].astype(int)
    return tuple(zip(rows["doc_id"].astype(str), starts, lengths, strict=True))


def _strips(
    rows: pd.DataFrame, windows: list[list[str] | None], prototype: pd.Series, links: bool
) -> list[Strip]:
    ranges = {
        int(str(band)): (float(part.min()), float(part.max()))
        for band, part in rows.groupby("band")["activation"]
    }
    strips = []
    last = -1
    for row, window in zip(rows.to_dict("records"), windows, strict=True):
        band = int(row["band"])
        title = _band_title(band, *ranges[band]) if band != last else ""
        last = band
        values = [float(v) for v in row["window_activations"]]
        start = int(row["window_start"])
        known = window if window is not None else ["▯"] * len(values)
        cells = [
            TokenCell(t, v, f"activation {v:.3f} · position {start + i:,}", start + i)
            for i, (t, v) in enumerate(zip(known, values, strict=False))
        ]
        strips.append(
            Strip(
                cells,
                tag=str(row["domain"]),
                heading=str(row["source"]),
                note=f"{row['activation']:.3f} at {int(row['position']):,}"
                + ("" if window is not None else " · not in the corpus on this machine"),
                focus=int(row["position"]) - start,
                masked=sensitive(row["domain"], prototype),
                key=f"{band}-{int(row['rank'])}",
                link="open document" if links else "",
                group=title,
            )
        )
    return strips


def _band_title(band: int, low: float, high: float) -> str:
    if band == 0:
        return "Strongest tokens"
    return f"Quantile band {band}: activation {low:.3f} to {high:.3f}"


def _clicked(click: StripClick, rows: pd.DataFrame) -> None:
    """A token marks its bin in the histogram; the button opens the document at that place."""
    band, _, rank = click.key.partition("-")
    if not (band.isdigit() and rank.isdigit()):
        return
    found = rows[(rows["band"] == int(band)) & (rows["rank"] == int(rank))]
    if found.empty:
        return
    row = found.iloc[0]
    if click.position is None:
        state.write(document=int(row["document"]), at=int(row["position"]))
        return
    place = click.position - int(row["window_start"])
    values = row["window_activations"]
    if 0 <= place < len(values):
        value = float(values[place])
        state.write(mark=f"{value:.4f}" if value > 0 else None)


@st.fragment(run_every="10s")
def _waiting(path: str, problem: str) -> None:
    """Says why there is no text and how far it is; shows the text once it is there."""
    ready, _ = attempt(documents.corpus_ready, path)
    if ready:
        st.rerun()
    status, _ = attempt(documents.build_status, path)
    said = text.build_status(*status) if status else ""
    st.info(f"{text.TEXT_NOT_HERE} {problem} {said}", icon=":material/hourglass_empty:")


def _ids_only(path: str, rows: pd.DataFrame, problem: str, key: str) -> None:
    """What is known without the text: ids, places and activations."""
    _waiting(path, problem)
    shown = rows[["band", "rank", "activation", "domain", "source", "doc_id", "position"]]
    st.dataframe(
        shown,
        key=f"{key}_ids",
        hide_index=True,
        height=theme.table_height(len(shown), 422),
        column_config={
            "band": st.column_config.NumberColumn("Band", help=text.BANDS),
            "rank": "Rank",
            "activation": st.column_config.NumberColumn("Activation (cosine)", format="%.3f"),
            "domain": "Domain",
            "source": "Source",
            "doc_id": "Document",
            "position": "Position (token)",
        },
        alt="Training neighbours by id: band, rank, activation, domain, source, position.",
    )


def mark_value(histogram: pd.DataFrame) -> float | None:
    """Activation of the token last clicked, from the URL; None when it lies in no bin."""
    raw = state.read_text("mark")
    try:
        value = float(raw)
    except ValueError:
        return None
    if histogram.empty or not histogram["low"].min() <= value <= histogram["high"].max():
        return None
    return value if value > 0 else None


def activation_note(value: float | None) -> str:
    """The marked activation in words."""
    return "" if value is None else f"The marked bin holds activation {theme.number(value)}."
