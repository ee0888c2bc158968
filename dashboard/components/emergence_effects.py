"""Middle part of the Emergence page: where the evidence was measured, and effects of the arms."""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from dashboard import data, service_heads as service, text_heads as text, theme
from dashboard.components.chart import chart
from dashboard.components.emergence_curves import arms_table
from dashboard.components.export import export_buttons
from dashboard.components.facts import Fact, facts
from dashboard.components.ledger import verdicts
from dashboard.components.panel import empty_state
from dashboard.data import RunRef
from dashboard.figures import heads_emergence as figures


def badge(ref: RunRef, unit: str) -> None:
    """Where the causal evidence was measured: model, corpus mixture, seeds."""
    with st.container(border=True, key="emergence_badge"):
        if data.has(ref, "head_arms"):
            facts(
                [Fact("Causal evidence", text.VALIDATED, "", text.BADGE_HELP), *_where(ref, unit)]
            )
            return
        study = next((r for r in data.run_refs() if data.has(r, "head_effects")), None)
        items = [Fact("Causal evidence", text.NOT_VALIDATED, "", text.BADGE_HELP)]
        if study is not None:
            items += [Fact("Measured on", f"run {study.name}"), *_where(study, unit)]
        facts(items)


def _where(ref: RunRef, unit: str) -> list[Fact]:
    """Model, mixture and seeds of a study."""
    study = service.study_of(ref)
    if not study:
        return []
    arms = arms_table(ref)
    changed = arms["arm"].isin(["delete_top", "augment_top"])
    top = arms[(arms["unit"] == unit) & changed]["seed"].nunique()
    everything = arms["seed"].nunique()
    return [
        Fact("Model", model_words(study), f"vocabulary {study.get('vocab_size', '–')}"),
        Fact("Rows", mixture_words(study), f"of {study.get('context', '–')} tokens"),
        Fact("Seeds", f"{everything}", f"with top arms for this kind: {top}"),
        Fact("Made", str(data.run_of(ref).manifest.get("created", ""))[:10]),
    ]


def model_words(study: Mapping[str, Any]) -> str:
    """Shape of the study's decoder."""
    return (
        f"GPT-NeoX {study.get('n_layers')} × {study.get('d_model')}, "
        f"{study.get('n_heads')} heads a layer"
    )


def mixture_words(study: Mapping[str, Any]) -> str:
    """What the rows of a study are made of."""
    repeats = float(str(study.get("repeat_share") or 0))
    weights = study.get("domain_weights")
    domains = dict(weights) if isinstance(weights, dict) else {}
    total = sum(float(w) for w in domains.values()) or 1.0
    natural = ", ".join(
        f"{float(w) / total * (1 - repeats):.0%} {name}" for name, w in domains.items() if w
    )
    return f"{natural}, {repeats:.0%} generated repeats" if repeats else natural


def effects_panel(ref: RunRef, unit: str) -> None:
    """Effects of the arms on each measure, with intervals."""
    if not data.has(ref, "head_effects"):
        empty_state(text.NO_EFFECTS, data.run_of(ref).command_for("head_effects"))
        return
    rows = data.table(ref, "head_effects", where=(("unit", unit),))
    measures = [m for m in text.EFFECT_PANELS if m in set(rows["measure"])]
    if not measures:
        st.caption(text.NO_EFFECTS)
        return
    chart(
        figures.effects(
            rows,
            measures,
            dark=theme.is_dark(),
            title=f"Effects: arm minus baseline, {text.unit_name(unit).lower()} head",
            subtitle=f"n = {figures.seeds_text(rows)}; bars: 95 % t-interval; filled: it "
            "leaves out 0; right of 0 is more than in the baseline",
        ),
        key="effects",
        alt=figures.effects_alt(rows, measures[0]),
        file_name=f"{ref.name}-effects-{unit}",
    )
    verdicts(ref, (unit.replace("_", "-"), "emergence", "icl", "general"))
    export_buttons(rows, name=f"{ref.name}-effects-{unit}", key="effects_file")
