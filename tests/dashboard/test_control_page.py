"""The Control page: results, weights, turned answers, the dense twin, what is missing."""

import json
from pathlib import Path

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from dashboard import questions
from dashboard.views.control import opening_split
from engine.questions import Question
from tests.dashboard.live_pages import link, open_page, pages, words


def first_turned(run: Path) -> pd.Series:
    """A correction of the first set and split of the run."""
    from engine import store

    rows = store.read_table(store.open_run(str(run)), "control_corrections")
    return rows[(rows["set"] == "mmlu") & (rows["seed"] == 0)].iloc[0]


def turned_table(app: AppTest) -> pd.DataFrame:
    return next(d.value for d in app.dataframe if "Turned" in d.value)


def test_the_page_opens_on_gains_weights_and_turned_answers(synthetic_run: Path):
    """Numbers with intervals, the weights of both controllers, questions turned both ways."""
    assert synthetic_run.is_dir()
    app = open_page("control")
    assert not app.exception
    facts = "".join(pages(app))
    assert "Gain of the prototype controller" in facts
    assert "Gain of the SAE controller" in facts
    assert "Non-zero weights" in facts
    assert "SAE 12.0" in facts
    assert set(turned_table(app)["Turned"]) == {"✓ wrong → right", "✗ right → wrong"}


def test_the_page_opens_on_a_split_whose_controller_has_weights():
    """Where validation preferred no weight at all there is nothing to look at."""
    results = pd.DataFrame(
        {
            "set": ["mmlu", "mmlu", "mmlu", "siqa"],
            "condition": ["prototypes", "prototypes", "sae", "prototypes"],
            "seed": [3, 5, 2, 7],
            "nonzeros": [0, 11, 13, 0],
        }
    )
    assert opening_split(results, "mmlu") == "5"
    assert opening_split(results, "siqa") == "7"


def test_the_set_and_the_split_of_the_link_are_shown(synthetic_run: Path):
    """A view is a link: both widgets take what it says and the counts follow."""
    assert synthetic_run.is_dir()
    app = open_page("control", questions="SIQA", split="1")
    assert app.selectbox(key="questions").value == "SIQA"
    assert app.segmented_control(key="split").value == "1"
    assert not app.warning


@pytest.mark.parametrize(
    ("name", "value"), [("questions", "sudoku"), ("split", "99"), ("split", "nan")]
)
def test_a_set_or_split_that_is_not_there_is_said(name: str, value: str, synthetic_run: Path):
    """One sentence, and the page shows its default."""
    assert synthetic_run.is_dir()
    app = open_page("control", **{name: value})
    assert not app.exception
    assert any(f"The link's {name} is “{value}”" in w.value for w in app.warning)


@pytest.mark.parametrize(("name", "value"), [("question", "x"), ("behind", "-3"), ("card", "many")])
def test_nonsense_in_the_link_gives_defaults(name: str, value: str, synthetic_run: Path):
    """A cut link opens the page without a traceback."""
    assert synthetic_run.is_dir()
    app = open_page("control", **{name: value})
    assert not app.exception
    assert len(turned_table(app)) > 0


def test_one_way_can_be_read_alone(synthetic_run: Path):
    """Answers turned wrong are as near as those turned right."""
    assert synthetic_run.is_dir()
    app = open_page("control", questions="MMLU")
    both = len(turned_table(app))
    app.segmented_control(key="turned").set_value("✗ right → wrong").run()
    assert not app.exception
    assert set(turned_table(app)["Turned"]) == {"✗ right → wrong"}
    assert len(turned_table(app)) < both


def test_a_row_opens_its_question_with_what_moved_it(
    synthetic_run: Path, monkeypatch: pytest.MonkeyPatch
):
    """Text from the package, both choices and the right one marked, training text beside it."""
    row = first_turned(synthetic_run)
    options = tuple(f"option number {i}" for i in range(4))
    known = Question(
        str(row["question_id"]),
        "mmlu",
        "Which of these?",
        "A passage.",
        options,
        int(row["answer"]),
    )
    monkeypatch.setattr(questions, "questions_by_id", lambda _: {known.id: known})
    app = open_page("control", questions="MMLU", split="0", question=str(row["question"]))
    assert not app.exception
    said = words(app)
    assert "A passage.\n\nWhich of these?" in said
    assert "option number 3" in said
    assert said.count("chosen without") == 1
    assert said.count("chosen with it") == 1
    assert "Training neighbours of #" in said
    assert "Which of these?" in turned_table(app)["Question"].tolist()


def test_a_click_on_a_row_is_kept_in_the_link(synthetic_run: Path):
    """The chosen question travels with the address."""
    assert synthetic_run.is_dir()
    app = open_page("control", questions="MMLU")
    table = next(d for d in app.dataframe if "Turned" in d.value)
    app.session_state[table.key] = {"selection": {"rows": [1], "columns": [], "cells": []}}
    app.run()
    assert not app.exception
    assert link(app, "question").isdecimal()


def test_questions_that_are_not_here_are_named_by_id(synthetic_run: Path):
    """Without the package every number stays, and a sentence says what fetches the text."""
    row = first_turned(synthetic_run)
    app = open_page("control", questions="MMLU")
    assert not app.exception
    assert str(row["question_id"]) in turned_table(app)["Question"].tolist()
    assert "headwater corpus fetch" in words(app)


def test_a_card_opens_from_the_link(synthetic_run: Path):
    """A prototype behind a weight is one click and one link away."""
    assert synthetic_run.is_dir()
    app = open_page("control", card="3")
    assert not app.exception
    assert any(m.value.startswith("### #3") for m in app.markdown)


def test_a_run_without_controllers_names_the_command(synthetic_run: Path):
    """The page says what makes them, and still shows the twin if that was measured."""
    manifest = json.loads((synthetic_run / "run.json").read_text())
    for name in [n for n in manifest["tables"] if n.startswith("control_")]:
        del manifest["tables"][name]
    (synthetic_run / "run.json").write_text(json.dumps(manifest))
    app = open_page("control")
    assert not app.exception
    assert any(c.value == f"headwater control --run {synthetic_run.name}" for c in app.code)
    assert "minus dense twin" in words(app)


def test_a_dense_twin_has_nothing_to_control(synthetic_run: Path):
    """It is told apart from a run whose controllers are missing."""
    manifest = json.loads((synthetic_run / "run.json").read_text())
    (synthetic_run / "run.json").write_text(json.dumps({**manifest, "kind": "dense"}))
    app = open_page("control")
    assert not app.exception
    assert "dense twin" in words(app)
    assert not app.code
