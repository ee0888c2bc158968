"""One question: models ranked by a router, what it is held against, and what backs its choice."""

from dataclasses import dataclass

import pandas as pd
import streamlit as st

from dashboard import (
    data,
    routing_rows,
    service_routing as service,
    state,
    text_routing as text,
    theme,
)
from dashboard.components.chart import chart
from dashboard.components.export import export_buttons
from dashboard.components.facts import Fact, facts
from dashboard.components.pair_distance import question_of
from dashboard.components.panel import attempt
from dashboard.data import RunRef
from dashboard.figures import routing as figures


DRAWN = 14
"""Models drawn; the table lists all."""
NEAREST = 8
"""Neighbours listed."""
BUDGETS = 8
"""Limits on parameters offered at most."""


@dataclass(frozen=True)
class Asked:
    """What is asked of which router."""

    router: str
    budget: int | None
    """Most parameters of a model that may be chosen; None where there is no limit."""


def controls(ref: RunRef) -> tuple[str, Asked]:
    """Draw where the question comes from, the router and the limit on parameters."""
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        state.read_choice("from", text.SOURCES, text.STORED)
        source = st.segmented_control(
            "Question", text.SOURCES, default=text.STORED, required=True, key="from",
            bind="query-params",
        )  # fmt: skip
        known = service.routers(ref)
        state.read_choice("router", known, known[0])
        router = st.selectbox(
            "Router", known, key="router", bind="query-params", width=150,
            disabled=source == text.TYPED,
            help="A question of your own is put to able, the router that the run keeps.",
        )  # fmt: skip
        budget = _budget(ref)
    return str(source or text.STORED), Asked(str(router or known[0]), budget)


def _budget(ref: RunRef) -> int | None:
    """The limit on parameters."""
    sizes = sorted({int(n) for n in service.parameters(ref) if n > 0})
    if len(sizes) < 2:
        return None
    step = max(1, len(sizes) // BUDGETS)
    limits = {f"{n:,}": n for n in sizes[:-1][::step]}
    names = [text.NO_BUDGET, *limits]
    state.read_choice("limit", names, text.NO_BUDGET)
    chosen = st.selectbox(
        "Largest model (parameters)", names, key="limit", bind="query-params", width=210,
        help=text.BUDGET_HELP,
    )  # fmt: skip
    return limits.get(str(chosen))


def stored_question(ref: RunRef, asked: Asked) -> None:
    """A question of the run: its ranking, from a router that was not trained on it."""
    question = _pick(ref, asked.router)
    row = service.questions(ref).loc[question].to_dict()
    options = [str(option) for option in row["options"]]
    st.caption(
        f"Options: {'; '.join(options)}. Right: {options[int(row['answer'])]}. "
        + ("Embeddings were made with it." if row["is_probe"] else "No embedding was made with it.")
    )
    everything = service.ranking(ref, asked.router, question)
    rows, hidden = within(everything, asked.budget)
    allowed = tuple(sorted(rows["model"])) if hidden else None
    beside(ref, asked.router, question, rows.iloc[0], allowed)
    left, right = st.columns([3, 2], gap="large")
    with left:
        what = f"router {asked.router}, question {question}"
        ranking_panel(ref, rows, hidden, what, text.BAND_CAME_TRUE)
    with right:
        first = str(rows["model"].iloc[0])
        st.markdown(f"**{text.BACKED}**")
        if service.keeps_router(ref):
            near_questions(ref, str(row["prompt"]), first, leave_out=question)
        _near_models(ref, question, first)


def near_questions(ref: RunRef, asked: str, model: str, *, leave_out: int | None = None) -> None:
    """Known questions most like one, and whether a model answers each right.

    Args:
        ref: Run that keeps a router.
        asked: The question.
        model: The model.
        leave_out: The question itself, where it is one of the run.
    """
    found, problem = attempt(service.ranked, ref, asked, None)
    if found is None:
        st.info(problem, icon=":material/info:")
        return
    place = list(found.models["model"]).index(model)
    rows = found.neighbours.assign(right=found.answers[place])
    rows = rows[rows["question"] != leave_out].head(NEAREST)
    if rows.empty:
        st.caption(text.NO_NEAR_QUESTION)
        return
    st.caption(text.NEAR_QUESTIONS.format(model=model))
    st.dataframe(
        rows[["prompt", "similarity", "right", "share_right"]].assign(
            share_right=100 * rows["share_right"]
        ),
        key="routing_near_questions",
        hide_index=True,
        height="content",
        column_config={
            "prompt": st.column_config.TextColumn("Question", width=150),
            "similarity": st.column_config.NumberColumn(
                "Cosine", format="%.2f", width=60, help=text.SIMILARITY
            ),
            "right": st.column_config.CheckboxColumn("Right", width=52, help=text.RIGHT_THERE),
            "share_right": st.column_config.NumberColumn(
                "Of all (%)", format="%.0f", width=72, help=text.SHARE_RIGHT
            ),
        },
        alt=f"{len(rows)} known questions most like this one.",
    )  # fmt: skip


def within(rows: pd.DataFrame, budget: int | None) -> tuple[pd.DataFrame, int]:
    """Models that a limit on parameters leaves, and how many it hides; unknown sizes are hidden."""
    if budget is None:
        return rows, 0
    kept = rows[(rows["parameters"] > 0) & (rows["parameters"] <= budget)]
    if kept.empty:
        return rows, 0
    return kept.reset_index(drop=True), len(rows) - len(kept)


def _pick(ref: RunRef, router: str) -> int:
    """The question of the link, else one where the router is right and the single best is not."""
    rows = service.questions(ref)
    known = [int(q) for q in rows.index]
    asked = state.read_int("question", None)
    if asked is not None and asked not in known:
        state.refuse("question", str(asked), f"a question from {known[0]} to {known[-1]}")
        asked = None
    start = service.opening_question(ref, router) if asked is None else asked
    key = f"routing_question_{start}"  # a link or a step may name another one
    names = {q: f"#{q} {r['domain']}: {question_of(r['prompt'])}" for q, r in rows.iterrows()}
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        st.selectbox(
            "Question of the run; type to search",
            known,
            known.index(start),
            key=key,
            format_func=lambda q: names[q],
            on_change=_take,
            args=(key,),
        )
        for label, icon, step in (
            ("Previous", ":material/chevron_left:", -1),
            ("Next", ":material/chevron_right:", 1),
        ):
            wanted = known[(known.index(start) + step) % len(known)]
            st.button(
                label, key=f"routing_{label.lower()}", icon=icon, type="tertiary",
                on_click=_go, args=(wanted,),
            )  # fmt: skip
    return start


def _take(key: str) -> None:
    _go(int(st.session_state[key]))


def _go(question: int) -> None:
    state.write(question=question)


def beside(
    ref: RunRef, router: str, question: int, first: pd.Series, allowed: tuple[str, ...] | None
) -> None:
    """The first choice beside the single best, the usage-weighted random and the oracle.

    Args:
        ref: Run.
        router: Router.
        question: Question of the run.
        first: Row of the first choice.
        allowed: Models that a limit leaves; None where there is no limit.
    """
    right = service.right(ref)[question]
    if allowed is not None:
        right = right[right.index.isin(allowed)]
    best = service.single_best(ref, allowed)
    random = routing_rows.usage_random(right, service.calls(ref, router, allowed))
    n_right = int(right.sum())
    facts(
        [
            Fact("First choice", str(first["model"]), _verdict(bool(first["correct"]))),
            Fact("Predicted", theme.percent(float(first["predicted"])), _held(first),
                 text.PREDICTED),
            Fact("Single best", best, _verdict(bool(right[best])), text.SINGLE_HELP),
            Fact("Usage-weighted random", theme.percent(random), "right", text.RANDOM_HELP),
            Fact(
                "Oracle",
                "right" if n_right else "wrong",
                f"{n_right:,} of {len(right):,} models are"
                + ("" if allowed is None else ", within the limit"),
                text.ORACLE_HELP,
            ),
        ]
    )  # fmt: skip


def _verdict(correct: bool) -> str:
    return "right" if correct else "wrong"


def _held(row: pd.Series) -> str:
    if pd.isna(row["low"]):
        return ""
    return f"such came true {row['share']:.0%} [{row['low']:.0%}, {row['high']:.0%}]"


def ranking_panel(ref: RunRef, rows: pd.DataFrame, hidden: int, what: str, band: str) -> None:
    """The likeliest models drawn, all of them as a table and file.

    Args:
        ref: Run.
        rows: model, predicted, low, high, correct, parameters.
        hidden: Models that the limit on parameters hides.
        what: Router and question in words.
        band: What the band behind a mark is, in words.
    """
    top = rows.head(DRAWN)
    chart(
        figures.ranking_bars(
            top,
            dark=theme.is_dark(),
            title="Models by predicted chance of a right answer",
            subtitle=f"{len(top)} of n = {len(rows):,}; {what}; band: {band}",
            band=band,
            chosen=str(rows["model"].iloc[0]),
        ),
        key="routing_ranking",
        alt=figures.ranking_alt(rows),
        file_name=f"{ref.name}-routing-ranking",
    )
    if hidden:
        st.caption(text.HIDDEN.format(hidden=hidden, n=hidden + len(rows)))
    with st.expander("All models as a table", icon=":material/table_rows:"):
        shown = rows.dropna(axis="columns", how="all").copy()
        for share in {"predicted", "backing", "accuracy"} & set(shown):
            shown[share] = 100 * shown[share]
        columns = ["model", "predicted", "correct", "backing", "accuracy", "parameters"]
        st.dataframe(
            shown[[c for c in columns if c in shown]],
            key="routing_table",
            hide_index=True,
            height=theme.table_height(len(shown), 320),
            column_config={
                "model": st.column_config.TextColumn("Model", width=280),
                "predicted": st.column_config.NumberColumn(
                    "Predicted (%)", format="%.1f", help=text.PREDICTED
                ),
                "correct": st.column_config.CheckboxColumn("Right", help=text.RIGHT),
                "backing": st.column_config.NumberColumn(
                    "On questions like it (%)", format="%.0f", help=text.BACKING
                ),
                "accuracy": st.column_config.NumberColumn(
                    "On all questions (%)", format="%.1f", help=text.ACCURACY_HELP
                ),
                "parameters": st.column_config.NumberColumn("Parameters", format="%d"),
            },
            alt=f"{len(shown)} models by predicted chance.",
        )
        export_buttons(rows, name=f"{ref.name}-routing-ranking", key="routing_ranking_file")


def _near_models(ref: RunRef, question: int, model: str) -> None:
    """The nearest models of the first choice, and what they answer to the question."""
    if not data.has(ref, "model_neighbours"):
        return
    where = (("variant", "able"), ("model", model))
    columns = ("rank", "neighbour", "cosine", "known_relation")
    rows = data.table(ref, "model_neighbours", columns, where, "rank").head(NEAREST)
    if rows.empty:
        return
    right = service.right(ref)[question].reindex(rows["neighbour"]).to_numpy()
    st.caption(text.NEAR_MODELS.format(model=model))
    st.dataframe(
        rows[["neighbour", "cosine", "known_relation"]].assign(right=right),
        key="routing_near_models",
        hide_index=True,
        height="content",
        column_config={
            "neighbour": st.column_config.TextColumn("Model", width=150),
            "cosine": st.column_config.NumberColumn("Cosine", format="%.2f", width=60),
            "known_relation": st.column_config.TextColumn("Documented", width=78),
            "right": st.column_config.CheckboxColumn("Right", width=52, help=text.RIGHT),
        },
        alt=f"{len(rows)} models most like {model}.",
    )
