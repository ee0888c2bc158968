"""The agreement study on a tiny model: its tables, its sketches, and going on when killed."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from engine.corpus.build import Corpus
from engine.corpus.shards import TokenShards
from engine.errors import ConfigError
from engine.influence.frame import draw_sequences
from engine.pipeline import attribution_agreement
from engine.pipeline.attribution_agreement import (
    AgreementStudy,
    agreement_summary,
    study_agreement,
    with_targets,
)
from engine.pipeline.attribution_scorers import FULL, Scorers
from engine.pipeline.coverage import StateSource
from engine.prism.attribution.statistics import row_statistics
from engine.prism.checkpoints import load_prism
from engine.store import open_run, read_table
from tests.engine.tiny_models import save_run


METHODS = ("path", "path@32", "errors~7", "full", "full+diagonal", "path+diagonal", "tfidf")
STUDY = AgreementStudy(pool=31, queries=5, length=12, top=11, methods=METHODS, seed=3)


class PlantedCorpus(Corpus):
    """Forty documents of two domains, every fourth held out."""

    path = Path("planted")
    documents = pd.DataFrame(
        {
            "document": range(40),
            "domain": ["a"] * 23 + ["b"] * 17,
            "split": ["validation" if i % 4 == 0 else "train" for i in range(40)],
        }
    )

    def __init__(self) -> None:
        pass


class PlantedShards(TokenShards):
    """Random tokens of the tiny vocabulary, 17 to 41 a document."""

    separator = 0

    def __init__(self) -> None:
        generator = np.random.default_rng(11)
        self.corpus = PlantedCorpus()
        self.lengths = generator.integers(17, 42, 40)
        self.tokens = [np.r_[0, generator.integers(1, 311, n)] for n in self.lengths]
        self.offsets = np.cumsum([0, *(self.lengths + 1)])

    def run(self, document: int) -> np.ndarray:
        return self.tokens[document]


@pytest.fixture
def run(house, monkeypatch) -> Path:
    """A run with a bank whose corpus is the planted one."""
    path = save_run(house / "tiny")
    model, _ = load_prism(path / "model")
    source = StateSource(model.eval(), PlantedShards(), 29, torch.device("cpu"))
    monkeypatch.setattr(attribution_agreement, "state_source", lambda *_: source)
    return path


def test_the_study_compares_every_method_with_every_reference(run):
    """Unquantised scores rank as the exact gradient does, conditioned or not; costs beside."""
    done = study_agreement(run, STUDY)
    table = read_table(done, "attribution_agreement")
    assert len(table) == 5 * (len(METHODS) * 2 - 2)
    rows = {(r["method"], r["reference"]): r for r in agreement_summary(done)}
    assert rows["path@32", "full"]["overlap_top"] == 1
    assert rows["path+diagonal", "full+diagonal"]["spearman"] > 0.99
    assert rows["tfidf", "full"]["overlap_top"] < 0.9
    costs = read_table(done, "attribution_costs").set_index("method")
    assert costs.loc["path@32", "bytes_a_sequence"] > costs.loc["path", "bytes_a_sequence"] > 0
    assert costs.loc["errors~7", "bytes_a_sequence"] < costs.loc["path@32", "bytes_a_sequence"]
    assert costs.loc["path", "bits"] == 8
    assert pd.isna(costs.loc["tfidf", "bits"])
    facts = done.manifest["stages"]["attribution_agreement"]
    assert facts["coverage"]["tokens"] == 31 * 12


def test_a_killed_study_goes_on_after_the_last_method(run, monkeypatch):
    """What was scored is not scored again, and the table is that of an unbroken study."""
    whole = read_table(study_agreement(run, STUDY), "attribution_agreement")
    scored: list[str] = []

    def score(self: Scorers, name: str, original=Scorers.score):
        scored.append(name)
        if name == "full" and scored.count("full") == 1:
            raise KeyboardInterrupt
        return original(self, name)

    monkeypatch.setattr(Scorers, "score", score)
    other = AgreementStudy(**{**STUDY.__dict__, "methods": ("path", "full", "tfidf")})
    with pytest.raises(KeyboardInterrupt):
        study_agreement(run, other)
    again = read_table(study_agreement(run, other), "attribution_agreement")
    assert scored == ["path", "full", "full", "tfidf"]
    known = whole.merge(again, on=["method", "reference", "query"], suffixes=("", "_again"))
    assert len(known) == len(again) == 5 * 2
    np.testing.assert_array_equal(known["overlap_top"], known["overlap_top_again"])
    np.testing.assert_array_equal(known["spearman"], known["spearman_again"])
    study_agreement(run, other)
    assert len(scored) == 4


def test_a_sketch_compares_projected_errors(run):
    """S e of every token by hand, S drawn as said."""
    model, _ = load_prism(run / "model")
    pool, queries = (
        draw_sequences(PlantedShards(), n, length=12, split=split, seed=3)
        for n, split in ((13, "train"), (3, "validation"))
    )
    found = Scorers(model.eval(), pool, queries).score("errors~7")["errors~7"].scores
    generator = torch.Generator().manual_seed(0)
    sketch = torch.randn((7, model.config.d_model), generator=generator) / 7**0.5
    sides = [row_statistics(model, rows) for rows in (queries, pool)]
    expected = np.zeros((3, 13))
    for q in range(len(sides[0].row)):
        for t in range(len(sides[1].row)):
            product = float((sketch @ sides[0].errors[q]) @ (sketch @ sides[1].errors[t]))
            for a, i in zip(sides[0].activations[q], sides[0].indices[q], strict=True):
                shared = float(sides[1].activations[t][sides[1].indices[t] == i].sum())
                expected[sides[0].row[q], sides[1].row[t]] += float(a) * shared * product
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3 * np.abs(expected).max())


def test_the_exact_gradients_come_in_one_pass(run):
    """Asked for one of them, all three are given."""
    model, _ = load_prism(run / "model")
    pool = draw_sequences(PlantedShards(), 7, length=12, split="train", seed=3)
    assert set(Scorers(model.eval(), pool, pool[:2]).score("full+diagonal")) == set(FULL)


def test_targets_are_the_last_tokens_of_a_query():
    """Two of eleven; None leaves all."""
    queries = draw_sequences(PlantedShards(), 3, length=12, split="validation", seed=3)
    last = with_targets(queries, 2)
    assert last.predicted.sum(1).tolist() == [2, 2, 2]
    assert last.predicted[:, -2:].all()
    assert with_targets(queries, None) is queries


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"top": 32}, "top is 32"),
        ({"methods": ("path@5",)}, "path@5"),
        ({"methods": ("magic",)}, "no method magic"),
        ({"target_tokens": 12}, "target_tokens is 12"),
    ],
)
def test_settings_that_cannot_be_used_are_refused(change, says):
    """Before anything is loaded."""
    with pytest.raises(ConfigError, match=says):
        AgreementStudy(**{**STUDY.__dict__, **change})


def test_methods_that_cannot_be_compared_are_said(run):
    """No reference among them: said, and the run keeps what it had."""
    with pytest.raises(ConfigError, match="name one of full"):
        study_agreement(run, AgreementStudy(**{**STUDY.__dict__, "methods": ("tfidf",)}))
    assert not open_run(run).has("attribution_agreement")
