"""Answers that the prototype controller turned right or wrong, and the prototypes behind each."""

import zlib
from collections.abc import Sequence

import pandas as pd
import streamlit as st

from dashboard import data, questions, state, text_control as text, theme
from dashboard.components.chart import chart
from dashboard.components.clicked import new_click
from dashboard.components.control_weights import N_NEIGHBOURS, named, prototype_row
from dashboard.components.doors import door, escape_markdown
from dashboard.components.export import export_buttons
from dashboard.components.neighbours import neighbours
from dashboard.figures import signed_bars
from dashboard.figures.tokens import shortened


RIGHT, WRONG = "✓ wrong → right", "✗ right → wrong"
"""Both ways an answer turns."""
EVERY = "Both ways"


def corrections_panel(ref: data.RunRef, chosen: str, split: int) -> int | None:
    """The table of questions that turned; returns the one that is chosen.

    Args:
        ref: Run.
        chosen: Question set.
        split: Seed of the split.
    """
    rows = _rows(ref, chosen, split)
    turned = turned_questions(rows)
    st.markdown("##### Answers that turned")
    st.caption(_counts(ref, turned, chosen, split))
    if turned.empty:
        st.info(text.NO_CORRECTIONS, icon=":material/info:")
        return None
    known, problem = questions.texts(chosen)
    number = _table(_filtered(turned), known)
    st.caption(f"{text.NO_QUESTION_TEXT} {problem}" if problem else text.CORRECTIONS_HINT)
    name = f"{ref.name}-control-corrections-{chosen}-{split}"
    export_buttons(rows, name=name, key="corrections_file")
    return number


def correction(ref: data.RunRef, chosen: str, split: int, number: int) -> None:
    """One question: its options, the prototypes that moved its answer, their training neighbours.

    Args:
        ref: Run.
        chosen: Question set.
        split: Seed of the split.
        number: Question, a row of `control_corrections` of this set and split.
    """
    rows = _rows(ref, chosen, split)
    rows = rows[rows["question"] == number].sort_values("rank")
    if rows.empty:
        return
    known, _ = questions.texts(chosen)
    left, middle, right = st.columns([4, 5, 5], gap="medium")
    with left:
        _question(turned_questions(rows).iloc[0], known)
    with middle:
        current = _contributions(ref, rows)
    with right:
        _neighbours(ref, current)


def _rows(ref: data.RunRef, chosen: str, split: int) -> pd.DataFrame:
    where = (("set", chosen), ("seed", split))
    return named(ref, data.table(ref, "control_corrections", where=where))


def turned_questions(rows: pd.DataFrame) -> pd.DataFrame:
    """One row a question: choices before and after, which way it turned, its strongest prototype.

    Args:
        rows: Rows of `control_corrections` of one set and split, with `label`.

    Returns:
        question, question_id, answer, before, after, turned, prototype, label, contribution;
        those turned right first, the strongest contribution first.
    """
    first = rows.sort_values("rank").groupby("question", sort=False).head(1).copy()
    first["turned"] = [
        RIGHT if after == answer else WRONG
        for after, answer in zip(first["after"], first["answer"], strict=True)
    ]
    strength = first["contribution"].abs()
    order = first.assign(way=(first["turned"] == WRONG), strength=-strength)
    return order.sort_values(["way", "strength"]).drop(columns=["way", "strength"])


def _counts(ref: data.RunRef, turned: pd.DataFrame, chosen: str, split: int) -> str:
    """How many turned each way, of how many, and how many moved between two wrong options."""
    answers = data.table(
        ref, "control_answers", ("question", "answer", "none_choice", "prototypes_choice"),
        (("set", chosen), ("seed", split)),
    )  # fmt: skip
    right = int((turned["turned"] == RIGHT).sum())
    moved = int(
        (
            (answers["none_choice"] != answers["prototypes_choice"])
            & (answers["none_choice"] != answers["answer"])
            & (answers["prototypes_choice"] != answers["answer"])
        ).sum()
    )
    return (
        f"Of {len(answers):,} test questions {right:,} turned right and {len(turned) - right:,} "
        f"turned wrong; {moved:,} more moved from one wrong option to another."
    )


def _filtered(turned: pd.DataFrame) -> pd.DataFrame:
    ways = (EVERY, RIGHT, WRONG)
    way = st.segmented_control(
        "Which way", ways, default=EVERY, required=True, key="turned", label_visibility="collapsed"
    )
    return turned if way in (None, EVERY) else turned[turned["turned"] == way]


def _table(shown: pd.DataFrame, known: dict[str, questions.Question]) -> int | None:
    """Draw the questions; returns the one chosen, of the link or the first."""
    numbers = [int(q) for q in shown["question"]]
    chosen = state.read_int("question", None)
    current = chosen if chosen in numbers else (numbers[0] if numbers else None)
    frame = pd.DataFrame(
        {
            "Turned": shown["turned"],
            "Question": [_short(known.get(str(i)), str(i)) for i in shown["question_id"]],
            "Answer": [
                f"{letter(before)} → {letter(after)}"
                for before, after in shown[["before", "after"]].to_numpy()
            ],
            "Strongest prototype": [
                f"#{p}  {label}" for p, label in shown[["prototype", "label"]].to_numpy()
            ],
            "Its logits": shown["contribution"].astype(float),
        }
    )
    event = st.dataframe(
        frame,
        key=f"corrections_{zlib.crc32(str(numbers).encode()):08x}",
        hide_index=True,
        height=theme.table_height(len(frame), 270),
        lazy=False,
        on_select="rerun",
        selection_mode="single-row",
        column_config={
            "Turned": st.column_config.TextColumn(width=100),
            "Question": st.column_config.TextColumn(width=150),
            "Answer": st.column_config.TextColumn(
                width=52, help="Chosen without and with the controller."
            ),
            "Strongest prototype": st.column_config.TextColumn(width=128),
            "Its logits": st.column_config.NumberColumn(
                format="%+.3f", width=60, help=text.CONTRIBUTION
            ),
        },
        alt=f"{len(frame)} questions whose answer turned right or wrong.",
    )
    picked = new_click("corrections", state.selected_rows(event))
    if picked is not None and picked < len(numbers):
        current = numbers[picked]
        state.write(question=current, behind=None)
    return current


def _short(question: questions.Question | None, question_id: str) -> str:
    return question_id if question is None else shortened(" ".join(question.question.split()), 160)


def letter(option: int) -> str:
    """An option as it is written on screen: A is 0."""
    return text.LETTERS[option] if 0 <= option < len(text.LETTERS) else str(option)


def _question(row: pd.Series, known: dict[str, questions.Question]) -> None:
    """The question, its options, and which was chosen when."""
    found = known.get(str(row["question_id"]))
    st.markdown(f"**{row['turned']}**&ensp;question {int(row['question']):,}")
    st.text(str(row["question_id"]) if found is None else questions.full_text(found))
    options: Sequence[str] = () if found is None else found.options
    marks = (("answer", "right"), ("before", "chosen without"), ("after", "chosen with it"))
    places = range(len(options)) if options else sorted({int(row[name]) for name, _ in marks})
    if found is None and known:
        st.caption(text.OTHER_QUESTIONS)
    for option in places:
        said = ", ".join(words for name, words in marks if int(row[name]) == option)
        body = escape_markdown(options[option]) if options else ""
        strong = "**" if option == int(row["answer"]) else ""
        badge = f"&ensp;:primary[◂ {said}]" if said else ""
        st.markdown(f"{strong}{letter(option)}&ensp;{body}{strong}{badge}")


def _contributions(ref: data.RunRef, rows: pd.DataFrame) -> int:
    """Signed contributions; a click chooses the prototype whose text is read."""
    drawn = rows.rename(columns={"contribution": "value"})
    ids = [int(p) for p in drawn["prototype"]]
    question = int(rows["question"].iloc[0])
    key = f"contributions_{question}"
    clicked = new_click(key, state.selected_ids(st.session_state.get(key)))
    if clicked is not None:
        state.write(behind=clicked)
    wanted = state.read_int("behind", None)
    current = wanted if wanted in ids else ids[0]
    after, before = (letter(int(rows[name].iloc[0])) for name in ("after", "before"))
    chart(
        signed_bars.prototype_bars(
            drawn,
            axis=text.CONTRIBUTION_AXIS,
            title="What moved the answer",
            subtitle=f"from {before} to {after}; n = {len(drawn)} prototypes",
            selected=current,
            dark=theme.is_dark(),
            label_length=signed_bars.SHORT_LABEL,
        ),
        key=key,
        alt=signed_bars.bars_alt(drawn, "Contributions"),
        file_name=f"{ref.name}-contributions-{question}",
        select=("points",),
    )
    return current


def _neighbours(ref: data.RunRef, number: int) -> None:
    """Training text of the prototype that is looked at."""
    row = prototype_row(ref, number)
    if row is None:
        st.caption("This run has no index, so nothing is known of its training neighbours.")
        return
    label = escape_markdown(str(row["label"]))
    score = "" if pd.isna(row["label_score"]) else f", label score {row['label_score']:.2f}"
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        st.markdown(f"**Training neighbours of #{number}**&ensp;{label}{score}", width="stretch")
        door("prototypes", "Open its page", ":material/open_in_new:", prototype=str(number))
    neighbours(ref, row, key="behind", n_top=N_NEIGHBOURS, quantiles=False, links=False)
