"""The Overview page on a run of attention heads: what it holds, and its effects at a glance."""

import pandas as pd
import streamlit as st

from dashboard import data, head_rows, service_heads as service, text, text_heads, theme
from dashboard.components.chart import chart
from dashboard.components.emergence_curves import arms_table, units_of
from dashboard.components.emergence_effects import mixture_words, model_words
from dashboard.components.facts import Fact, facts
from dashboard.data import RunRef
from dashboard.figures import heads_emergence as figures


def heads_hold(ref: RunRef) -> None:
    """What this run is made of, in one line of numbers."""
    run = data.run_of(ref)
    study = service.study_of(ref)
    items = [Fact("Run", run.name, text.KINDS[run.kind])]
    seeds = service.traced(ref)["seed"].nunique()
    if data.has(ref, "head_scores"):
        scores = data.table(ref, "head_scores", ("seed", "layer", "head", "step"))
        heads = scores[["layer", "head"]].drop_duplicates()
        seeds = scores["seed"].nunique()
        items += [
            Fact("Heads", theme.count(len(heads)), f"{heads['layer'].nunique()} layers"),
            Fact("Checkpoints", theme.count(scores["step"].nunique()), "steps measured"),
        ]
    if data.has(ref, "head_samples"):
        n_samples = run.tables["head_samples"]["rows"]
        items.append(Fact("Samples scored", theme.count(n_samples)))
    if study:
        items += [
            Fact("Model", model_words(study)),
            Fact("Rows", mixture_words(study), f"of {study.get('context', '–')} tokens"),
        ]
    items += [
        Fact("Seeds", theme.count(seeds), _emerged(ref)),
        Fact("Corpus", str(run.manifest.get("corpus", {}).get("name", "–"))),
        Fact("Made", str(run.manifest.get("created", ""))[:10]),
    ]
    facts(items)


def _emerged(ref: RunRef) -> str:
    facts_of = data.run_of(ref).manifest.get("stages", {}).get("study", {})
    known = facts_of.get("emerged")
    return f"heads formed in {known}" if known is not None else ""


def heads_at_a_glance(ref: RunRef) -> None:
    """The heads that were chosen, and what the arms did."""
    if not data.has(ref, "head_scores"):
        return
    left, right = st.columns([2, 3], gap="large")
    with left:
        st.markdown("### The heads that were chosen")
        _chosen(ref)
    with right:
        st.markdown("### What changing their samples did")
        _effects(ref)


def chosen_table(ref: RunRef) -> pd.DataFrame:
    """Seed, kind, head, score at the end of the baseline, window and samples of each choice."""
    scores = data.table(ref, "head_scores", where=(("arm", "baseline"),))
    traced, units = service.traced(ref), units_of(ref)
    chosen = head_rows.with_names(head_rows.chosen_heads(scores, traced, units))
    last = scores[scores["step"] == scores.groupby("seed")["step"].transform("max")]
    rows = chosen.merge(last, on=["seed", "layer", "head"], suffixes=("", "_arm"))
    rows["score"] = [
        float(row[text_heads.metric_of(str(row["unit"]))]) for row in rows.to_dict("records")
    ]
    windows = head_rows.branches(arms_table(ref))
    found = rows.merge(windows, left_on="seed", right_index=True, how="left")
    return pd.DataFrame(
        {
            "Kind": [text_heads.unit_name(str(u)) for u in found["unit"]],
            "Seed": found["seed"],
            "Head": found["name"],
            "Score at the end": found["score"],
            "Window": [
                _window(row["branch_step"], row["end_step"]) for row in found.to_dict("records")
            ],
        }
    ).sort_values(["Kind", "Seed"], ignore_index=True)


def _window(first: float, last: float) -> str:
    return "–" if pd.isna(first) else f"{int(first):,}–{int(last):,}"


def _chosen(ref: RunRef) -> None:
    rows = chosen_table(ref)
    st.dataframe(
        rows,
        key="chosen_heads",
        hide_index=True,
        height=theme.table_height(len(rows), 350),
        column_config={
            "Score at the end": st.column_config.NumberColumn(
                format="%.2f", help=text_heads.METRIC_HELP
            ),
            "Seed": st.column_config.NumberColumn(width=60),
            "Window": st.column_config.TextColumn(help="Steps whose samples were changed."),
        },
        alt=f"{len(rows)} heads with their scores and windows.",
    )


def _effects(ref: RunRef) -> None:
    """The effect on the score, a panel a kind of head."""
    if not data.has(ref, "head_effects"):
        known = data.has(ref, "head_arms")
        st.caption(text_heads.NO_EFFECTS if known else text_heads.NO_ARMS)
        return
    rows = data.table(ref, "head_effects", where=(("measure", "score"),))
    units = [u for u in text_heads.UNITS if u in set(rows["unit"])]
    chart(
        figures.effects_by_kind(rows, units, dark=theme.is_dark()),
        key="overview_effects",
        alt="; ".join(figures.effects_alt(rows[rows["unit"] == unit], "score") for unit in units),
        file_name=f"{ref.name}-effects",
    )
