"""How well the routers do: over groups of questions, domains, new models and budgets."""

import pandas as pd
import streamlit as st

from dashboard import (
    routing_rows,
    service_routing as service,
    state,
    text_routing as text,
    theme,
)
from dashboard.components.chart import chart
from dashboard.components.export import export_buttons
from dashboard.data import RunRef
from dashboard.figures import routing as figures


USED = 16
"""Models drawn of those that a router calls."""


def accuracy_panel(ref: RunRef) -> None:
    """Accuracy of every router on the left, paired differences on the right."""
    rows = service.results(ref)
    left, right = st.columns([3, 2], gap="large")
    with left:
        _groups(ref, rows)
    with right:
        _differences(ref, rows)


def _groups(ref: RunRef, results: pd.DataFrame) -> None:
    own = pd.concat(
        [routing_rows.of_group(results, g).assign(name=words) for g, words in text.GROUPS.items()]
    )
    own = pd.concat([own, _random(results)], ignore_index=True)
    names = [words for words in text.GROUPS.values() if words in set(own["name"])]
    if own.empty:
        return
    sizes = own.groupby("name", sort=False)["n"].max()
    chart(
        figures.interval_rows(
            own,
            names,
            dark=theme.is_dark(),
            title="How often the chosen model is right",
            subtitle=f"n = {int(sizes.max()):,} questions; bars: 95 % interval over questions",
            axis=text.ACCURACY,
        ),
        key="routing_groups",
        alt=figures.interval_alt(own, names[0], "Accuracy"),
        file_name=f"{ref.name}-routing-accuracy",
    )


def _random(results: pd.DataFrame) -> pd.DataFrame:
    """Accuracy of the able router's calls dealt at random, where it stands as its own measure."""
    rows = results[(results["metric"] == "usage_random") & (results["router"] == "able")]
    known = set(results.loc[results["router"] == "random", "group"])
    rows = rows[~rows["group"].isin(known) & rows["group"].isin(list(text.GROUPS))]
    return rows.assign(router="random", name=rows["group"].map(text.GROUPS))


def _differences(ref: RunRef, results: pd.DataFrame) -> None:
    """How much more often routers are right than what they are held against, each on its scale."""
    for other, words in text.DIFFERENCES.items():
        rows = results[results["metric"].isin(list(words)) & (results["group"] == "all")]
        own = rows.assign(name=rows["metric"].map(words)).reset_index(drop=True)
        names = [name for name in words.values() if name in set(own["name"])]
        if not names:
            continue
        chart(
            figures.interval_rows(
                own,
                names,
                dark=theme.is_dark(),
                title=f"More often right than {other}",
                subtitle="all questions, paired question by question; 95 % interval",
                axis="difference (share)",
                zero=True,
            ),
            key=f"routing_over_{other.split()[0]}",
            alt=figures.interval_alt(own, names[0], f"Difference from {other}"),
            file_name=f"{ref.name}-routing-over-{other.replace(' ', '-')}",
        )


def domains(ref: RunRef) -> None:
    """Accuracy by domain."""
    rows = routing_rows.by_prefix(service.results(ref), "domain")
    if rows.empty:
        st.caption("This run holds no accuracy by domain.")
        return
    names = sorted(set(rows["name"]))
    chart(
        figures.interval_rows(
            rows,
            names,
            dark=theme.is_dark(),
            title="By domain",
            subtitle="right answers of the chosen model; 95 % interval over questions",
            axis=text.ACCURACY,
        ),
        key="routing_domains",
        alt=figures.interval_alt(rows, names[0], "Accuracy"),
        file_name=f"{ref.name}-routing-domains",
    )


def new_models(ref: RunRef) -> None:
    """Models that no training saw, added by embedding alone or with some answers."""
    results = service.results(ref)
    words = {name: metric for metric, name in text.METRICS_OF_NEW.items()}
    state.read_choice("measure", words, next(iter(words)))
    measure = st.segmented_control(
        "Measure", list(words), default=next(iter(words)), required=True, key="measure",
        bind="query-params",
    )  # fmt: skip
    metric = words.get(str(measure), "choice_among_new")
    columns = st.columns(2, gap="large")
    for column, (kind, said) in zip(columns, text.KINDS_OF_NEW.items(), strict=True):
        rows = routing_rows.by_prefix(results, kind, metric)
        if rows.empty:
            continue
        with column:
            axis = "predictions right (share)" if metric == "correctness" else text.RIGHT_SHARE
            chart(
                figures.new_model_lines(
                    rows,
                    dark=theme.is_dark(),
                    title=f"New models: {said}",
                    subtitle="able needs the embedding alone; 95 % interval over questions",
                    axis=axis,
                ),
                key=f"routing_{kind}",
                alt=figures.interval_alt(rows, "k=0", str(measure)),
                file_name=f"{ref.name}-routing-{kind}",
            )


def budget(ref: RunRef) -> None:
    """Accuracy while no larger model may be chosen."""
    rows = routing_rows.by_prefix(service.results(ref), "budget")
    if rows.empty:
        st.caption("This run holds no accuracy under a budget.")
        return
    chart(
        figures.budget_lines(
            rows,
            dark=theme.is_dark(),
            subtitle=f"n = {int(rows['n'].max()):,} questions; bars: 95 % interval",
        ),
        key="routing_budget",
        alt=figures.interval_alt(rows, str(rows["name"].iloc[0]), "Accuracy at a budget of"),
        file_name=f"{ref.name}-routing-budget",
    )


def models_used(ref: RunRef) -> None:
    """Which models the router calls."""
    router = str(st.session_state.get("router") or service.routers(ref)[0])
    if router not in service.routers(ref):
        router = service.routers(ref)[0]
    rows = routing_rows.usage(service.chosen(ref, router))
    top = rows.head(USED)
    n_models = len(service.right(ref))
    chart(
        figures.usage_bars(
            top,
            router,
            dark=theme.is_dark(),
            subtitle=f"{len(rows)} of {n_models:,} models are called; "
            f"{len(top)} of them drawn, together {top['n'].sum() / rows['n'].sum():.0%} of calls",
        ),
        key="routing_used",
        alt=f"{router} calls {len(rows)} models; most often {rows['model'].iloc[0]}.",
        file_name=f"{ref.name}-routing-models-used",
    )
    export_buttons(rows, name=f"{ref.name}-routing-models-used", key="routing_used_file")


def results_table(ref: RunRef) -> None:
    """Every figure above as a table and file."""
    rows = service.results(ref)
    with st.expander("Numbers behind the figures", icon=":material/download:"):
        st.dataframe(
            rows,
            key="routing_results",
            hide_index=True,
            height=theme.table_height(len(rows), 320),
            alt=f"{len(rows)} figures of routers.",
        )
        export_buttons(rows, name=f"{ref.name}-routing-results", key="routing_results_file")
