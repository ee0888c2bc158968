"""What a run lacks, as the Overview lists it."""

from pathlib import Path

from dashboard.components.overview_parts import missing_rows
from engine import schema
from engine.store import Run


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


def test_a_dense_twin_misses_nothing_of_a_bank():
    """It has no prototypes to index, study or control."""
    held = ("documents", "training_log", "evaluations", "validation_loss")
    assert missing_rows(run_with("dense", *held)) == []
