"""Samples of a bin: their text with repeated spans, their structures, and one of them in full."""

from collections.abc import Callable

import pandas as pd
import streamlit as st

from dashboard import documents, service_heads as service, state, text_heads as text, theme
from dashboard.components.chart import chart
from dashboard.components.export import export_buttons
from dashboard.components.heads_controls import HeadView
from dashboard.components.heads_doors import sample_doors
from dashboard.components.neighbours import UNWANTED
from dashboard.components.panel import attempt, plain_errors
from dashboard.components.token_strip import Strip, StripClick, TokenCell, token_strips
from dashboard.data import RunRef
from dashboard.figures import heads_influence as figures
from dashboard.service_heads import SampleText


SHOWN = 8
"""Samples of a bin that are written out."""
AROUND = 500
"""Tokens of a document read to either side of a sample."""
COLUMNS = ("seed", "step", "row", "influence", "domain", "document", "position", "segment", "loss",
           "tags")  # fmt: skip


def sample_key(sample: pd.Series) -> str:
    """A sample as the link names it: STEP-ROW."""
    return f"{int(sample['step'])}-{int(sample['row'])}"


def sample_list(
    ref: RunRef, rows: pd.DataFrame, picked: str, *, key: str, link: str = "show in full"
) -> None:
    """One strip a sample, repeated spans shaded; a click makes it the `sample` of the link.

    Args:
        ref: Run.
        rows: Rows of `head_samples` with `influence`, in the order listed.
        picked: Sample shown beside.
        key: Widget key.
        link: Words of the button of a sample that is not shown.
    """
    found = [service.sample_text(ref, row) for _, row in rows.iterrows()]
    problems = sorted({sample.problem for sample in found if sample.problem})
    if problems:
        st.info(f"{text.NO_TEXT} {problems[0]}", icon=":material/hourglass_empty:")
    strips = [
        _strip(row, sample, picked, link)
        for (_, row), sample in zip(rows.iterrows(), found, strict=True)
    ]
    token_strips(strips, key=key, limit=1.0, selectable=True, on_click=_picked, fold=320)


def _strip(row: pd.Series, sample: SampleText, picked: str, link: str) -> Strip:
    key = sample_key(row)
    tags = str(row["tags"]).split()
    return Strip(
        cells(sample),
        tag=theme.signed(float(row["influence"])),
        heading=f"{row['domain']} · {', '.join(map(text.tag_name, tags)) or 'no structure'}",
        note=f"step {int(row['step']):,}, row {int(row['row'])} · {_loss(row)}",
        masked=row["domain"] == UNWANTED,
        key=key,
        link="shown below" if key == picked else link,
    )


def _loss(row: pd.Series) -> str:
    value = row["loss"]
    return "loss not known" if pd.isna(value) else f"loss {theme.number(float(value))} nats"


def cells(sample: SampleText) -> list[TokenCell]:
    """Tokens of a sample, shaded where they stand in a repeated span."""
    inside: dict[int, tuple[float, str]] = {}
    for place, span in enumerate(sample.spans):
        shade = 1.0 if place % 2 == 0 else 0.62
        said = (
            f"repeats tokens {span.earlier:,} to {span.earlier + span.stop - span.start - 1:,}, "
            f"{span.stop - span.start:,} tokens, {span.start - span.earlier:,} back"
        )
        inside |= dict.fromkeys(range(span.start, span.stop), (shade, said))
    shown = []
    for at, token in enumerate(sample.tokens):
        shade, said = inside.get(at, (0.0, ""))
        shown.append(TokenCell(token, shade, f"token {at:,}" + (f" · {said}" if said else ""), at))
    return shown


def _picked(click: StripClick) -> None:
    state.write(sample=click.key)


def bin_panel(ref: RunRef, view: HeadView, chosen: int, *, natural: bool) -> pd.Series | None:
    """The samples of a bin; returns the one shown in full."""
    rows = service.bin_samples(ref, view.seed, view.unit, view.head, chosen, natural=natural)
    if rows.empty:
        st.info(text.NOTHING_IN_BIN, icon=":material/search_off:")
        return None
    shown = rows.head(SHOWN)
    asked = state.read_text("sample")
    keys = [sample_key(row) for _, row in rows.iterrows()]
    picked = asked if asked in keys else keys[0]
    word = "raise" if float(rows["influence"].iloc[0]) > 0 else "lower"
    more = f"; the {len(shown)} furthest from 0 are shown" if len(rows) > len(shown) else ""
    st.caption(
        f"**{len(rows):,} samples of this bin {word} the score of head {view.head}**{more}. "
        f"{text.REPEATS}"
    )
    sample_list(ref, shown, picked, key="heads_samples")
    export_buttons(
        rows[list(COLUMNS)], name=f"{ref.name}-head-{view.head}-samples", key="heads_samples_file"
    )
    return rows.iloc[keys.index(picked)]


def sample_detail(ref: RunRef, view: HeadView, sample: pd.Series) -> SampleText:
    """One sample: what it does to every head, its structures, its document and doors onward."""
    words = service.sample_text(ref, sample)
    doc_id = service.doc_id_of(ref, int(sample["document"]))
    key = sample_key(sample)
    st.markdown(f"##### Sample: step {int(sample['step']):,}, row {int(sample['row'])}")
    st.caption(_said(sample, words, doc_id))
    found = service.influence(ref, view.seed, view.unit)
    own = found[(found["step"] == sample["step"]) & (found["row"] == sample["row"])]
    values = own.iloc[0][[name for name in own if name not in ("step", "row")]]
    chart(
        figures.by_head(values, view.head, dark=theme.is_dark()),
        key="heads_by_head",
        alt=f"Influence of one sample on {len(values)} heads.",
        file_name=f"{ref.name}-sample-{key}-influence",
    )
    _token_strip(ref, view, sample, words)
    if doc_id is not None:
        st.button(
            "Read it in its document",
            key="heads_read",
            icon=":material/article:",
            type="tertiary",
            on_click=_reading(key),
        )
    sample_doors(ref, sample, doc_id, words.text)
    if doc_id is not None and state.read_text("read") == key:
        _document_dialog(ref, sample, words, doc_id)
    return words


def _token_strip(ref: RunRef, view: HeadView, sample: pd.Series, words: SampleText) -> None:
    """The sample, shaded by what each token adds to its influence, where that was kept."""
    values = service.token_influence(ref, view.seed, view.unit, view.head, sample)
    if values is None:
        return
    st.caption(text.TOKENS)
    texts = words.tokens or ("▯",) * len(values)
    shown = [
        TokenCell(token, float(value), f"token {at:,} · adds {theme.signed(float(value))}", at)
        for at, (token, value) in enumerate(zip(texts, values, strict=False))
    ]
    token_strips([Strip(shown, key="heads_tokens")], key="heads_token_strip", scale="signed")


def _reading(key: str) -> Callable[[], None]:
    def read() -> None:
        state.write(sample=key, read=key)

    return read


def _said(sample: pd.Series, words: SampleText, doc_id: str | None) -> str:
    """Domain, structures, repeats and source of a sample."""
    tags = ", ".join(map(text.tag_name, str(sample["tags"]).split())) or "none"
    parts = [f"{sample['domain']}", f"structures: {tags}", _loss(sample)]
    if int(sample["segment"]):
        parts.append(f"a segment of {int(sample['segment'])} tokens repeats in it (generated)")
    if words.spans:
        covered = sum(span.stop - span.start for span in words.spans)
        noun = "span" if len(words.spans) == 1 else "spans"
        parts.append(
            f"{len(words.spans)} repeated {noun} over {covered} of {len(words.ids)} tokens"
        )
    if doc_id is not None:
        parts.append(f"document {doc_id} from token {int(sample['position']):,}")
    if words.n_elsewhere > 0 and words.tokens:
        parts.append(f"its last {words.n_elsewhere} tokens come from the next documents")
    return " · ".join(parts)


def _close() -> None:
    state.write(read=None)


@st.dialog("Sample in its document", width="large", on_dismiss=_close)
def _document_dialog(ref: RunRef, sample: pd.Series, words: SampleText, doc_id: str) -> None:
    with plain_errors():
        start = int(sample["position"])
        reach = max(1, len(words.ids))
        found, problem = attempt(documents.window, ref.path, doc_id, start, AROUND, reach + AROUND)
        if not found:
            st.info(f"{text.NO_TEXT} {problem or ''}", icon=":material/hourglass_empty:")
            return
        sources, _ = attempt(documents.sources, ref.path, (doc_id,))
        st.caption(
            f"{sample['domain']} · {(sources or [doc_id])[0]}. Shaded: tokens {start:,} to "
            f"{start + reach - 1:,}, the sample; the text around it belongs to other samples."
        )
        strip = Strip(
            [
                TokenCell(t, 1.0 if start <= p < start + reach else 0.0, f"position {p:,}", p)
                for p, t in found
            ],
            focus=start - found[0][0],
            masked=sample["domain"] == UNWANTED,
            key="heads_document",
        )
        with st.container(height=460, border=False):
            token_strips([strip], key="heads_document_strip", limit=2.2)
