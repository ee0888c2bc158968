"""The batch result of the Suppression page: one concept off over thousands of held-out prompts."""

import pandas as pd
import streamlit as st

from dashboard import data, state, text_batch as text
from dashboard.components.chart import chart
from dashboard.components.facts import Fact, facts
from dashboard.components.panel import empty_state
from dashboard.components.suppression_batch_details import candidates, files, ordinary, quality
from dashboard.data import RunRef
from dashboard.figures import batch, batch_dose
from dashboard.theme import count, is_dark, number, percent, signed


def batch_result(ref: RunRef) -> None:
    """Draw the study of a concept."""
    if not data.has(ref, "suppression_buckets"):
        empty_state(text.NO_BATCH, data.run_of(ref).command_for("suppression_buckets"))
        return
    concept = _concept(ref)
    buckets = data.table(ref, "suppression_buckets", where=(("concept", concept),))
    scorers = data.table(ref, "suppression_scorers", where=(("concept", concept),))
    drawn = [str(name) for name in scorers.loc[~scorers["failed"], "scorer"]]
    _verdict(ref, concept, buckets, scorers)
    left, right = st.columns(2, gap="large")
    with left:
        _spread(ref, concept, buckets, drawn)
    with right:
        _by_bucket(buckets, drawn, ref.name)
    left, right = st.columns([3, 2], gap="large")
    with left:
        _dose(ref, concept, drawn)
    with right:
        quality(ref, concept, "unwanted")
    st.caption(text.LEGEND)
    with st.expander("Ordinary prompts: does anything change?", icon=":material/balance:"):
        ordinary(ref, concept, buckets, drawn)
    with st.expander("The set, and what spoke for each prototype", icon=":material/checklist:"):
        candidates(ref, concept)
    with st.expander("Numbers behind the figures", icon=":material/download:"):
        files(ref, concept)


def _concept(ref: RunRef) -> str:
    """The concept shown; asked for only where the run holds several."""
    names = sorted(data.table(ref, "suppression_scorers", ("concept",))["concept"].unique())
    if len(names) == 1:
        return str(names[0])
    state.read_choice("study", names, names[0])
    chosen = st.selectbox("Concept", names, key="study", bind="query-params", width=240)
    return str(chosen or names[0])


def _verdict(ref: RunRef, concept: str, buckets: pd.DataFrame, scorers: pd.DataFrame) -> None:
    """What was switched off and how far each scorer's mean fell; a failed scorer says why."""
    own = buckets[(buckets["prompts"] == "unwanted") & (buckets["bucket"] == 0)]
    facts([*_setting(ref, concept, own), *_means(own, scorers)])
    for row in scorers[scorers["failed"]].to_dict("records"):
        st.warning(
            f"The scorer {row['scorer']} failed and gives no number: "
            f"`{str(row['reason']).replace(chr(96), chr(39))}`",
            icon=":material/error:",
        )


def _setting(ref: RunRef, concept: str, own: pd.DataFrame) -> list[Fact]:
    """Concept, size of the set, strength, number of texts."""
    chosen = data.table(
        ref, "suppression_prototypes", ("prototype",), (("concept", concept), ("chosen", True))
    )
    used = data.table(
        ref,
        "suppression_generations",
        ("strength", "draw"),
        (("concept", concept), ("prompts", "unwanted"), ("condition", ("suppressed", "random"))),
    )
    bank = data.run_of(ref).tables.get("prototypes", {}).get("rows")
    share = f"prototypes, {percent(len(chosen) / bank, 2)} of the bank" if bank else "prototypes"
    draws = used["draw"].nunique()
    return [
        Fact("Switched off", f"{concept}: {len(chosen):,}", share),
        Fact("Strength", number(float(used["strength"].max()))),
        Fact(
            "Texts a condition",
            count(float(own["n_generations"].max())),
            f"from {count(float(own['n_prompts'].max()))} prompts · {draws} random sets",
        ),
    ]


def _means(own: pd.DataFrame, scorers: pd.DataFrame) -> list[Fact]:
    """Mean score before and after by each scorer, and what random sets do."""
    items = []
    for row in scorers[~scorers["failed"]].to_dict("records"):
        found = own[own["scorer"] == row["scorer"]].set_index("condition")
        if not {"baseline", "suppressed"} <= set(found.index):
            continue
        before, after = found.loc["baseline"], found.loc["suppressed"]
        note = (
            f"{signed(-100 * after['drop'])} % "
            f"[{signed(-100 * after['drop_high'])}, {signed(-100 * after['drop_low'])}]"
        )
        if "random" in found.index:
            note += f" · random sets {signed(-100 * found.loc['random', 'drop'])} %"
        part = text.TOOK_PART if row["chose"] else text.NO_PART
        name = f"Mean score, {batch.scorer_word(row['scorer'])}"
        shown = f"{number(float(before['mean']))} → {number(float(after['mean']))}"
        items.append(Fact(name, shown, note, f"{row['meaning']}. It {part}."))
    return items


def _spread(ref: RunRef, concept: str, buckets: pd.DataFrame, drawn: list[str]) -> None:
    columns = ("scorer", "condition", "score")
    where = (("concept", concept), ("prompts", "unwanted"))
    scores = data.table(ref, "suppression_scores", columns, where)
    chart(
        batch.score_curves(scores, drawn, dark=is_dark()),
        key="batch_curves",
        alt=batch.means_alt(buckets[buckets["prompts"] == "unwanted"], "Unwanted prompts"),
        file_name=f"{ref.name}-suppression-scores",
    )


def _by_bucket(buckets: pd.DataFrame, drawn: list[str], run: str) -> None:
    own = buckets[(buckets["prompts"] == "unwanted") & (buckets["bucket"] > 0)]
    chart(
        batch.bucket_dots(own, drawn, dark=is_dark()),
        key="batch_buckets",
        alt=hardest_sentence(own),
        file_name=f"{run}-suppression-buckets",
    )


def hardest_sentence(own: pd.DataFrame) -> str:
    """What happens to the texts that were most unwanted, by each scorer.

    Args:
        own: Rows of `suppression_buckets` of one kind of prompts, bucket 1 and up.
    """
    parts = []
    for scorer, rows in own.groupby("scorer", sort=False):
        hardest = rows[rows["bucket"] == rows["bucket"].max()].set_index("condition")
        means = [
            f"{words} {number(float(hardest.loc[name, 'mean']))}"
            for name, words in batch.CONDITIONS.items()
            if name in hardest.index
        ]
        parts.append(f"{scorer}: {', '.join(means)}")
    return f"Hardest bucket, mean score by {'; by '.join(parts)}."


def _dose(ref: RunRef, concept: str, drawn: list[str]) -> None:
    """Dose and response on held-out prompts where they were measured."""
    if not data.has(ref, "suppression_sweep"):
        st.caption("No other set sizes and strengths were measured.")
        return
    sweep = data.table(ref, "suppression_sweep", where=(("concept", concept),))
    split = next((s for s in text.SPLITS if (sweep["split"] == s).any()), "")
    own = sweep[sweep["split"] == split]
    chart(
        batch_dose.dose_response(own, drawn, perplexity_margin(ref, concept), dark=is_dark()),
        key="batch_dose",
        alt=f"Fall of the mean score at {len(own):,} settings of set size and strength.",
        file_name=f"{ref.name}-suppression-dose",
    )
    st.caption(text.DOSE.format(split=text.SPLITS.get(split, split)))


def perplexity_margin(ref: RunRef, concept: str) -> float | None:
    """Highest ratio of perplexity allowed on unwanted prompts, as it was set beforehand."""
    where = (("concept", concept), ("measure", "perplexity"), ("condition", "suppressed"))
    rows = data.table(ref, "suppression_quality", ("margin_high",), where).dropna()
    return float(rows["margin_high"].iloc[0]) if len(rows) else None
