"""Results of a map: relations against every baseline, what fools each, how firm embeddings are."""

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd
import streamlit as st

from dashboard import data, state, text_models as text, theme
from dashboard.components.chart import chart
from dashboard.components.doors import escape_markdown
from dashboard.components.export import export_buttons
from dashboard.components.ledger import verdicts
from dashboard.components.models_controls import ModelsView
from dashboard.components.panel import empty_state
from dashboard.data import RunRef
from dashboard.figures import models_results as figures


_CLAIMS = ("able.",)
"""Beginnings of the ids of claims about maps of models."""
MOST_METHODS = 6
"""Methods that are compared group by group until others are asked for."""


def relations_panel(ref: RunRef, view: ModelsView) -> None:
    """Every method on one set of pairs; then, by group, what fools it and what it finds."""
    if not data.has(ref, "model_relation_results"):
        empty_state(text.NO_RELATIONS, data.run_of(ref).command_for("model_relation_results"))
        return
    rows = data.table(ref, "model_relation_results")
    classifier, group, metric = _choices(rows)
    own = rows[
        (rows["classifier"] == classifier) & (rows["group"] == group) & (rows["metric"] == metric)
    ]
    own = own[own["value"].notna()]
    if own.empty:
        st.caption("This measure was not taken of these pairs; choose another.")
    else:
        n = sorted({int(k) for k in own["n"]})
        pairs = f"{n[0]:,}" if len(n) == 1 else f"{n[0]:,} to {n[-1]:,}"
        chart(
            figures.method_bars(
                own, metric, dark=theme.is_dark(),
                title=f"{text.METRICS.get(metric, metric)}: {text.group_name(group)}",
                subtitle=f"n = {pairs} pairs, {text.CLASSIFIERS.get(classifier, classifier)}",
            ),
            key="models_relations",
            alt=figures.bars_alt(own, metric, group),
            file_name=f"{ref.name}-relations-{metric}",
        )  # fmt: skip
        st.caption(text.RESULTS_SAID)
    methods = _methods(rows, view)
    left, right = st.columns(2, gap="large")
    with left:
        _by_group(ref, rows, methods, classifier, "hard:", "false_positive_rate")
    with right:
        _by_group(ref, rows, methods, classifier, "derivation:", "recall")
    _others(rows)
    _ledger(ref)
    export_buttons(rows, name=f"{ref.name}-relation-results", key="relations_file")


def _ledger(ref: RunRef) -> None:
    """Claims that rest on this run; for another run, which one the shipped figures belong to."""
    verdicts(ref, ("",))
    shipped = evidence_runs(data.claims(), _CLAIMS)
    if shipped and ref.name not in shipped:
        st.caption(escape_markdown(text.FIGURES_OF.format(runs=" and ".join(shipped))))


def evidence_runs(claims: Iterable[Mapping[str, Any]], beginnings: tuple[str, ...]) -> list[str]:
    """Shipped runs that measured claims whose ids begin so, each once.

    Args:
        claims: Rows of the ledger.
        beginnings: Beginnings of ids.
    """
    found: dict[str, None] = {}
    for claim in claims:
        folder, _, rest = str(claim.get("evidence", "")).partition("/")
        if str(claim.get("id", "")).startswith(beginnings) and folder == "assets" and "/" in rest:
            found[rest.partition("/")[0]] = None
    return list(found)


def _choices(rows: pd.DataFrame) -> tuple[str, str, str]:
    """Classifier, pairs and measure."""
    known = rows[rows["classifier"].isin(list(text.CLASSIFIERS))]
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        classifier = _named(
            "Classifier", "classifier",
            {c: w for c, w in text.CLASSIFIERS.items() if c in set(known["classifier"])},
            text.CLASSIFIER_HELP,
        )  # fmt: skip
        own = known[known["classifier"] == classifier]
        groups = [g for g in text.GROUPS if g in set(own["group"])]
        group = _named("Pairs", "pairs", {g: text.GROUPS[g] for g in groups}, width=330)
        measured = set(own["metric"][own["group"] == group])
        metrics = {m: words for m, words in text.METRICS.items() if m in measured}
        metric = _named("Measure", "measure", metrics, width=130)
    return classifier, group, metric


def _named(
    label: str, key: str, names: dict[str, str], help_text: str = "", width: int = 190
) -> str:
    words = list(names.values())
    if not words:
        return ""
    state.read_choice(key, words, words[0])
    if st.session_state.get(key) not in (None, *words):
        st.session_state[key] = words[0]
    shown = st.selectbox(
        label, words, key=key, bind="query-params", width=width, help=help_text or None
    )
    return next((name for name, said in names.items() if said == shown), next(iter(names)))


def _methods(rows: pd.DataFrame, view: ModelsView) -> list[str]:
    """Methods compared group by group: the way looked at, the best one, and baselines."""
    known = list(dict.fromkeys(rows["method"]))
    first = [view.variant, *_chosen(rows), "paper", "log_likelihoods", "option_probabilities",
             "phylolm", "architecture_tokenizer"]  # fmt: skip
    default = [m for m in dict.fromkeys(first) if m in known][:MOST_METHODS]
    names = {text.method_name(str(m)): str(m) for m in known}
    shown = st.multiselect(
        "Methods compared below", list(names), [text.method_name(m) for m in default],
        key="compared", max_selections=7, bind="query-params",
    )  # fmt: skip
    return [names[words] for words in shown]


def _chosen(rows: pd.DataFrame) -> list[str]:
    """The method that was chosen on the development roots."""
    return [str(m) for m in rows["method"][(rows["metric"] == "chosen") & (rows["value"] == 1)]]


def _by_group(
    ref: RunRef, rows: pd.DataFrame, methods: list[str], classifier: str, prefix: str, metric: str
) -> None:
    """Marks of the methods by hard negative or derivation, and the same as a table."""
    own = rows[
        rows["group"].str.startswith(prefix)
        & (rows["metric"] == metric)
        & (rows["classifier"] == classifier)
        & rows["method"].isin(methods)
        & rows["value"].notna()
    ]
    hard = metric == "false_positive_rate"
    if own.empty:
        st.caption(
            "False-positive rates were not measured." if hard else "Recall was not measured."
        )
        return
    own = own.sort_values("group", kind="stable")
    chart(
        figures.group_dots(
            own, methods, dark=theme.is_dark(),
            title="Taken for relatives, by hard negative" if hard else "Found, by derivation",
            subtitle="false-positive rate; left is better" if hard else "recall; right is better",
            axis="share of unrelated pairs" if hard else "share of related pairs",
        ),
        key=f"models_{metric}",
        alt=f"{metric.replace('_', ' ')} of {len(methods)} methods over "
        f"{own['group'].nunique()} groups.",
        file_name=f"{ref.name}-{metric.replace('_', '-')}",
    )  # fmt: skip
    table = own.assign(
        Method=[text.method_name(str(m)) for m in own["method"]],
        Group=[text.group_name(str(g)) for g in own["group"]],
    ).pivot_table(index="Group", columns="Method", values="value")
    with st.expander("As a table", icon=":material/table_rows:"):
        st.dataframe(
            table.reset_index(), key=f"models_{metric}_table", hide_index=True, height="content",
            column_config={
                str(c): st.column_config.NumberColumn(format="%.3f") for c in table.columns
            },
            alt=f"{metric.replace('_', ' ')} by group and method.",
        )  # fmt: skip


def _others(rows: pd.DataFrame) -> None:
    """Parent retrieval, and how well trees are made, as tables."""
    left, right = st.columns(2, gap="large")
    for column, group, names, title in (
        (left, "parents", text.PARENT_METRICS, "Parents and bases"),
        (right, "tree", text.TREE_METRICS, "Trees"),
    ):
        own = rows[(rows["group"] == group) & rows["metric"].isin(list(names))]
        if own.empty:
            continue
        table = own.assign(Method=[text.method_name(str(m)) for m in own["method"]]).pivot_table(
            index="Method", columns="metric", values="value"
        )
        table = table[[m for m in names if m in table]].rename(columns=names)
        with column:
            st.markdown(f"##### {title}")
            st.dataframe(
                table.reset_index(), key=f"models_{group}", hide_index=True,
                height=theme.table_height(len(table), 420),
                column_config={
                    str(c): st.column_config.NumberColumn(format="%.3f") for c in table.columns
                },
                alt=f"{title}: {len(table)} methods.",
            )  # fmt: skip


def stability_panel(ref: RunRef) -> None:
    """Curves of the studies with numbers for settings, and a table of the others."""
    if not data.has(ref, "model_stability"):
        empty_state(text.NO_STABILITY, data.run_of(ref).command_for("model_stability"))
        return
    rows = data.table(ref, "model_stability")
    curved = [
        study for study in text.CURVED
        if rows.loc[rows["study"] == study, "x"].notna().sum() > 1
    ]  # fmt: skip
    if curved:
        own = rows[rows["study"].isin(curved)]
        chart(
            figures.stability_curves(own, curved, dark=theme.is_dark()),
            key="models_stability",
            alt=figures.stability_alt(own, curved),
            file_name=f"{ref.name}-stability",
        )
        st.caption("Marks: median over models, or mean over draws; bars: the lowest and highest.")
    st.dataframe(
        stability_table(rows),
        key="models_stability_table",
        hide_index=True,
        height=theme.table_height(len(rows), 420),
        column_config={
            name: st.column_config.NumberColumn(format="%.4g", width=96)
            for name in ("Value", "Lowest", "Highest")
        },
        alt=f"{len(rows)} measures of stability.",
    )
    export_buttons(rows, name=f"{ref.name}-stability", key="stability_file")


def stability_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Every study, setting and measure in words."""
    return pd.DataFrame(
        {
            "Done otherwise": [text.STUDIES.get(str(s), str(s)) for s in rows["study"]],
            "Setting": rows["setting"],
            "Measure": [text.MEASURES.get(str(m), str(m)) for m in rows["measure"]],
            "Value": rows["value"],
            "Lowest": rows["low"],
            "Highest": rows["high"],
            "n": rows["n"],
        }
    )
