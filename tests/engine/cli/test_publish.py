"""`headwater publish`: a copy to share, and what it refuses."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from engine.cli import app as command
from engine.store import check_run, open_run, read_table


def publish(*arguments: str):
    return CliRunner().invoke(command.app, ["publish", "--run", "synthetic", *arguments])


@pytest.fixture
def modelled(synthetic_run: Path) -> Path:
    """The synthetic run with a folder where its model would be."""
    (synthetic_run / "model").mkdir(exist_ok=True)
    (synthetic_run / "model" / "config.json").write_text("{}", encoding="utf-8")
    return synthetic_run


@pytest.mark.usefixtures("modelled")
def test_a_copy_keeps_the_shards_it_was_told_and_every_other_table(house: Path):
    """Two of three files of activations stay behind; the manifest says how many there were."""
    target = house / "share" / "mine"
    done = publish("--to", str(target), "--shards", "1", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["path"] == str(target)
    source, copy = open_run("synthetic"), open_run(target)
    assert check_run(copy) == []
    assert set(copy.tables) == set(source.tables)
    assert len(copy.files("prototype_activations")) == 1
    whole = len(source.files("prototype_activations"))
    assert copy.manifest["shipped_shards"]["indexed"]["prototype_activations"] == whole == 3
    assert read_table(copy, "prototypes").equals(read_table(source, "prototypes"))


@pytest.mark.usefixtures("modelled")
def test_without_a_number_every_shard_is_copied(house: Path):
    """The default loses nothing."""
    assert publish("--to", str(house / "mine")).exit_code == 0
    assert len(open_run(house / "mine").files("prototype_activations")) == 3


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--to", "copy", "--round", "--shards", "1"], "no activations"),
        (["--to", "{itself}"], "the run itself"),
    ],
)
def test_what_cannot_be_published_is_said_in_a_sentence(modelled: Path, arguments, why):
    """Neither a damaged source nor an option that is silently dropped."""
    done = publish(*(text.replace("{itself}", str(modelled)) for text in arguments))
    assert done.exit_code == 2
    assert why in done.stderr
    assert check_run(open_run("synthetic"), deep=False) == []


@pytest.mark.usefixtures("synthetic_run")
def test_a_run_without_a_model_is_not_published(house: Path):
    """Its pages would have nothing to ask."""
    for extra in ([], ["--round"]):
        done = publish("--to", str(house / "mine"), *extra)
        assert done.exit_code == 2
        assert "no model to ship" in done.stderr
    assert not (house / "mine").exists()
