"""Upper half of the Curvature page: arms over clustering strength, and the claims they decide."""

import pandas as pd
import streamlit as st

from dashboard import data, theme
from dashboard.components.chart import chart
from dashboard.components.export import export_buttons
from dashboard.figures import curvature as figures, curvature_strength


def arms_of(ref: data.RunRef) -> pd.DataFrame:
    """Rows of `curvature_arms` without the run itself."""
    return data.table(ref, "curvature_arms", where=(("role", "arm"),))


def strength_panel(ref: data.RunRef, arms: pd.DataFrame, term: str) -> None:
    """Small multiples, the verdicts of the ledger, and the spectra of the arms."""
    own = tuple(str(name) for name in arms["arm"])
    where = (("term", term), ("arm", own))
    rows = curvature_strength.joined(arms, data.table(ref, "curvature", where=where))
    chart(
        curvature_strength.strength(rows, dark=theme.is_dark()),
        key="strength",
        alt=curvature_strength.strength_alt(rows),
        file_name=f"{ref.name}-curvature-over-clustering",
    )
    _verdicts()
    export_buttons(rows, name=f"{ref.name}-curvature-arms", key="strength_file")


def _verdicts() -> None:
    """What the ledger says of the trends, where it has been computed."""
    said = []
    for claim in data.claims():
        if not str(claim.get("id", "")).startswith("prism.curvature"):
            continue
        value, control = claim.get("value"), claim.get("control") or {}
        if not isinstance(value, int | float):
            continue
        verdict = "holds" if claim.get("holds") is True else "does not hold"
        bound = theme.signed(control.get("null_low"))
        name = str(claim["id"]).removeprefix("prism.curvature-")
        said.append(
            f"{name}: rank correlation with the weight {theme.signed(float(value))} (chance bound "
            f"{bound}), so the claim {verdict}"
        )
    if said:
        st.caption(
            f"Ledger, at weights 1 · 1 · 1 — {'; '.join(said)}. The criterion was written before "
            "measuring."
        )


def arm_spectra(ref: data.RunRef, arms: pd.DataFrame, term: str) -> None:
    """Spectrum of every arm, from grey (weak clustering) to the accent (strong)."""
    own = tuple(str(name) for name in arms["arm"])
    where = (("arm", own), ("term", term))
    facts = curvature_strength.joined(arms, data.table(ref, "curvature", where=where))
    frame = data.table(ref, "curvature_spectrum", where=where)
    frame = frame.merge(facts[["arm", "mean_eigenvalue"]], on="arm")
    weights = sorted(facts["weight"].unique())
    shades = dict(
        zip(weights, figures.ramp(len(weights), theme.palette(theme.is_dark())), strict=True)
    )
    dashes = dict(zip(sorted(facts["seed"].unique()), ("solid", "dot", "dash") * 9, strict=False))
    lines = [
        (str(row.arm), f"weight {row.weight:g}", shades[row.weight], dashes[row.seed])
        for row in facts.sort_values(["weight", "seed"]).itertuples()
    ]
    first = facts.iloc[0]
    figure = figures.spectra(
        frame,
        lines,
        key="arm",
        title="Spectrum of each arm",
        subtitle=f"K = {first['n_prototypes']:,} eigenvalues, n = {first['tokens']:,} tokens each; "
        + seeds_words(len(dashes)),
        dark=theme.is_dark(),
    )
    chart(
        figure,
        key="arm_spectra",
        alt=figures.spectra_alt(figure),
        file_name=f"{ref.name}-curvature-arm-spectra",
    )


def seeds_words(n: int) -> str:
    """How many seeds the lines are of; with several a dash tells them apart."""
    return "1 seed" if n == 1 else f"{n} seeds, by dash"
