"""`headwater models relate | neighbours` as a user types them."""

import json

import pytest
from typer.testing import CliRunner

from engine.cli.app import app
from engine.pipeline.synthetic_map import write_synthetic_models


def _call(*arguments: str):
    return CliRunner().invoke(app, ["models", *arguments])


@pytest.fixture
def named(house):
    """A synthetic map called `map`."""
    write_synthetic_models(house / "cache" / "map")
    return house


def test_neighbours_are_printed_for_scripts_and_for_people(named):
    """The shape that scripts rely on, and the caveat for people."""
    done = _call("neighbours", "root-1", "--run", "map", "--count", "3", "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["model"] == "root-1"
    assert len(found["neighbours"]) == 3
    assert set(found["neighbours"][0]) == {
        "model", "cosine", "percentile_unrelated", "verdict", "known_relation"
    }  # fmt: skip
    shown = _call("neighbours", "root-1", "--run", "map")
    assert "root-1-mild_sft" in shown.stdout
    assert "not proof of derivation" in shown.stdout


def test_two_models_are_compared(named):
    """As JSON and as a table."""
    done = _call("relate", "root-0", "root-1", "--run", "map", "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["known_relation"] == "twin"
    assert found["comparisons"]
    shown = _call("relate", "root-0", "root-1", "--run", "map")
    assert "root-1 is to root-0: twin" in shown.stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("relate", "root-0", "--run", "map"), "Name two models, or none"),
        (("relate", "root-0", "nobody", "--run", "map"), "no embedding of 'nobody'"),
        (("neighbours", "root-0", "--run", "map", "--variant", "x"), "no variant 'x'"),
        (("relate", "--run", "gone"), "gone"),
    ],
)
def test_bad_input_is_one_sentence(named, arguments, sentence):
    """No traceback for what a user can cause."""
    done = _call(*arguments)
    assert done.exit_code != 0
    assert sentence in " ".join(done.output.split())
    assert "Traceback" not in done.output
