"""`headwater control` and `headwater study downstream` as a user types them."""

import json

import pytest
from typer.testing import CliRunner

from engine.cli.app import app
from tests.engine.tiny_models import save_run


def _call(*arguments: str):
    return CliRunner().invoke(app, list(arguments))


@pytest.fixture
def typed(house):
    """A run and a file of questions."""
    save_run(house / "cache" / "mine")
    rows = [
        {"question": f"dog {i}", "options": ["the bank", "a river"], "answer": i % 2}
        for i in range(101)
    ]
    path = house / "dogs.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return str(path)


@pytest.mark.slow
def test_control_prints_results_and_gains_as_json(typed):
    """What a script reads is what the tables hold."""
    options = ("--sets", typed, "--features", "prototypes", "--seeds", "2", "--json")
    done = _call("control", "--run", "mine", *options)
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert {row["condition"] for row in found["results"]} == {"none", "per-byte", "prototypes"}
    assert {row["set"] for row in found["gains"]} == {"dogs", "mean"}
    assert found["sae"] is None
    shown = _call("control", "--run", "mine", *options[:-1])
    assert "prototypes-none" in shown.stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("control", "--run", "mine", "--sets", "nonsense"), "there are mmlu"),
        (("control", "--run", "mine", "--sets", "mmlu"), "headwater corpus fetch"),
        (("control", "--run", "nobody"), "no run 'nobody'"),
        (("control", "--run", "mine", "--features", "words"), "prototypes, sae, both"),
        (("study", "downstream", "--run", "mine", "--dense-run", "nobody"), "no run 'nobody'"),
    ],
)
def test_bad_input_is_one_sentence(typed, arguments, sentence):
    """No traceback, and what to do."""
    done = _call(*arguments)
    assert done.exit_code != 0
    assert sentence in " ".join(done.output.split())
    assert "Traceback" not in done.output
