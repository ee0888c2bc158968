"""Which questions and domains move the distance between two models; a click opens one."""

import pandas as pd
import streamlit as st

from dashboard import service_pair as service, state, text_pair as text, theme
from dashboard.components.chart import chart
from dashboard.components.clicked import new_click
from dashboard.components.export import export_buttons
from dashboard.components.pair_controls import PairView
from dashboard.data import RunRef
from dashboard.figures import pair as figures
from dashboard.model_words import domain_shares


ALL = "all domains"
COLUMNS = ("probe", "source", "question", "share", "cosine", "first", "second")


def ranked(ref: RunRef, view: PairView) -> pd.DataFrame:
    """Every question by falling share: `COLUMNS` and what `probe_shares` gives."""
    shares = service.shares(ref, view.a, view.b, view.kept)
    probes = service.probes(ref)[["probe", "prompt"]]
    rows = shares.merge(probes, on="probe", how="left")
    rows["question"] = [question_of(prompt) for prompt in rows["prompt"]]
    rows.loc[rows["source"] == text.GATED, "question"] = "(not published)"
    for name, side in zip(view.names, ("first", "second"), strict=True):
        right = service.options_of(ref, name)["correct"].reindex(rows["probe"])
        rows[side] = ["–" if pd.isna(r) else ("right" if r else "wrong") for r in right]
    rows = rows.drop(columns="prompt")
    return rows.sort_values("share", ascending=False, kind="stable", ignore_index=True)


def question_of(prompt: str) -> str:
    """The line of a prompt that asks."""
    lines = [line for line in str(prompt).splitlines() if line.strip()]
    asked = next((line for line in lines if line.startswith("Question:")), None)
    return (asked or (lines[0] if lines else "")).removeprefix("Question:").strip()


def probe_of_link(rows: pd.DataFrame) -> int:
    """The question of the link, else the one that moves the distance most."""
    first = int(rows["probe"].iloc[0])
    asked = state.read_int("probe", None)
    if asked is not None and asked not in set(rows["probe"]):
        state.refuse("probe", str(asked), f"a question from 0 to {int(rows['probe'].max())}")
        return first
    return first if asked is None else asked


def distance_panel(ref: RunRef, view: PairView, rows: pd.DataFrame, chosen: int) -> None:
    """Bars of the questions on the left, of the domains on the right, the table below."""
    if view.kept != view.variant:
        st.caption(text.PAPER_SHARES)
    left, right = st.columns([3, 2], gap="large")
    with right:
        domains = domain_shares(rows.rename(columns={"n": "count"}))
        chart(
            figures.domain_bars(domains, dark=theme.is_dark()),
            key="pair_domains",
            alt=figures.domains_alt(domains),
            file_name=f"{ref.name}-pair-domains",
        )
        st.caption(text.DISTANCE)
    with left:
        shown = _domain(rows)
        own = rows if shown == ALL else rows[rows["source"] == shown]
        _bars(ref, own, chosen, len(rows))
    with st.expander("All questions as a table", icon=":material/table_rows:"):
        _table(ref, view, own, chosen)


def _domain(rows: pd.DataFrame) -> str:
    """The domain kept; asked for where there are several."""
    names = [ALL, *dict.fromkeys(rows["source"])]
    state.read_choice("domain", names, ALL)
    return str(st.selectbox("Questions of", names, key="domain", bind="query-params", width=220))


def _bars(ref: RunRef, rows: pd.DataFrame, chosen: int, n: int) -> None:
    top = rows.head(figures.TOP).reset_index(drop=True)
    key = f"pair_bars_{'-'.join(str(p) for p in top['probe'][:3])}"
    clicked = chart(
        figures.probe_bars(
            top,
            chosen,
            dark=theme.is_dark(),
            subtitle=f"{len(top)} of n = {n:,} questions, together {top['share'].sum():.0%}; "
            "click one",
        ),
        key=key,
        alt=figures.probes_alt(top),
        file_name=f"{ref.name}-pair-questions",
        select=("points",),
    )
    _open(new_click(key, clicked), chosen)


def _table(ref: RunRef, view: PairView, rows: pd.DataFrame, chosen: int) -> None:
    shown = rows[list(COLUMNS)].assign(share=100 * rows["share"])
    key = f"pair_table_{view.a}_{view.b}"
    st.dataframe(
        shown,
        key=key,
        hide_index=True,
        height=theme.table_height(len(rows), 320),
        on_select="rerun",
        selection_mode="single-row",
        column_config={
            "probe": st.column_config.NumberColumn("#", width=60),
            "source": st.column_config.TextColumn("Domain"),
            "question": st.column_config.TextColumn("Question", width=460),
            "share": st.column_config.NumberColumn("Share (%)", format="%.2f"),
            "cosine": st.column_config.NumberColumn("Cosine here", format="%.3f"),
            "first": st.column_config.TextColumn(view.a),
            "second": st.column_config.TextColumn(view.b),
        },
        alt=f"{len(rows)} questions by their share of the squared difference.",
    )
    picked = new_click(key, state.selected_rows(st.session_state.get(key)))
    if picked is not None and picked < len(rows):
        _open(int(rows["probe"].iloc[picked]), chosen)
    export_buttons(
        rows.assign(model_a=view.a, model_b=view.b, variant=view.kept),
        name=f"{ref.name}-pair-questions",
        key="pair_questions_file",
    )


def _open(probe: int | None, chosen: int) -> None:
    if probe is not None and probe != chosen:
        state.write(probe=probe)
        st.rerun()
