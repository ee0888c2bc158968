"""`headwater models embed` as a user types it."""

import json

import pytest
from typer.testing import CliRunner

from engine.cli.app import app
from tests.engine.able.tiny_causal import SHORT, save_tiny


def _call(*arguments: str):
    return CliRunner().invoke(app, ["models", "embed", *arguments])


@pytest.fixture
def typed(house):
    """A catalogue of one model and a folder that is not there, and a file of probes."""
    save_tiny(house / "one")
    (house / "all.csv").write_text("path\none\nmissing\n")
    rows = [
        {"question": p.prompt, "choices": list(p.options), "ans_idx": p.answer} for p in SHORT[:3]
    ]
    (house / "mine.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return house


def test_a_catalogue_is_embedded_and_reported(typed):
    """What failed stands with its reason, and the run opens."""
    base = ("--catalogue", str(typed / "all.csv"), "--run", "map", "--device", "cpu")
    probes = ("--probes", str(typed / "mine.jsonl"), "--dimensions", "17")
    planned = _call(*base, *probes, "--dry-run", "--json")
    assert planned.exit_code == 0, planned.output
    rows = json.loads(planned.stdout)
    assert [row["state"] for row in rows] == ["to embed", "to embed"]
    assert rows[0]["memory"] > 0
    assert not (typed / "cache" / "map").exists()
    done = _call(*base, *probes, "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["embedded"] == ["one"]
    assert "missing" in found["failed"]["missing"]
    again = _call(*base, "--dimensions", "17")  # the probes are the run's own
    assert again.exit_code == 0, again.output
    assert "1 embedded, 1 failed, 3 probes" in again.stdout
    shown = _call(*base, "--dimensions", "17", "--dry-run")
    assert "embedded" in shown.stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--probes", "nonsense"), "no probes called 'nonsense'"),
        (("--style", "rhymes"), "letters, texts"),
        (("--part", "half"), "write I/N"),
        (("--dtype", "int8"), "float32, bfloat16, float16"),
        (("--probes", "facts:3", "--dimensions", "0"), "n_dimensions is 0"),
    ],
)
def test_bad_input_is_one_sentence(typed, arguments, sentence):
    """No traceback, and what to do."""
    done = _call("--catalogue", str(typed / "all.csv"), "--run", "map", *arguments)
    assert done.exit_code != 0
    assert sentence in " ".join(done.output.split())
    assert "Traceback" not in done.output
