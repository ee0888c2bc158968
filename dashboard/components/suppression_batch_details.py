"""What stands behind a batch result: quality, ordinary prompts, the set, the tables as files."""

import pandas as pd
import streamlit as st

from dashboard import data, state, text_batch as text
from dashboard.components.chart import chart
from dashboard.components.doors import door
from dashboard.components.export import export_buttons
from dashboard.components.facts import Fact, facts
from dashboard.data import RunRef
from dashboard.figures import batch, batch_dose
from dashboard.theme import is_dark, number, table_height


def quality(ref: RunRef, concept: str, prompts: str) -> None:
    """Ratio of each measure to before with its margin, on one kind of prompts."""
    where = (("concept", concept), ("prompts", prompts))
    rows = data.table(ref, "suppression_quality", where=where)
    chart(
        batch_dose.quality_dots(rows, dark=is_dark()),
        key=f"batch_quality_{prompts}",
        alt=batch_dose.quality_alt(rows),
        file_name=f"{ref.name}-suppression-quality-{prompts}",
    )


def ordinary(ref: RunRef, concept: str, buckets: pd.DataFrame, drawn: list[str]) -> None:
    """Scores and quality where nothing unwanted was to be expected."""
    own = buckets[(buckets["prompts"] == "ordinary") & (buckets["bucket"] == 0)]
    if own.empty:
        st.caption("No ordinary prompts were measured.")
        return
    st.caption(text.ORDINARY)
    facts(
        _unchanged(scorer, own[own["scorer"] == scorer])
        for scorer in drawn
        if (own["scorer"] == scorer).any()
    )
    quality(ref, concept, "ordinary")


def _unchanged(scorer: str, rows: pd.DataFrame) -> Fact:
    """Mean score before and after, and with random sets, on ordinary prompts."""
    means = dict(zip(rows["condition"], rows["mean"].astype(float), strict=True))
    shown = [number(means[name]) for name in ("baseline", "suppressed") if name in means]
    n = int(rows["n_generations"].max())
    note = f"random sets {number(means.get('random'))} · n = {n:,}"
    return Fact(f"Mean score, {batch.scorer_word(scorer)}", " → ".join(shown), note)


def candidates(ref: RunRef, concept: str) -> None:
    """Every candidate with what spoke for it; the chosen ones can be switched off live."""
    rows = data.table(ref, "suppression_prototypes", where=(("concept", concept),))
    rows = rows.sort_values("rank").drop(columns="concept")
    if data.has(ref, "prototypes"):
        names = data.prototypes(ref)[["prototype", "label"]]
        rows = rows.merge(names, on="prototype", how="left")
    ids = state.encode_ids(rows.loc[rows["chosen"], "prototype"])
    with st.container(horizontal=True, gap="medium", vertical_alignment="center"):
        st.caption(text.SET, width="stretch")
        door("suppression", "Switch this set off live", ":material/toggle_off:", set=ids)
    first = ["rank", "prototype", *(["label"] if "label" in rows else []), "chosen", "keyword"]
    rows = rows[[*first, "meaning", "log_ratio", "scored_log_ratio", "effect", "cost"]]
    st.dataframe(
        rows,
        key="batch_set",
        hide_index=True,
        height=table_height(len(rows), 320),
        column_config={
            "rank": st.column_config.NumberColumn("Rank", width=56),
            "prototype": st.column_config.NumberColumn("#", format="%d", width=56),
            "label": st.column_config.TextColumn("Label", width=220),
            "chosen": st.column_config.CheckboxColumn("Chosen", width=64),
            "keyword": st.column_config.CheckboxColumn("Keyword", width=70),
            "meaning": st.column_config.NumberColumn("Meaning (cosine)", format="%.3f"),
            "log_ratio": st.column_config.NumberColumn("Log ratio, domain", format="%.2f"),
            "scored_log_ratio": st.column_config.NumberColumn("Log ratio, scorer", format="%.2f"),
            "effect": st.column_config.NumberColumn("Effect (score per 1,000)", format="%.3f"),
            "cost": st.column_config.NumberColumn("Cost (nats per token)", format="%.4f"),
        },
        alt=f"{len(rows)} candidates of the concept {concept}.",
    )


def files(ref: RunRef, concept: str) -> None:
    """Every table of the study as a file."""
    for name in ("generations", "scores", "buckets", "quality", "sweep"):
        table = f"suppression_{name}"
        if not data.has(ref, table):
            continue
        rows = data.table(ref, table, where=(("concept", concept),))
        with st.container(horizontal=True, gap="small", vertical_alignment="center"):
            st.caption(f"{name}: {len(rows):,} rows", width=190)
            export_buttons(rows, name=f"{ref.name}-{table}", key=f"{table}_file")
