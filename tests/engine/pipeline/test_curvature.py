"""The stage over trained runs, its comparison of arms, and what it refuses."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from engine.config import CorpusConfig, LossWeights, TrainConfig, resolved
from engine.corpus.build import build_corpus
from engine.errors import ConfigError, UnsupportedModel
from engine.pipeline import curvature
from engine.pipeline.curvature import study_curvature
from engine.pipeline.curvature_arms import Series
from engine.pipeline.curvature_cousage import category_table, pair_table
from engine.pipeline.curvature_run import CurvatureStudy, kept_ranks
from engine.pipeline.tradeoff import arm_weights, train_arms
from engine.pipeline.training import train_run
from engine.prism.curvature.sums import CurvatureSums, Head
from engine.store import RunWriter, check_run, open_run, read_table
from tests.assertions import assert_close, assert_plain_sentence


TOPICS = ("the river runs to the sea. ", "def f(x): return x + 1\n", "one two three four five ")
K, ACTIVE, D, TOKENS, VOCAB = 13, 3, 5, 211, 7


@pytest.fixture
def corpus(house: Path) -> str:
    """A folder of sixty short files on three topics, built."""
    folder = house / "texts"
    folder.mkdir()
    for number in range(60):
        text = f"{number} " + TOPICS[number % 3] * (5 + number)
        (folder / f"{number:02d}.txt").write_text(text, encoding="utf-8")
    built = build_corpus(CorpusConfig(preset=None, path=str(folder), validation_share=0.2))
    return str(built.path)


def config(corpus: str, **changes) -> TrainConfig:
    base = TrainConfig(
        corpus=corpus,
        n_layers=1,
        d_model=24,
        n_heads=3,
        vocab_size=300,
        context=17,
        n_prototypes=19,
        n_active=4,
        batch_size=5,
        steps=8,
        bank_start=4,
        bank_ramp=2,
        warmup=2,
        eval_every=4,
        eval_rows=6,
        checkpoint_every=3,
        device="cpu",
    )
    return dataclasses.replace(base, **changes)


STUDY = CurvatureStudy(tokens=500)


@pytest.mark.slow
def test_a_series_is_measured_resumed_and_kept(corpus: str, monkeypatch: pytest.MonkeyPatch):
    """Stopped after an arm, the stage goes on to the tables it would have had; then it is kept."""
    settings = config(corpus)
    run = train_run(settings, "trunk")
    train_arms(run.path, settings, prefix="trunk", arms=arm_weights((0.0, 0.5, 3.0)))
    asked = []

    def measure(run: Any, *rest: Any) -> Any:
        asked.append(run.name)
        if len(asked) == 2:
            raise KeyboardInterrupt
        return original(run, *rest)

    original = curvature.measure_run
    with monkeypatch.context() as patch:
        patch.setattr(curvature, "measure_run", measure)
        with pytest.raises(KeyboardInterrupt):
            study_curvature("trunk", ["trunk-arm-*"], STUDY)
        first = asked[0]
        done = study_curvature("trunk", ["trunk-arm-*"], STUDY)
        assert asked.count(first) == 1  # the arm that was done is not measured again
        assert study_curvature("trunk", study=STUDY).stamp == done.stamp
        assert len(asked) == 5  # three arms and the run, and the call that was stopped
    assert check_run(done) == []
    arms = read_table(done, "curvature_arms").set_index("arm")
    assert list(arms["role"].value_counts().sort_index()) == [3, 1]
    assert arms["tokens"].unique().tolist() == [5 * 5 * 17]  # whole batches of 85 of 500 tokens
    assert arms.loc[arms["role"] == "arm", "dense_loss"].notna().all()
    figures = read_table(done, "curvature").set_index(["arm", "term"])
    strong, weak = "trunk-arm-0.1-3", "trunk-arm-0.1-0"
    assert figures.at[(weak, "bank"), "local_share"] == 0
    assert figures.at[(strong, "bank"), "local_share"] > 0.5
    assert figures.at[(strong, "bank"), "coupling"] < figures.at[(weak, "bank"), "coupling"]
    own = read_table(open_run(strong), "curvature").set_index(["arm", "term"])
    assert own.loc[strong].equals(figures.loc[strong])


def bare_run(house: Path, name: str, kind: str = "prism", **changes: Any) -> str:
    """A run with settings and nothing else: what is looked at before anything is measured."""
    settings = resolved(TrainConfig(**{"corpus": "c", "n_prototypes": 19, **changes}))
    corpus = {"name": "c", "fingerprint": changes.get("corpus", "c") * 16}
    identity = {"config": {"train": settings}, "corpus": corpus, "tokenizer": {"fingerprint": "t"}}
    writer = RunWriter.create(house / "cache" / name, name=name, kind=kind, identity=identity)
    writer.begin_stage("train", 0)
    writer.finish_stage("train", {"final": {}})
    return name


def weights(strength: float) -> LossWeights:
    return arm_weights((strength,))[0]


def test_arms_may_differ_in_weights_and_seed(house: Path):
    """Dense runs stand beside the arms of their seed; a pattern leaves the run itself out."""
    for seed in (0, 1):
        bare_run(house, f"x-{seed}-weak", weights=weights(0.1), seed=seed)
        bare_run(house, f"x-{seed}-strong", weights=weights(1.0), seed=seed)
        bare_run(house, f"x-{seed}-dense", "dense", seed=seed, dense=True)
    series = Series.of(["x-*"], leave_out="x-1-weak")
    assert [arm.name for arm in series.arms] == ["x-0-strong", "x-0-weak", "x-1-strong"]
    assert {seed: run.name for seed, run in series.dense.items()} == {
        0: "x-0-dense",
        1: "x-1-dense",
    }


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"n_prototypes": 23}, "n_prototypes is 23 in one and 19"),
        ({"corpus": "d"}, "corpus fingerprint is d"),
        ({"steps": 3000}, "steps is 3000"),
    ],
)
def test_arms_that_differ_otherwise_are_refused(house: Path, changes: dict[str, Any], reason: str):
    """A curve over two causes says nothing of either."""
    bare_run(house, "a", weights=weights(0.1), **changes)
    bare_run(house, "b", weights=weights(1.0))
    with pytest.raises(ConfigError, match=reason) as caught:
        Series.of(["a", "b"])
    assert_plain_sentence(str(caught.value))


def test_too_few_arms_are_refused(house: Path):
    """One point, one strength, a dense run or a pattern that matches nothing make no curve."""
    bare_run(house, "a", weights=weights(0.1))
    bare_run(house, "b", weights=weights(0.1), seed=1)
    bare_run(house, "c", "dense", dense=True)
    for names, reason in (
        (["a"], "names 1 run with a bank"),
        (["a", "c"], "names 1 run with a bank"),
        (["a", "b"], "All 2 arms have the clustering weight 0.1"),
        (["z*"], "No run matches 'z\\*'; runs here: a, b, c"),
    ):
        with pytest.raises(ConfigError, match=reason) as caught:
            Series.of(names)
        assert_plain_sentence(str(caught.value))


def test_a_dense_twin_and_too_few_tokens_are_refused(house: Path):
    """Said before anything is loaded: there is no model in these runs."""
    bare_run(house, "twin", "dense", dense=True)
    bare_run(house, "mine", context=17, batch_size=5)
    with pytest.raises(UnsupportedModel, match="dense twin") as caught:
        study_curvature("twin")
    assert_plain_sentence(str(caught.value))
    with pytest.raises(ConfigError, match="ask for at least 85") as refused:
        study_curvature("mine", study=CurvatureStudy(tokens=84))
    assert_plain_sentence(str(refused.value))
    with pytest.raises(ConfigError, match="damping is -1"):
        CurvatureStudy(damping=-1)


@pytest.fixture(scope="module")
def sums() -> CurvatureSums:
    generator = torch.Generator().manual_seed(7)
    prototypes = torch.randn(K, D, generator=generator, dtype=torch.float64)
    head = torch.randn(VOCAB, D, generator=generator, dtype=torch.float64)
    states = torch.randn(TOKENS, D, generator=generator, dtype=torch.float64)
    found = CurvatureSums(prototypes, ACTIVE, Head(head))
    found.update(states, states @ head.T)
    return found


def test_co_usage_by_category_counts_every_pair_of_different_prototypes(sums: CurvatureSums):
    """Loops over pairs: mass, number of pairs, and what independence would give."""
    categories = np.array(["b", "a", "c"])[np.arange(K) % 3]
    found = category_table(sums, categories).set_index(["category", "other"])
    expected: dict[tuple[str, str], list[float]] = {}
    for i in range(K):
        for j in range(K):
            if i == j:
                continue
            cell = expected.setdefault((str(categories[i]), str(categories[j])), [0, 0.0, 0.0])
            cell[0] += 1
            cell[1] += sums.usage.matrix[i, j]
            cell[2] += sums.activation[i] * sums.activation[j]
    rows = pd.DataFrame(expected, index=["n_pairs", "mass", "chance"]).T.loc[found.index]
    assert_close(found["n_pairs"], rows["n_pairs"], rtol=0)
    assert_close(found["mass"], rows["mass"], rtol=1e-9)
    assert_close(found["share"], rows["mass"] / rows["mass"].sum(), rtol=1e-9)
    assert_close(found["expected_share"], rows["chance"] / rows["chance"].sum(), rtol=1e-9)


def test_pairs_are_ranked_by_cosine_of_use_among_those_seen_together(sums: CurvatureSums):
    """A pair met by chance once would have any cosine; it is not listed."""
    together, usage = sums.together.matrix, sums.usage.matrix
    floor = float(np.median(together))
    found = pair_table(sums, pairs=5, together=int(floor))
    expected = sorted(
        (
            usage[i, j] / np.sqrt(usage[i, i] * usage[j, j])
            for i in range(K)
            for j in range(i + 1, K)
            if together[i, j] >= int(floor)
        ),
        reverse=True,
    )
    assert_close(found["cosine"], expected[:5], rtol=1e-12)
    assert (found["prototype"] < found["neighbour"]).all()
    assert (found["n_tokens"] >= int(floor)).all()
    assert pair_table(sums, together=10 * TOKENS).empty


@pytest.mark.parametrize("n_prototypes", [1, 2, 19, 4096])
def test_the_kept_ranks_hold_the_first_and_the_last(n_prototypes: int):
    """A spectrum on logarithmic axes needs both ends and no rank twice."""
    ranks = kept_ranks(n_prototypes)
    assert ranks[0] == 0
    assert ranks[-1] == n_prototypes - 1
    assert (np.diff(ranks) > 0).all()
