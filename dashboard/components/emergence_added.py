"""Lower part of the Emergence page: rows generated from motifs, and mixtures of rows."""

import json
from typing import Any

import pandas as pd
import streamlit as st

from dashboard import data, state, text_heads as text, theme
from dashboard.components.chart import chart
from dashboard.components.emergence_curves import Comparison
from dashboard.components.export import export_buttons
from dashboard.components.ledger import verdicts
from dashboard.components.panel import empty_state
from dashboard.data import RunRef
from dashboard.figures import heads_emergence, heads_panels as figures


AUGMENTING = ("synthetic", "synthetic_control", "augment_top", "augment_random")
"""Arms that add rows."""
DEPTH = 3
"""Levels of a motif's parameters that are written on lines of their own."""


def augmentation(ref: RunRef, compared: Comparison) -> None:
    """Motifs of the top samples, and what rows generated from them do."""
    left, right = st.columns([2, 3], gap="large")
    with left:
        _motifs(ref, compared)
    with right:
        _added(ref, compared)
    verdicts(ref, ("synthetic", "augmentation"))


def _motifs(ref: RunRef, compared: Comparison) -> None:
    st.markdown("##### Motifs of the top samples")
    if not data.has(ref, "head_motifs"):
        empty_state(text.NO_MOTIFS, data.run_of(ref).command_for("head_motifs"))
        return
    rows = data.table(ref, "head_motifs", where=(("unit", compared.unit),))
    rows = rows.sort_values("share", ascending=False, ignore_index=True)
    st.dataframe(
        rows[["motif", "n_samples", "share"]].assign(share=100 * rows["share"]),
        key="motifs",
        hide_index=True,
        height=theme.table_height(len(rows), 300),
        on_select="rerun",
        selection_mode="single-row",
        column_config={
            "motif": st.column_config.TextColumn("Motif"),
            "n_samples": st.column_config.NumberColumn("Samples", format="localized", width=80),
            "share": st.column_config.NumberColumn("Share of top (%)", format="%.1f", width=110),
        },
        alt=f"{len(rows)} motifs of the top samples.",
    )
    picked = state.selected_rows(st.session_state.get("motifs"))
    at = picked[0] if picked and picked[0] < len(rows) else 0
    if len(rows):
        row = rows.iloc[at]
        st.caption(f"Parameters of **{row['motif']}**, from which its generator draws:")
        st.code(pretty(str(row["parameters"])), language="json", height=240, wrap_lines=True)
    export_buttons(rows, name=f"{ref.name}-motifs-{compared.unit}", key="motifs_file")


def pretty(parameters: str) -> str:
    """JSON with a line for each key, down to the third level; as it is where it is none."""
    try:
        return _lines(json.loads(parameters), 1)
    except ValueError:
        return parameters


def _lines(value: Any, depth: int) -> str:
    if not isinstance(value, dict) or not value or depth > DEPTH:
        return json.dumps(value, ensure_ascii=False)
    inside = ",\n".join(
        f"{'  ' * depth}{json.dumps(key)}: {_lines(entry, depth + 1)}"
        for key, entry in value.items()
    )
    return f"{{\n{inside}\n{'  ' * (depth - 1)}}}"


def _added(ref: RunRef, compared: Comparison) -> None:
    rows = added_rows(ref, compared.unit)
    if rows.empty:
        empty_state(text.NO_SYNTHETIC, data.run_of(ref).command_of_stage("augment"))
        return
    chart(
        heads_emergence.effects(
            rows,
            [m for m in ("score", "final_score", "delay") if m in set(rows["measure"])],
            dark=theme.is_dark(),
            title="Rows added: generated from motifs, without them, natural top, random",
            subtitle=f"arm minus baseline; n = {heads_emergence.seeds_text(rows)}; filled: the "
            "interval leaves out 0",
        ),
        key="added",
        alt=heads_emergence.effects_alt(rows, "score"),
        file_name=f"{ref.name}-augmentation-{compared.unit}",
    )
    sizes = by_size(compared.unit)
    if sizes["run"].nunique() > 1:
        st.markdown("##### The same at other sizes")
        st.dataframe(
            sizes, key="sizes", hide_index=True, height=theme.table_height(len(sizes), 260),
            column_config={
                "parameters": st.column_config.NumberColumn("parameters", format="localized"),
                "effect": st.column_config.NumberColumn("score − baseline", format="%+.3f"),
                "low": st.column_config.NumberColumn(format="%+.3f"),
                "high": st.column_config.NumberColumn(format="%+.3f"),
            },
            alt=f"Effect of added rows on the score in {sizes['run'].nunique()} runs.",
        )  # fmt: skip
    export_buttons(rows, name=f"{ref.name}-augmentation-{compared.unit}", key="added_file")


def added_rows(ref: RunRef, unit: str) -> pd.DataFrame:
    """Effects of the arms that add rows; none without an arm of generated ones."""
    if not data.has(ref, "head_effects"):
        return pd.DataFrame()
    rows = data.table(ref, "head_effects", where=(("unit", unit), ("arm", AUGMENTING)))
    return rows if (rows["arm"] == "synthetic").any() else rows.iloc[:0]


def by_size(unit: str) -> pd.DataFrame:
    """Effect of added rows on the score in every run that has such arms, by size of the model."""
    columns = ["run", "parameters", "arm", "effect", "low", "high", "n_seeds"]
    parts = []
    for other in data.run_refs():
        rows = added_rows(other, unit)
        if rows.empty:
            continue
        own = rows[rows["measure"] == "score"]
        size = int(data.run_of(other).manifest.get("model", {}).get("n_parameters") or 0)
        parts.append(own.assign(run=other.name, parameters=size))
    if not parts:
        return pd.DataFrame(columns=columns)
    found = pd.concat(parts, ignore_index=True)[columns]
    found["arm"] = found["arm"].map(text.arm_name)
    return found.sort_values(["parameters", "run", "arm"], ignore_index=True)


def mixtures(ref: RunRef, compared: Comparison) -> None:
    """Whether heads form at all, by what the rows are made of."""
    if not data.has(ref, "head_mixtures"):
        empty_state(text.NO_MIXTURES, data.run_of(ref).command_for("head_mixtures"))
        return
    rows = data.table(ref, "head_mixtures")
    metric = text.metric_of(compared.unit)
    metrics = [metric, *(m for m in ("prefix_matching", "previous_token") if m != metric)]
    chart(
        figures.mixtures(rows, [m for m in metrics if m in rows], dark=theme.is_dark()),
        key="mixtures",
        alt=figures.mixtures_alt(rows, metrics[0] if metrics[0] in rows else "prefix_matching"),
        file_name=f"{ref.name}-mixtures",
    )
    export_buttons(rows, name=f"{ref.name}-mixtures", key="mixtures_file")
