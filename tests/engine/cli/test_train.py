"""`train` and `retrofit`: names of runs, and what they say at the end."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from engine.cli import app as command
from engine.cli.train import default_name
from engine.config import TrainConfig, cache_root


@dataclass(frozen=True)
class Trained:
    """What `train_run` gives back, as far as the command reads it."""

    path: Path
    kind: str = "prism"

    @property
    def name(self) -> str:
        return self.path.name


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names that were trained under; nothing is trained."""
    asked: list[str] = []

    def train_run(_: TrainConfig, name: str, **__: Any) -> Trained:
        asked.append(name)
        return Trained(Path(name) if "/" in name else cache_root() / name)

    monkeypatch.setattr("engine.corpus.build.open_corpus", lambda _: None)
    monkeypatch.setattr("engine.pipeline.training.train_run", train_run)
    return asked


@pytest.mark.parametrize(("typed", "named"), [("new", "new"), ("/far/new", "/far/new")])
def test_the_next_command_finds_the_run(names, typed, named):
    """A run outside the cache is found by its folder alone, not by its name."""
    done = CliRunner().invoke(command.app, ["train", "--run", typed])
    assert names == [typed]
    assert f"headwater index --run {named}\n" in done.stdout


def test_a_run_takes_a_name_of_its_own_only_where_none_is_given(names):
    """An empty name is a mistake of a script, which the engine refuses."""
    CliRunner().invoke(command.app, ["train"])
    CliRunner().invoke(command.app, ["train", "--run", ""])
    assert names == [default_name(TrainConfig()), ""]
