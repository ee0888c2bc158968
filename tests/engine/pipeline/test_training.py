"""From a folder of text to a published run: trained, killed, measured, rounded, cut to ship."""

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from engine.config import PROJECT_ROOT, CorpusConfig, LossWeights, TrainConfig
from engine.corpus.build import build_corpus
from engine.errors import CacheStale, ConfigError
from engine.pipeline.coverage import measure_coverage
from engine.pipeline.publish import publish, round_model
from engine.pipeline.tradeoff import train_arms, write_tradeoff
from engine.pipeline.training import held_out_rows, train_run, training_shards
from engine.store import check_run, open_run, read_table, resolve_run


TOPICS = ("the river runs to the sea. ", "def f(x): return x + 1\n", "one two three four five ")


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


@pytest.mark.slow
def test_a_run_goes_from_text_to_a_published_folder(corpus: str, house: Path):
    """Every stage leaves a whole run; the shipped one keeps the tables and the rounded weights."""
    settings = config(corpus)
    run = train_run(settings, "model")
    twin = train_run(dataclasses.replace(settings, dense=True), "twin", fork_of="model")
    arms = train_arms(
        run.path,
        dataclasses.replace(settings, steps=6),
        prefix="model",
        arms=[LossWeights(), LossWeights(token_to_prototype=2.0)],
    )
    rounded = round_model("model", house / "cache" / "rounded")
    measured = measure_coverage("rounded", "twin")
    assert measure_coverage("rounded").stamp == measured.stamp
    write_tradeoff("rounded", arms)
    shipped = publish("rounded", house / "assets" / "shipped", shards=1)
    assert check_run(shipped) == []
    assert open_run("shipped").path == house / "assets" / "shipped"
    coverage = read_table(shipped, "coverage").set_index("bank")
    assert set(coverage.index) == {"trained", "kmeans", "random", "dense-kmeans"}
    assert coverage.at["kmeans", "coverage_r2"] > coverage.at["random", "coverage_r2"]
    assert len(read_table(shipped, "tradeoff")) == 2
    losses = read_table(shipped, "validation_loss")
    assert set(losses["model"]) == {"prism", "dense"}
    assert len(read_table(shipped, "training_log")) == settings.steps
    assert rounded.manifest["model"]["weights"] == "bfloat16"
    assert twin.kind == "dense"


@pytest.mark.slow
def test_a_finished_run_is_not_trained_again_and_other_settings_are_refused(corpus: str):
    first = train_run(config(corpus), "model")
    assert train_run(config(corpus), "model").stamp == first.stamp
    with pytest.raises(CacheStale, match="other settings"):
        train_run(config(corpus, seed=1), "model")


def test_held_out_rows_take_what_small_domains_have_and_share_out_the_rest(corpus: str):
    """Asked for more than there is, every row comes; asked for few, at least that many."""
    shards, _ = training_shards(config(corpus), lambda items, **_: items)
    few = held_out_rows(shards, context=17, tokens=50)
    assert sum(len(rows) for rows in few.values()) * 17 >= 50
    every = held_out_rows(shards, context=17, tokens=10**9)
    assert all(rows.shape[1] == 18 for rows in every.values())
    total = sum(len(rows) for rows in every.values())
    assert total > sum(len(rows) for rows in few.values())
    assert len(np.unique(np.concatenate(list(every.values())), axis=0)) > 1


@pytest.mark.slow
def test_an_interrupted_run_goes_on_with_other_threads(
    corpus: str, monkeypatch: pytest.MonkeyPatch
):
    """How fast a run goes is no part of what it is; the manifest still says with what it ran."""
    whole = train_run(config(corpus), "whole")

    def stop(*_args, **_options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("engine.pipeline.training.evaluate", stop)
        with pytest.raises(KeyboardInterrupt):
            train_run(config(corpus), "model")
    run = train_run(config(corpus, threads=1), "model")
    assert run.manifest["config"]["train"]["threads"] == 1
    column = "cross_entropy"
    resumed, straight = (read_table(r, "training_log")[column] for r in (run, whole))
    assert resumed.tolist() == straight.tolist()
    assert train_run(config(corpus, threads=0), "model").stamp == run.stamp


@pytest.mark.slow
def test_a_fork_is_refused_from_a_trunk_that_is_another_model(corpus: str):
    """Another seed or learning rate is no common trunk; another length or bank is."""
    train_run(config(corpus), "trunk")
    for changes in ({"seed": 3}, {"learning_rate": 2e-3}, {"batch_size": 7}, {"n_layers": 2}):
        (name,) = changes
        with pytest.raises(ConfigError, match=f"its {name} is"):
            train_run(config(corpus, **changes), "fork", fork_of="trunk")
    assert not resolve_run("fork").exists()
    changed = config(corpus, steps=6, n_prototypes=23, bank_ramp=1, threads=1)
    assert train_run(changed, "fork", fork_of="trunk").kind == "prism"


@pytest.mark.slow
def test_two_processes_train_one_run(corpus: str, house: Path):
    """Started by torchrun on an untokenised corpus, both share the work and the first writes."""
    settings = dataclasses.asdict(config(corpus, batch_size=6))
    (house / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
    words = ["train", "--config", str(house / "settings.json"), "-r", "pair", "--json"]
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command = [sys.executable, *launch, "-m", "engine", *words]
    done = subprocess.run(
        command, cwd=PROJECT_ROOT, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["run"] == "pair"
    pair = open_run("pair")
    assert check_run(pair) == []
    assert len(read_table(pair, "training_log")) == settings["steps"]
    assert not list(house.rglob(".*.tmp-*"))
