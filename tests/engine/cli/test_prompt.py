"""`decompose` and `generate` on a `save_pretrained` folder: the shapes that scripts rely on."""

import json

import pytest
from typer.testing import CliRunner

from engine.cli import app as command
from tests.engine.tiny_models import save_prism


TEXT = "the cat sat on the mat"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A tiny prototype model and its tokenizer."""
    return str(save_prism(tmp_path_factory.mktemp("model")))


def run(*arguments):
    return CliRunner().invoke(command.app, list(arguments))


def test_a_decomposition_has_the_contracts_shape_and_adds_up(folder):
    """Slices and residual are the logit, to float32 rounding."""
    done = run("decompose", TEXT, "--run", folder, "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    names = ["tokens", "position", "target", "logit", "slices", "residual", "gap"]
    assert list(found) == names
    assert "".join(found["tokens"]) == TEXT
    assert found["position"] == len(found["tokens"]) - 1
    assert all(list(s) == ["prototype", "label", "activation", "logit"] for s in found["slices"])
    terms = [s["logit"] for s in found["slices"]] + [found["residual"]]
    assert sum(terms) == pytest.approx(found["logit"], abs=1e-4 * sum(map(abs, terms)))
    assert found["gap"] <= 1e-4


def test_a_decomposition_is_drawn_as_a_table(folder):
    """The residual and the gap stand below the slices."""
    done = run("decompose", TEXT, "--run", folder, "--position", "0")
    assert "residual" in done.stdout
    assert "gap" in done.stdout


def test_a_generation_has_the_contracts_shape(folder, monkeypatch):
    """Equal seeds give equal texts; suppressing all prototypes touches every token."""
    from engine.live import LiveEngine
    from engine.live.results import Scores

    scores = Scores(classifier=(0.25, 0.5), wordlist=None, missing=("No word list.",))
    monkeypatch.setattr(LiveEngine, "score", lambda *_: scores)
    n_prototypes = LiveEngine.open(folder).n_prototypes
    everything = ",".join(map(str, range(n_prototypes)))
    words = ["generate", TEXT, "--run", folder, "--tokens", "5", "--seed", "3", "--json"]
    plain, off = (
        json.loads(run(*words, *more).stdout) for more in ([], ["--suppress", everything])
    )
    names = ["baseline", "suppressed", "baseline_score", "suppressed_score", "tokens_touched"]
    assert list(plain) == list(off) == names
    assert plain["baseline"] == plain["suppressed"] == off["baseline"]
    assert (plain["tokens_touched"], off["tokens_touched"]) == (0, 5)
    assert (off["baseline_score"], off["suppressed_score"]) == (0.25, 0.5)


def test_without_a_scorer_the_texts_come_all_the_same(folder, monkeypatch):
    """Scores are null, and stderr says what to install."""
    from engine.live import LiveEngine
    from engine.live.results import Scores

    missing = Scores(None, None, ("Install the scorer.",))
    monkeypatch.setattr(LiveEngine, "score", lambda *_: missing)
    done = run("generate", TEXT, "--run", folder, "--tokens", "2", "--json")
    assert json.loads(done.stdout)["baseline_score"] is None
    assert "Install the scorer." in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ["decompose", ""],
        ["decompose", "a\0b"],
        ["decompose", TEXT, "--position", "999"],
        ["decompose", TEXT, "--target", "no such token at all"],
        ["decompose", TEXT, "--device", "abacus"],
        ["generate", ""],
        ["generate", TEXT, "--strength", "2"],
        ["generate", TEXT, "--suppress", "1;2"],
        ["generate", TEXT, "--suppress", "9" * 5_003],
        ["generate", TEXT, "--suppress", "1", "--concept", "NSFW"],
        ["generate", TEXT, "--suppress", "999999"],
        ["generate", TEXT, "--concept", "NSFW"],
        ["generate", TEXT, "--temperature", "-1"],
    ],
    ids=lambda words: repr(words)[:60],
)
def test_bad_prompts_and_settings_end_in_one_sentence(folder, words):
    """Exit code 2, one line on stderr, nothing on stdout."""
    done = run(*words, "--run", folder)
    assert done.exit_code == 2, done.output
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize("text", ["<script>alert(1)</script>", "שלום עולם", "👩‍👩‍👧 hi", "x"])
def test_odd_texts_are_decomposed(folder, text):
    """Emoji, right-to-left text, markup and a single token are texts."""
    done = run("decompose", text, "--run", folder, "--json")
    assert done.exit_code == 0, done.output
    assert "".join(json.loads(done.stdout)["tokens"]) == text
