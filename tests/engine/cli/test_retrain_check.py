"""`retrain-check`: what is refused before anything is trained, and what is said."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from engine.cli import app as command
from engine.cli.retrain_check import _row
from engine.config import PROJECT_ROOT
from engine.pipeline.retraining_settings import RetrainConfig
from engine.store import read_json


def run(*arguments: str):
    return CliRunner().invoke(command.app, ["retrain-check", *arguments])


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch):
    """A corpus seems to be built; opening a study ends the command."""
    opened: list[RetrainConfig] = []

    def open_study(config: RetrainConfig, *_: object):
        opened.append(config)
        raise KeyboardInterrupt

    monkeypatch.setattr("engine.corpus.build.open_corpus", lambda _: None)
    monkeypatch.setattr("engine.pipeline.retraining.open_study", open_study)
    return opened


def test_an_unknown_method_lists_the_known_ones(built: list[RetrainConfig]):
    """Before anything is trained."""
    result = run("--methods", "path,oracle")
    assert result.exit_code == 2
    assert "There is no method oracle" in result.stderr
    assert "ekfac" in result.stderr
    assert not built


def test_no_method_at_all_is_refused(built: list[RetrainConfig]):
    """A comma names nothing."""
    result = run("--methods", ",")
    assert result.exit_code == 2
    assert "names no method" in result.stderr
    assert not built


def test_few_subsets_are_warned_of(built: list[RetrainConfig]):
    """The warning stands on stderr and the study goes on."""
    result = run("--subsets", "7")
    assert "7 subsets are fewer than 50: intervals will be wide." in result.stderr
    assert built[0].subsets == 7
    assert "fewer" not in run("--subsets", "50").stderr


def test_a_corpus_that_is_not_built_is_said(house: Path):
    """In one sentence, with the command."""
    result = run("--corpus", "nowhere")
    assert result.exit_code == 2
    assert "headwater corpus build nowhere" in result.stderr


def test_the_settings_file_says_what_the_defaults_do():
    """The study that ships is that of docs/study.json, and of the command without options."""
    listed = run("--config", str(PROJECT_ROOT / "docs" / "study.json"), "--dry-run")
    assert listed.exit_code == 0
    assert listed.stdout == run("--dry-run").stdout
    assert read_json(PROJECT_ROOT / "docs" / "study.json")["subsets"] == RetrainConfig().subsets


def test_a_row_shows_both_scopes_and_what_is_missing():
    """A method without planted questions has a dash."""
    figures = {"lds": 0.25, "low": 0.125, "high": 0.5, "subset_low": None, "subset_high": None}
    row = {"method": "path", "all": figures, "domain": figures, "planted": {}}
    assert _row(row) == ("path", "0.25", "0.125 to 0.5", "0.25", "0.125 to 0.5", "–")
