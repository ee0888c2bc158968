"""The validity badge: how well a method predicts retraining, and where that was measured."""

import pandas as pd
import streamlit as st

from dashboard import data, text_attribution as text, validity
from dashboard.components.facts import Fact, facts
from dashboard.data import RunRef
from dashboard.validity import Badge


STUDY = "study"
"""Name of the run that ships the study by retraining."""


def study_of(ref: RunRef) -> RunRef | None:
    """The run whose study counts: this one, the one that ships, or any that holds one."""
    held = [other for other in data.run_refs() if data.has(other, "attribution_validity")]
    held.sort(key=lambda other: (other != ref, other.name != STUDY))
    return held[0] if held else None


def badge(ref: RunRef, method: str) -> None:
    """LDS of the method with interval and ceiling, and the model and pool it was measured on."""
    study = study_of(ref)
    found = None
    if study is not None:
        rows = data.table(study, "attribution_validity")
        fingerprint = str(data.run_of(ref).manifest.get("model", {}).get("fingerprint") or "")
        found = validity.badge(rows, method, fingerprint)
    with st.container(border=True, key="attribution_badge"):
        if found is None or study is None:
            st.markdown(f":material/help: **{text.NOT_VALIDATED}**  {text.NO_VALIDITY}")
            return
        best = validity.best(data.table(study, "attribution_validity"))
        facts([_headline(found), *_lds(found), *_best(best), *_where(found, study.name)])


def _headline(found: Badge) -> Fact:
    if not found.here:
        return Fact("Validity", text.NOT_VALIDATED, "", text.LDS_HELP)
    if found.rows.empty:
        return Fact("Validity", text.METHOD_NOT_VALIDATED, "", text.LDS_HELP)
    return Fact("Validity", text.VALIDATED, "", text.LDS_HELP)


def _lds(found: Badge) -> list[Fact]:
    whose = "" if found.here else ", another model"
    names = {"all": f"LDS{whose}", "domain": f"LDS within domain{whose}"}
    items = []
    for scope, name in names.items():
        row = found.row(scope)
        if row is None:
            items.append(Fact(name, "not measured", "", text.LDS_HELP))
            continue
        own = validity.lds_rows(pd.DataFrame([row])).iloc[0]
        ceiling = row["ceiling"]
        note = _interval(own) + ("" if pd.isna(ceiling) else f" · ceiling {ceiling:.2f}")
        items.append(Fact(name, f"{row['lds']:.2f}", note, text.LDS_HELP))
    return items


def _interval(row: pd.Series) -> str:
    if pd.isna(row["low"]):
        return "no interval"
    return f"[{row['low']:.2f}, {row['high']:.2f}]".replace("-", "−")


def _best(best: tuple[str, float] | None) -> list[Fact]:
    """The method that predicts retraining best, whichever is looked at."""
    if best is None:
        return []
    return [Fact("Best of all methods", f"{best[1]:.2f}", best[0], text.LDS_HELP)]


def _where(found: Badge, run: str) -> list[Fact]:
    """Model, pool and day of the measurement; its size on hover."""
    known = found.facts
    n = ", ".join(f"{int(known[f'n_{part}']):,} {part}" for part in ("subsets", "seeds", "queries"))
    note = f"model {str(known['model'])[:8]} · pool {str(known['pool'])[:8]} · {known['measured']}"
    return [Fact("Measured on", f"run {run}", note, f"{n}; fingerprints and day of the study.")]
