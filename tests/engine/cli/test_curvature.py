"""`headwater curvature`: what it asks of the stage, what it prints, what it refuses."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from engine.cli import app as command
from engine.pipeline import curvature
from engine.store import Run, open_run
from tests.assertions import assert_plain_sentence
from tests.engine.pipeline.test_curvature import bare_run


def ask(*arguments: str):
    return CliRunner().invoke(command.app, ["curvature", "--run", "synthetic", *arguments])


@pytest.fixture
def asked(synthetic_run: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the stage is called with, in place of measuring a run that has no model."""
    calls: list[Any] = []

    def stage(run: str, arms: list[str], study: Any, **_: Any) -> Run:
        calls.append((run, arms, study))
        return open_run(synthetic_run)

    monkeypatch.setattr(curvature, "study_curvature", stage)
    return calls


def test_arms_are_a_list_or_patterns_and_settings_reach_the_stage(asked: list[Any]):
    """Spaces and an empty part between commas mean nothing."""
    done = ask("--arms", "a-*, b,,", "--tokens", "5003", "--damping", "0.3")
    assert done.exit_code == 0, done.output
    ((run, arms, study),) = asked
    assert (run, arms) == ("synthetic", ["a-*", "b"])
    assert (study.tokens, study.damping) == (5003, 0.3)
    assert "bank-common" in done.stdout
    assert done.stdout.splitlines()[-1].endswith("synthetic")


@pytest.mark.usefixtures("asked")
def test_the_json_holds_every_figure_with_the_facts_of_its_arm():
    """A script finds weights and signs of collapse beside each measure; what lacks is null."""
    done = ask("--json")
    rows = json.loads(done.stdout)["curvature"]
    assert len(rows) == 11 * 6  # the run and ten arms, six terms each
    assert {"coupling", "condition_number", "participation_ratio", "tokens"} <= set(rows[0])
    assert [row["local_share"] for row in rows if row["term"] == "cousage"] == [None] * 11


def test_bad_input_is_one_sentence_before_anything_is_loaded(synthetic_run: Path, house: Path):
    """A number of tokens, a damping, an arm or a run that cannot be."""
    assert synthetic_run.is_dir()
    mine = ["--run", bare_run(house, "mine")]
    for arguments, said in (
        ([*mine, "--tokens", "0"], "tokens is 0"),
        ([*mine, "--tokens", "99"], "ask for at least 8,192"),
        ([*mine, "--damping", "-1"], "damping is -1"),
        ([*mine, "--arms", "nothing-*"], "No run matches 'nothing-*'"),
        ([*mine, "--arms", "mine"], "names 0 runs with a bank"),
        (["--run", "synthetic"], "does not say with which context, weights"),
        (["--run", "absent"], "There is no run 'absent'"),
    ):
        done = ask(*arguments)
        assert done.exit_code != 0
        assert said in done.output
        assert_plain_sentence(done.output.strip().removeprefix("Error: "))
