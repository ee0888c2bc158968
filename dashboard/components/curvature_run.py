"""Lower half of the Curvature page: the run's own Hessian in numbers, co-usage and spectrum."""

import pandas as pd
import streamlit as st

from dashboard import data, state, text_curvature as text, theme
from dashboard.components.chart import chart
from dashboard.components.export import export_buttons
from dashboard.components.facts import Fact, facts
from dashboard.components.panel import empty_state
from dashboard.figures import curvature as figures


MOST_PAIRS = 12
"""Pairs a table shows before it scrolls."""


def own_row(ref: data.RunRef) -> pd.Series:
    """The run's own row of `curvature_arms`."""
    return data.table(ref, "curvature_arms", where=(("role", "run"),)).iloc[0]


def run_facts(ref: data.RunRef, own: pd.Series, term: str) -> None:
    """Coupling and conditioning of one term of the run."""
    where = (("arm", str(own["arm"])), ("term", term))
    row = data.table(ref, "curvature", where=where).iloc[0]
    damping = row["damping"] / row["mean_eigenvalue"] if row["mean_eigenvalue"] else float("nan")
    kept = "not of this term" if pd.isna(row["isotropic_share"]) else ""
    facts(
        [
            Fact("Coupling, this run", theme.percent(row["coupling"]), "of mass", text.COUPLING),
            Fact(
                "Normalised", theme.percent(row["coupling_normalised"]), "of mass", text.NORMALISED
            ),
            Fact(
                "On the block diagonal",
                theme.percent(row["block_diagonal_share"]),
                "not of this term" if pd.isna(row["block_diagonal_share"]) else "of squared norm",
                text.BLOCKS,
            ),
            Fact(
                "Condition number",
                theme.number(row["condition_number"]),
                f"damping {theme.number(damping, 2)} × mean",
                text.CONDITION,
            ),
            Fact("After scaling", theme.number(row["condition_scaled"]), "", text.SCALED),
            Fact(
                "Participation",
                theme.number(row["participation"]),
                f"of {own['n_prototypes']:,}",
                text.PARTICIPATION,
            ),
            Fact("Kept by K × K", theme.percent(row["isotropic_share"]), kept, text.ISOTROPIC),
            Fact("Tokens", f"{own['tokens']:,}", "training", text.TOKENS),
        ]
    )


def cousage_panel(ref: data.RunRef, own: pd.Series) -> None:
    """Co-usage by category of label, as share or against chance."""
    if not data.has(ref, "curvature_cousage"):
        empty_state(text.NO_CATEGORIES, f"headwater index --run {ref.name}")
        return
    views = (text.SHARE, text.AGAINST_CHANCE)
    state.read_choice("cells", views, text.SHARE)
    view = st.segmented_control(
        "Cells show",
        views,
        default=text.SHARE,
        required=True,
        key="cells",
        bind="query-params",
        help=text.VIEW_HELP,
    )
    frame = data.table(ref, "curvature_cousage")
    chance = view == text.AGAINST_CHANCE
    chart(
        figures.cousage_map(frame, int(own["tokens"]), chance=chance, dark=theme.is_dark()),
        key=f"cousage_{chance}",
        alt=figures.cousage_alt(frame),
        file_name=f"{ref.name}-co-usage",
    )
    export_buttons(frame, name=f"{ref.name}-co-usage", key="cousage_file")


def run_spectra(ref: data.RunRef, own: pd.Series) -> None:
    """Spectrum of each term of the run."""
    arm = (("arm", str(own["arm"])),)
    means = data.table(ref, "curvature", ("arm", "term", "mean_eigenvalue"), arm)
    frame = data.table(ref, "curvature_spectrum", where=arm).merge(means, on=["arm", "term"])
    shades = theme.category_colours(list(text.TERMS), theme.palette(theme.is_dark()))
    figure = figures.spectra(
        frame,
        [(term, name, shades[term], "solid") for term, name in text.TERMS.items()],
        key="term",
        title="Spectrum of each term of this run",
        subtitle=f"K = {own['n_prototypes']:,} eigenvalues, n = {own['tokens']:,} training tokens",
        dark=theme.is_dark(),
    )
    chart(
        figure,
        key="run_spectra",
        alt=figures.spectra_alt(figure),
        file_name=f"{ref.name}-curvature-spectrum",
    )


def pairs_panel(ref: data.RunRef) -> None:
    """The pairs that are used together most, by the words of their labels."""
    st.markdown(f"##### {text.PAIRS}")
    pairs = data.table(ref, "curvature_pairs")
    if pairs.empty:
        st.caption(text.NO_PAIRS)
        return
    shown = pairs[["prototype", "neighbour", "cosine", "n_tokens"]].copy()
    if data.has(ref, "prototypes"):
        labels = data.prototypes(ref).set_index("prototype")["label"]
        for column in ("prototype", "neighbour"):
            shown[column] = [f"#{p} {labels.get(p, '')}" for p in pairs[column]]
    st.dataframe(
        shown,
        key="pairs",
        hide_index=True,
        height=theme.table_height(len(shown), 31 * (MOST_PAIRS + 1)),
        column_config={
            "prototype": st.column_config.TextColumn("One"),
            "neighbour": st.column_config.TextColumn("The other"),
            "cosine": st.column_config.NumberColumn(
                "Cosine of use", format="%.3f", width=100, help=text.PAIR_COSINE
            ),
            "n_tokens": st.column_config.NumberColumn(
                "Tokens together", format="localized", width=110
            ),
        },
        alt=f"The {len(shown)} pairs of prototypes that are used together most.",
    )
    export_buttons(pairs, name=f"{ref.name}-co-usage-pairs", key="pairs_file")
