"""`headwater heads monitor` and `influence` as a user types them."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from engine.cli import app as command
from engine.config import CorpusConfig
from engine.corpus.build import build_corpus
from tests.assertions import assert_plain_sentence
from tests.engine.tiny_models import CONTEXT, save_dense


LENGTH = CONTEXT - 2


@pytest.fixture
def model(house: Path) -> str:
    return str(save_dense(house / "step-31"))


@pytest.fixture
def corpus(house: Path) -> str:
    (house / "texts").mkdir()
    for number in range(30):
        text = f"{number}. the dog sleeps by the river bank\n" * (3 + number % 5)
        (house / "texts" / f"{number:02d}.txt").write_text(text, encoding="utf-8")
    config = CorpusConfig(preset=None, path=str(house / "texts"), validation_share=0.3)
    return build_corpus(config).name


def run(*arguments: str):
    return CliRunner().invoke(command.app, ["heads", *arguments])


def test_monitor_prints_a_row_a_checkpoint_and_head_and_an_icl_score(model: str, corpus: str):
    """The contract of --json; a table without it."""
    settings = ["--model", model, "--probe-sequences", "3", "--probe-length", "14", "--rows", "5"]
    done = run("monitor", *settings, "--corpus", corpus, "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert len(found["rows"]) == 2 * 3
    assert set(found["rows"][0]) == {
        "checkpoint",
        "layer",
        "head",
        "prefix_matching",
        "previous_token",
        "duplicate_token",
    }
    assert set(found["icl"]) == {"step-31"}
    assert isinstance(found["icl"]["step-31"], float)
    assert found["losses"][0]["step"] == 31
    shown = run("monitor", *settings, "--corpus", corpus)
    assert "step-31" in shown.stdout
    assert "ICL: mean loss of tokens" in shown.stdout
    assert shown.stdout.strip().endswith("heads-step-31")


def test_influence_prints_one_head_or_a_list_of_all(model: str, corpus: str):
    """Exactly the contract; the samples' ends with the token that carries most, in a table."""
    settings = ["--model", model, "--corpus", corpus, "--order", "corpus"]
    settings += ["--context", str(LENGTH), "--rows-a-step", "4", "--fit-samples", "8"]
    settings += ["--samples", "40"]
    settings += ["--probe-sequences", "3", "--probe-length", "14", "--top", "3"]
    done = run("influence", *settings, "--all", "--json")
    assert done.exit_code == 0, done.output
    every = json.loads(done.stdout)
    assert [one["head"] for one in every] == ["0.0", "0.1", "0.2", "1.0", "1.1", "1.2"]
    one = json.loads(run("influence", *settings, "--head", "1.2", "--json").stdout)
    assert one == every[5]
    assert list(one) == ["head", "sign", "n", "top", "bottom", "tail"]
    assert len(one["top"]) == len(one["bottom"]) == 3
    shown = run("influence", *settings, "--head", "1.2").stdout
    assert "Head 1.2: " in shown
    assert "positive raises the head's score" in shown
    assert "[" in shown


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["influence", "--corpus", "CORPUS"], "No head is named"),
        (["influence", "--corpus", "CORPUS", "--head", "first"], "names no head"),
        (["influence", "--corpus", "CORPUS", "--head", "0.0"], "--order corpus"),
        (
            ["influence", "--corpus", "CORPUS", "--head", "5.0", "--order", "corpus"],
            "no head 5.0; this model has layers 0 to 1 with heads 0 to 2",
        ),
        (["influence", "--corpus", "nowhere", "--head", "0.0"], "No corpus called nowhere"),
        (["influence", "--corpus", "CORPUS", "--head", "0.0", "--steps", "9"], "FIRST:LAST"),
        (["monitor", "--corpus", "nowhere"], "No corpus called nowhere"),
        (["monitor", "--checkpoint", "7"], "has no checkpoint '7'"),
        (["monitor", "--revisions", "step1,step2"], "which has no revisions"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(
    words: list[str], sentence: str, model: str, corpus: str
):
    """On stderr, with exit code 2 and nothing on stdout."""
    typed = [corpus if word == "CORPUS" else word for word in words]
    done = run(*typed, "--model", model)
    assert done.exit_code == 2
    assert done.stdout == ""
    assert sentence in done.stderr
    assert_plain_sentence(done.stderr.strip().splitlines()[-1])
