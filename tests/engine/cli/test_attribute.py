"""`attribution-index` and `attribute` as they are typed."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from engine.cli.app import app
from engine.config import CorpusConfig
from engine.corpus.build import build_corpus
from engine.store import RunWriter
from tests.engine.tiny_models import save_prism


SEQUENCES = 11


@pytest.fixture
def run(house):
    """A run whose corpus is here."""
    generator = np.random.default_rng(0)
    folder = house / "texts" / "one"
    folder.mkdir(parents=True)
    for number in range(29):
        words = generator.choice(["the", "quick", "brown", "fox", "dog", "river", "bank"], 17)
        (folder / f"{number:02d}.txt").write_text(" ".join(words))
    corpus = build_corpus(CorpusConfig(preset=None, path=str(house / "texts")))
    identity = {"corpus": {"name": corpus.name, "fingerprint": corpus.fingerprint}}
    path = house / "cache" / "mine"
    writer = RunWriter.create(path, name="mine", kind="prism", identity=identity)
    writer.begin_stage("train", {})
    save_prism(path / "model")
    writer.finish_stage("train", {})
    return path


def call(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def test_texts_are_stored_and_a_prediction_is_traced_to_them(run):
    """The JSON is the contract's; what stands beside it is named after it."""
    made = call(
        "attribution-index", "--run", "mine", "--sequences", SEQUENCES, "--length", 13, "--json"
    )
    assert made.exit_code == 0, made.output
    facts = json.loads(made.stdout)
    assert (facts["sequences"], facts["tokens"]) == (SEQUENCES, SEQUENCES * 12)
    asked = call("attribute", "the quick dog", "--run", "mine", "--top", 3, "--json")
    assert asked.exit_code == 0, asked.output
    found = json.loads(asked.stdout)
    assert list(found)[:4] == ["method", "target", "seconds", "results"]
    assert found["method"] == "cached"
    assert found["variant"] == "path+diagonal+unit"
    assert found["seconds"] == pytest.approx(sum(found["seconds_by_stage"].values()))
    assert [result["rank"] for result in found["results"]] == [1, 2, 3]
    keys = {"rank", "document", "position", "score", "prototypes", "snippet"}
    assert all(set(result) == keys for result in found["results"])
    scores = [result["score"] for result in found["results"]]
    assert scores == sorted(scores, reverse=True)
    assert all(result["snippet"] for result in found["results"])
    shares = [share for _, share in found["results"][0]["prototypes"]]
    assert [abs(share) for share in shares] == sorted(map(abs, shares), reverse=True)
    other = call("attribute", "the quick dog", "--run", "mine", "--method", "tfidf", "--json")
    assert json.loads(other.stdout)["method"] == "tfidf"
    assert json.loads(other.stdout)["results"][0]["prototypes"] == []
    shown = call("attribute", "the quick dog", "--run", "mine", "--variant", "errors+unit")
    assert shown.exit_code == 0, shown.output
    assert "by errors+unit over 11 sequences" in shown.stdout


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("attribute", "the", "--run", "mine"), "has no attribution pool; make it with"),
        (("attribute", "the", "--run", "nothing"), "There is no run"),
        (("attribute", "the", "--method", "knn", "--variant", "path"), "has no meaning beside"),
        (("attribution-index", "--run", "mine", "--bits", "5"), "--bits is 5; choose 8 or 4"),
        (("attribution-index", "--run", "mine", "--all", "--sequences", "3"), "no meaning beside"),
        (("attribution-index", "--run", "mine", "--sequences", "99999"), "ask for 1 to"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(run, words, says):
    """No traceback, and a code that is not 0."""
    done = call(*words)
    assert done.exit_code != 0
    text = " ".join((done.output + getattr(done, "stderr", "")).split())
    assert says in text or says in str(done.exception)
    assert "Traceback" not in text
