"""The study by retraining on a folder of short texts: drawn, killed, resumed, judged."""

import dataclasses
import shutil
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr

from engine.claims import judge as judge_claim
from engine.config import CorpusConfig, LossWeights
from engine.corpus.build import build_corpus
from engine.corpus.tokenizer import load_tokenizer
from engine.errors import CacheMissing, CacheStale, ConfigError, CorpusError
from engine.live import LiveEngine
from engine.pipeline import claims_retraining, retraining_outcomes
from engine.pipeline.retraining import open_study, retrain_subsets, train_study_model
from engine.pipeline.retraining_facts import invent_facts
from engine.pipeline.retraining_fit import fit, sequence_losses, training_order
from engine.pipeline.retraining_index import index_study_pool
from engine.pipeline.retraining_judge import chosen_variant, judge, write_judgement
from engine.pipeline.retraining_outcomes import (
    finished_outcomes,
    planned_retrainings,
    subset_members,
)
from engine.pipeline.retraining_removal import (
    planned_removals,
    removed_per_domain,
    retrain_removals,
)
from engine.pipeline.retraining_scores import ScoreFolder, score_methods
from engine.pipeline.retraining_settings import RetrainConfig
from engine.pipeline.retraining_summary import removal_changes, summary
from engine.pipeline.retraining_tables import DEVELOPMENT, REPORT, halves
from engine.store import check_run, open_run, read_table


WORDS = ("river", "sea", "stone", "lamp", "field", "glass", "iron", "paper", "wind", "salt")
POOL, LENGTH = 59, 19


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder of texts of random words, built."""
    folder = tmp_path_factory.mktemp("corpus")
    (folder / "texts").mkdir()
    generator = np.random.default_rng(0)
    for number in range(83):
        text = f"{number} " + " ".join(generator.choice(WORDS, 110))
        (folder / "texts" / f"{number:02d}.txt").write_text(text, encoding="utf-8")
    settings = CorpusConfig(preset=None, path=str(folder / "texts"), validation_share=0.2)
    return str(build_corpus(settings, root=folder / "built").path)


def config(corpus: str, **changes) -> RetrainConfig:
    base = RetrainConfig(
        corpus=corpus,
        pool_sequences=POOL,
        queries=11,
        facts=3,
        length=LENGTH,
        subsets=8,
        epochs=3,
        n_layers=1,
        d_model=16,
        n_heads=2,
        vocab_size=300,
        n_prototypes=13,
        n_active=3,
        batch_size=4,
        removed_share=0.1,
        weights=LossWeights(),
    )
    return dataclasses.replace(base, **changes)


@pytest.fixture
def study(corpus: str, house: Path):
    return open_study(config(corpus), "study")


METHODS = ["path", "errors", "tfidf", "random"]


@pytest.fixture(scope="module")
def judged_once(corpus: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache with a whole study in it; numbers drawn at random stand for EK-FAC's scores."""
    cache = tmp_path_factory.mktemp("judged")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEADWATER_CACHE", str(cache))
        patch.setenv("HEADWATER_ASSETS", str(cache / "assets"))
        study = open_study(config(corpus), "study")
        train_study_model(study)
        retrain_subsets(study)
        assert score_methods(study, METHODS) == []
        folder, generator = ScoreFolder(study), np.random.default_rng(9)
        folder.write("ekfac", generator.standard_normal(folder.read("path").shape))
        judgement = judge(study)
        retrain_removals(study, judgement.default)
        write_judgement(study, judgement)
    return cache


@pytest.fixture
def judged(judged_once: Path, corpus: str, house: Path):
    """The whole study, a copy of one's own."""
    shutil.copytree(judged_once, house / "cache", dirs_exist_ok=True)
    return open_study(config(corpus), "study")


def test_facts_share_no_subject_and_no_answer():
    """A question has one document that answers it."""
    facts = invent_facts(59, seed=1)
    names = [fact.subject for fact in facts] + [fact.answer for fact in facts]
    assert len(set(names)) == 2 * 59
    assert invent_facts(59, seed=1) == facts
    for fact in facts:
        (repeated, answer), (rephrased, again) = fact.questions
        text = " ".join(fact.statements)
        assert answer == again == f" {fact.answer}"
        assert f"{repeated}{answer}" in text
        assert rephrased not in text


def test_pool_holds_real_text_then_facts(study):
    """Rows and ids of the tables follow from this order."""
    data = study.data
    assert len(data.pool) == POOL + 3
    assert data.n_real == POOL
    assert set(data.pool.domain[POOL:]) == {"planted"}
    assert (data.pool.length == LENGTH).all()
    assert data.fact_of_query.tolist() == [-1] * 11 + [0, 1, 2, 0, 1, 2]
    train = study.shards.corpus.documents["split"].to_numpy()
    assert set(train[data.pool.document[:POOL]]) == {"train"}
    assert set(train[data.queries.document[:11]]) == {"validation"}


def test_the_predicted_tokens_of_a_question_are_its_answer(corpus: str, house: Path):
    """With room for it, the sequence reads as the question and what is predicted as its answer."""
    wide = open_study(config(corpus, length=89, queries=5), "wide")
    decode = load_tokenizer(wide.tokenizer).decode
    queries = wide.data.queries
    for row in range(5, len(queries)):
        fact = wide.data.facts[wide.data.fact_of_query[row]]
        tokens = queries.tokens[row, 1:][queries.predicted[row]]
        assert decode(tokens.tolist()) == f" {fact.answer}"
        asked = dict(fact.questions)
        assert decode(queries.tokens[row, 1 : queries.length[row]].tolist()) in {
            prompt + answer for prompt, answer in asked.items()
        }


def test_subsets_are_halves_and_do_not_depend_on_how_many_there_are(corpus: str):
    """Raising the number of subsets keeps what was trained."""
    few, many = config(corpus, subsets=2), config(corpus, subsets=5)
    members = [subset_members(few, 101, s) for s in range(2)]
    assert [m.sum() for m in members] == [50, 50]
    assert not np.array_equal(*members)
    assert all(np.array_equal(subset_members(many, 101, s), members[s]) for s in range(2))
    jobs = planned_retrainings(many, 101)
    assert [job.file for job in jobs[:3]] == [
        "subset-0000-seed0.json",
        "subset-0000-seed1.json",
        "subset-0001-seed0.json",
    ]


def test_sequences_keep_their_relative_order_in_every_subset():
    """Two subsets of one seed meet what they share in the same order; seeds differ."""
    generator = np.random.default_rng(0)
    first, second = generator.random((2, 43)) < 0.5
    orders = [training_order(members, 3, seed=7) for members in (first, second)]
    for order, members in zip(orders, (first, second), strict=True):
        assert np.array_equal(np.bincount(order, minlength=43), 3 * members)
    shared = first & second
    assert np.array_equal(*(order[shared[order]] for order in orders))
    assert not np.array_equal(orders[0], training_order(first, 3, seed=8))


def test_a_training_reads_its_members_alone(study):
    """What is not a member may be anything: the weights come out the same; seeds differ."""
    data, settings = study.data, study.config
    members = subset_members(settings, len(data.pool), 0)
    tokens = data.pool.tokens.copy()
    model = fit(tokens, members, settings, 0)
    tokens[~members] = 7
    again = fit(tokens, members, settings, 0)
    other = fit(tokens, members, settings, 1)
    losses = [sequence_losses(each, data.queries) for each in (model, again, other)]
    assert np.array_equal(losses[0], losses[1])
    assert not np.allclose(losses[0], losses[2])


def test_a_loss_is_the_sum_over_predicted_tokens(study):
    """Against the model's own loss of one sequence at a time."""
    import torch

    data = study.data
    model = fit(data.pool.tokens, np.ones(len(data.pool), bool), study.config, 0)
    found = sequence_losses(model, data.queries)
    for row in (0, 10, len(data.queries) - 1):
        ids = torch.from_numpy(data.queries.tokens[row][None])
        logs = torch.log_softmax(model(input_ids=ids[:, :-1]).logits.double(), -1)[0]
        each = -logs[torch.arange(LENGTH - 1), ids[0, 1:]].detach().numpy()
        assert found[row] == pytest.approx(each[data.queries.predicted[row]].sum(), rel=1e-5)


@pytest.mark.slow
def test_a_killed_study_ends_like_one_that_was_not(
    judged, corpus: str, monkeypatch: pytest.MonkeyPatch
):
    """Killed within its fourth training it keeps three, trains the rest, and agrees in each."""
    twin = open_study(config(corpus, subsets=3), "twin")
    done = 0

    def dies(*args, **kwargs):
        nonlocal done
        done += 1
        if done == 4:
            raise KeyboardInterrupt
        return fit(*args, **kwargs)

    monkeypatch.setattr(retraining_outcomes, "fit", dies)
    with pytest.raises(KeyboardInterrupt):
        retrain_subsets(twin)
    assert len(list(twin.outcomes.path.glob("*.json"))) == 3
    retrain_subsets(twin)
    assert done == 4 + 2 * 3 - 3
    n_pool = len(twin.data.pool)
    pair = [finished_outcomes(s.config, n_pool, s.outcomes) for s in (judged, twin)]
    assert np.array_equal(pair[0].losses[:, :3], pair[1].losses)
    assert np.array_equal(pair[0].members[:3], pair[1].members)


@pytest.mark.slow
def test_what_is_half_done_is_not_counted(judged):
    """A subset one seed of which is missing has no outcome; the others keep their numbers."""
    jobs = planned_retrainings(judged.config, len(judged.data.pool))
    (judged.outcomes.path / jobs[5].file).unlink()
    found = finished_outcomes(judged.config, len(judged.data.pool), judged.outcomes)
    assert found.subsets.tolist() == [0, 1, 3, 4, 5, 6, 7]
    assert found.losses.shape == (2, 7, len(judged.data.queries))
    with pytest.raises(CacheMissing, match="7 subsets have been retrained with every seed"):
        judge(judged)


@pytest.mark.slow
def test_nothing_is_judged_without_scores(judged):
    """The sentence names the command."""
    shutil.rmtree(ScoreFolder(judged).path)
    with pytest.raises(CacheMissing, match="No method has been scored"):
        judge(judged)


@pytest.mark.slow
def test_damaged_scores_are_refused(judged):
    """Cut short, or of another pool."""
    folder = ScoreFolder(judged)
    folder.file("path").write_bytes(folder.file("path").read_bytes()[:-5])
    folder.write("tfidf", np.zeros((3, 5)))
    for name in ("path", "tfidf"):
        with pytest.raises(CacheStale, match="is damaged or of another pool"):
            folder.read(name)


@pytest.mark.slow
def test_a_study_is_judged_and_its_run_is_whole(judged):
    """Figures of a method recomputed by hand, a run that opens, and no rewrite."""
    run, data = open_run("study"), judged.data
    assert check_run(run) == []
    found = finished_outcomes(judged.config, len(data.pool), judged.outcomes)
    scores = ScoreFolder(judged).read("tfidf")
    slow = [
        spearmanr(found.members @ scores[q].astype(float), -found.losses[:, :, q].mean(0)).statistic
        for q in range(len(data.queries))
    ]
    table = read_table(run, "retraining_lds")
    own = table[(table["method"] == "tfidf") & (table["scope"] == "all")]
    assert np.allclose(own.sort_values("query")["spearman"], slow, atol=1e-6)
    validity = read_table(run, "attribution_validity").set_index(["method", "scope"])
    report = halves(data) == REPORT
    mean = np.array(slow)[report].mean()
    assert validity.at[("tfidf", "all"), "lds"] == pytest.approx(mean, abs=1e-6)
    assert validity["ceiling"].notna().all()
    chosen = validity.index[validity["is_default"]].get_level_values("method")
    assert set(chosen) <= {"path", "errors"}
    assert len(chosen) == 2
    outcomes = read_table(run, "retraining_outcomes")
    assert len(outcomes) == 8 * 2 * len(data.queries)
    row = outcomes.set_index(["subset", "seed", "query"]).loc[(5, 1, 12), "loss"]
    assert row == pytest.approx(found.losses[1, 5, 12], rel=1e-6)
    bits = bytes.fromhex(read_table(run, "retraining_subsets")["members"][4])
    unpacked = np.unpackbits(np.frombuffer(bits, np.uint8))[: len(data.pool)]
    assert np.array_equal(unpacked.astype(bool), found.members[4])
    assert write_judgement(judged, judge(judged)).stamp == run.stamp
    assert LiveEngine.open("study").decompose("the river").tokens


@pytest.mark.slow
def test_the_pool_is_stored_fact_for_fact(judged, monkeypatch: pytest.MonkeyPatch):
    """Every sequence the model was trained on is found, and a shipped part of it is left alone."""
    run = index_study_pool(judged)
    table = read_table(run, "attribution_sequences")
    assert table["doc_id"].tolist() == read_table(run, "retraining_pool")["doc_id"].tolist()
    assert check_run(run) == []
    monkeypatch.setenv("HEADWATER_ASSETS", str(judged.path.parent))
    assert index_study_pool(judged).stamp == run.stamp
    assert not (judged.path.parent / "attribution").exists()


@pytest.mark.slow
def test_a_study_is_summed_up(judged):
    """Methods by LDS, the best first; recall by kind of question; removals against random ones."""
    found = summary(open_run("study"))
    values = [row["all"]["lds"] for row in found["methods"]]
    assert values == sorted(values, reverse=True)
    assert {row["method"] for row in found["methods"]} == {*METHODS, "ekfac"}
    assert set(found["methods"][0]["planted"]) == {"repeated", "rephrased"}
    assert {(row["method"], row["part"]) for row in found["removal"]} == {
        (name, part) for name in (found["default"], "ekfac", "tfidf") for part in ("top", "bottom")
    }


@pytest.mark.slow
def test_the_ledger_reads_a_judged_study(judged):
    """Every claim has a figure, an interval around it and what it is compared with."""
    for definition in claims_retraining.DEFINITIONS:
        found = definition.measure(judged.path / Path(definition.evidence).name)
        assert found.interval[0] <= found.value <= found.interval[1]
        assert len(found.control) > 2
        judge_claim(definition.criterion, found.value, found.interval, found.control)
    within = claims_retraining.measure_lds(
        judged.path / "retraining_lds.parquet", scope="domain"
    ).control
    assert within["difference_low"] <= within["difference_mean"] <= within["difference_high"]


def test_the_ledger_says_what_is_missing(synthetic_run: Path):
    """A run without the study's stage has no figure."""
    with pytest.raises(CacheMissing):
        claims_retraining.measure_lds(synthetic_run / "retraining_lds.parquet", scope="all")


@pytest.mark.slow
def test_a_removal_takes_as_many_of_each_domain_by_every_method(judged):
    """Top, bottom and random removals differ in which sequences, never in how many."""
    data, settings = judged.data, judged.config
    jobs = planned_removals(judged, "path")
    k = removed_per_domain(data, settings)
    assert k == round(0.1 * len(data.pool))
    assert {key[:2] for key in jobs} == {
        ("random 1", "random"),
        ("random 2", "random"),
        ("path", "top"),
        ("path", "bottom"),
        ("ekfac", "top"),
        ("ekfac", "bottom"),
        ("tfidf", "top"),
        ("tfidf", "bottom"),
    }
    for job in jobs.values():
        assert (~job.members).sum() == k
        assert job.members[data.n_real :].all()
    group = ScoreFolder(judged).read("path")[:11].sum(0)[: data.n_real]
    removed = np.flatnonzero(~jobs["path", "top", 0].members)
    assert set(removed) == set(np.argsort(-group, kind="stable")[:k])
    lowest = np.flatnonzero(~jobs["path", "bottom", 0].members)
    assert group[lowest].max() < group[removed].min()


def test_a_change_is_against_the_random_removals_of_the_same_seed():
    """Means over random draws and over seeds, domain by domain."""
    import pandas as pd

    rows = [("law", "random 1", "random", 0, 4.0), ("law", "random 2", "random", 0, 6.0)]
    rows += [("law", "random 1", "random", 1, 8.0), ("law", "path", "top", 0, 9.0)]
    rows += [("law", "path", "top", 1, 10.0)]
    table = pd.DataFrame(rows, columns=["domain", "method", "part", "seed", "loss"])
    assert removal_changes(table)["change"].tolist() == [3.0]


def test_the_default_is_chosen_on_the_development_half_among_cached_variants():
    """Neither the reported half nor a reference decides it."""
    development = np.array([True, True, False])
    found = {
        ("path", "all"): np.array([0.5, 0.5, 0.0]),
        ("errors", "all"): np.array([0.4, 0.4, 1.0]),
        ("tfidf", "all"): np.array([0.9, 0.9, 0.9]),
        ("errors", "domain"): np.array([0.9, 0.9, 0.9]),
    }
    assert chosen_variant(found, development) == "path"
    assert chosen_variant({("tfidf", "all"): np.ones(3)}, development) is None


def test_halves_take_turns_within_a_domain(study):
    """Both halves hold held-out text of every domain; questions belong to neither."""
    found = halves(study.data)
    assert found.tolist()[:3] == [DEVELOPMENT, REPORT, DEVELOPMENT]
    assert set(found[11:]) == {"planted"}


def test_a_corpus_smaller_than_the_pool_is_said(corpus: str, house: Path):
    """How many sequences there are, in one sentence."""
    with pytest.raises(CorpusError, match="9999 sequences of 19 tokens were asked for"):
        open_study(config(corpus, pool_sequences=9999), "large")


@pytest.mark.slow
def test_too_few_outcomes_are_no_judgement(judged):
    """The sentence names what is missing and the command."""
    shutil.rmtree(judged.outcomes.path)
    with pytest.raises(CacheMissing, match="0 subsets have been retrained"):
        judge(judged)


def test_settings_that_cannot_train_are_refused(corpus: str):
    """Before anything is drawn."""
    with pytest.raises(ConfigError, match="fewer than 20 steps"):
        config(corpus, epochs=1, batch_size=17)
    with pytest.raises(ConfigError, match="d_model must be a multiple"):
        config(corpus, n_heads=3)


@pytest.mark.slow
def test_more_subsets_and_removals_are_the_same_study(corpus: str, judged):
    """Its folder holds and its model stays; another learning rate has another folder."""
    more = dataclasses.replace(judged, config=config(corpus, subsets=99, removal_domains=1))
    other = dataclasses.replace(judged, config=config(corpus, learning_rate=1e-3))
    assert more.folder == judged.folder
    assert other.folder != judged.folder
    stamp = open_run("study").stamp
    assert train_study_model(more).stamp == stamp
    with pytest.raises(CacheStale, match="made with other settings"):
        train_study_model(other)
