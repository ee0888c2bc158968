"""What a run lacks, as the Overview lists it."""

import json
from pathlib import Path

from dashboard import text
from dashboard.components import overview_parts
from dashboard.components.overview_parts import missing_rows
from engine import schema
from engine.store import Run
from tests.dashboard.live_pages import open_page, words


def run_with(kind: str, *tables: str) -> Run:
    return Run("first", Path("first"), {"kind": kind, "tables": {name: {} for name in tables}})


def test_each_command_is_listed_once():
    """A reader runs commands, not tables: twenty tables of one stage are one row."""
    rows = missing_rows(run_with("prism"))
    commands = [command for _, command in rows]
    assert len(commands) == len(set(commands))
    assert len(rows) < len(schema.TABLES) / 2
    control = next(meaning for meaning, command in rows if command.startswith("headwater control"))
    assert control == f"{schema.TABLES['control_questions'].meaning}, and 5 more"


def test_a_command_with_one_table_left_says_that_table_alone():
    """Nothing is counted that is there."""
    held = [n for n in schema.TABLES if n.startswith("control_") and n != "control_weights"]
    rows = {command: meaning for meaning, command in missing_rows(run_with("prism", *held))}
    assert rows["headwater control --run first"] == schema.TABLES["control_weights"].meaning


def test_a_pool_in_the_cache_beside_a_shipped_run_is_not_missing(monkeypatch):
    """It was built here, so the command that builds it must not be asked for again."""
    command = "headwater attribution-index --run first"
    assert command in dict(map(reversed, missing_rows(run_with("prism"))))
    monkeypatch.setattr(overview_parts, "has_pool", lambda _run: True)
    assert command not in dict(map(reversed, missing_rows(run_with("prism"))))


def test_a_dense_twin_misses_nothing_of_a_bank():
    """It has no prototypes to index, study or control."""
    held = ("documents", "training_log", "evaluations", "validation_loss")
    assert missing_rows(run_with("dense", *held)) == []


def test_every_way_of_reading_a_bank_has_a_door(synthetic_run: Path):
    """A page that the Overview does not lead to is not found."""
    assert synthetic_run.is_dir()
    assert [path for path, *_ in text.DOORS] == [
        "prototypes",
        "prompt",
        "attribution",
        "suppression",
    ]
    app = open_page("overview")
    assert not app.exception
    said = words(app)
    assert all(sentence in said for _, _, sentence, _ in text.DOORS)


def test_a_run_without_numbers_says_so(synthetic_run: Path):
    """A heading with nothing under it looks broken, and so does a dash beside a dash."""
    manifest = json.loads((synthetic_run / "run.json").read_text())
    kept = {name: table for name, table in manifest["tables"].items() if name == "training_log"}
    (synthetic_run / "run.json").write_text(json.dumps({**manifest, "tables": kept}))
    app = open_page("overview")
    assert not app.exception
    said = words(app)
    assert "None of them has been measured on this run" in said
    assert "– kept" not in said


def test_a_study_by_retraining_shows_its_own_numbers(synthetic_run: Path):
    """It has no bank to measure, but it says how far attribution can be trusted."""
    assert synthetic_run.is_dir()
    assert "LDS of" in words(open_page("overview"))
