"""The stage of relations on a made-up map and on tiny models with real weights."""

import csv
import shutil

import numpy as np
import pytest
from transformers import AutoModelForCausalLM

from engine.able.model import AttributionSettings
from engine.able.probes import probe_set
from engine.atlas.sampling import SamplingSettings
from engine.errors import CacheMissing, ConfigError
from engine.pipeline.models_catalogue import read_catalogue
from engine.pipeline.models_embed import EmbedStudy, embed_catalogue
from engine.pipeline.models_neighbours import compare, neighbours
from engine.pipeline.models_relations import RelationSettings, relate_models
from engine.pipeline.synthetic_map import write_synthetic_models
from engine.pipeline.synthetic_models import SyntheticMap
from engine.schema.model_relation_tables import MODEL_RELATION_TABLES
from engine.store import open_run, read_table
from tests.assertions import assert_plain_sentence
from tests.engine.able.tiny_causal import SHORT, save_tiny, tiny_tokenizer


QUICK = RelationSettings(
    n_splits=1, sampling=SamplingSettings(n_genes=5, n_samples=7, n_tokens=2), seed=1
)


@pytest.fixture(scope="module")
def made_up(tmp_path_factory):
    """A synthetic map with more roots, its relations computed; read it, never write it."""
    path = write_synthetic_models(
        tmp_path_factory.mktemp("maps") / "made-up", shape=SyntheticMap(n_roots=8)
    )
    return relate_models(path, QUICK)


def test_every_table_is_written_and_no_method_sees_weights_that_are_not_there(made_up):
    """A map whose models are elsewhere has neither PhyloLM nor weights nor whole vectors."""
    assert all(made_up.has(spec.name) for spec in MODEL_RELATION_TABLES)
    methods = made_up.manifest["stages"]["relations"]["methods"]
    assert not {"phylolm", "weights", "able_whole"} & set(methods)
    assert {"able", "paper", "log_likelihoods", "tokenizer", "random"} <= set(methods)
    pairs = read_table(made_up, "model_pairs")
    assert len(pairs) == 32 * 31 / 2  # eight roots with three derivatives
    scores = read_table(made_up, "model_pair_scores")
    assert len(scores) == len(methods) * len(pairs)


def test_planted_families_are_told_and_labels_are_at_chance_against_twins(made_up):
    """The made-up embeddings lie by root: the figures must say so, and twins share labels."""
    results = read_table(made_up, "model_relation_results")

    def value(method, group, metric):
        own = results[(results["method"] == method) & (results["group"] == group)]
        own = own[(own["metric"] == metric) & own["classifier"].isin(["threshold", "none"])]
        return float(own["value"].iloc[0])

    assert value("able", "held_out:twin", "auc") > 0.95
    assert value("able", "all", "permutation_p") == pytest.approx(0.001)
    assert value("architecture_tokenizer", "held_out:twin", "auc") == 0.5
    assert value("able", "tree", "triplets") > 0.9
    assert value("random", "held_out", "auc") < 0.8
    chosen = results[results["metric"] == "chosen"]["method"].tolist()
    assert chosen == [made_up.manifest["stages"]["relations"]["chosen"]]


def test_a_finished_stage_is_kept_and_other_settings_are_computed(made_up, tmp_path, monkeypatch):
    """Resuming must not cost the minutes of the first call."""

    def never(*args, **kwargs):
        raise AssertionError("computed again")

    monkeypatch.setattr("engine.pipeline.models_relations.comparisons", never)
    assert relate_models(made_up.path, QUICK).stamp == made_up.stamp
    with pytest.raises(AssertionError, match="computed again"):
        relate_models(shutil.copytree(made_up.path, tmp_path / "copy"), RelationSettings())


def test_neighbours_are_sorted_and_judged_among_unrelated_pairs(made_up):
    """Against cosines and a percentile written out; keys are those a script relies on."""
    found = neighbours(made_up.path, "root-1", "paper", 5)
    assert list(found) == ["model", "neighbours"]
    assert list(found["neighbours"][0]) == [
        "model", "cosine", "percentile_unrelated", "verdict", "known_relation"
    ]  # fmt: skip
    rows = read_table(made_up, "model_embeddings", where={"variant": "paper"})
    vectors = {m: np.array(v) for m, v in zip(rows["model"], rows["vector"], strict=True)}

    def cosine(a, b):
        return vectors[a] @ vectors[b] / np.linalg.norm(vectors[a]) / np.linalg.norm(vectors[b])

    others = sorted(set(vectors) - {"root-1"}, key=lambda name: -cosine("root-1", name))
    assert [row["model"] for row in found["neighbours"]] == others[:5]
    pairs = read_table(made_up, "model_pairs", where={"related": False})
    unrelated = [cosine(a, b) for a, b in zip(pairs["a"], pairs["b"], strict=True)]
    for row in found["neighbours"]:
        own = cosine("root-1", row["model"])
        assert row["cosine"] == pytest.approx(own)
        expected = 100 * np.mean([other < own - 1e-12 for other in unrelated])
        assert row["percentile_unrelated"] == pytest.approx(expected)
    stored = read_table(made_up, "model_neighbours", where={"variant": "paper", "model": "root-1"})
    assert stored["neighbour"].tolist()[:5] == others[:5]


def test_two_models_are_compared_by_every_method(made_up):
    """What is documented stands beside, and the sentence on what likeness proves."""
    found = compare(made_up.path, "root-1", "root-1-mild_sft")
    assert found["known_relation"] == "child"
    assert found["related"] is True
    assert {"architecture", "tokenizer"} <= set(found["same"])
    methods = [row["method"] for row in found["comparisons"]]
    assert {"able", "log_likelihoods", "tokenizer"} <= set(methods)
    assert len(set(methods)) == len(methods)
    assert "not proof" in found["caveat"]
    scores = {row["method"]: row["score"] for row in found["comparisons"]}
    back = compare(made_up.path, "root-1-mild_sft", "root-1")
    assert back["known_relation"] == "parent"
    assert {r["method"]: r["score"] for r in back["comparisons"]} == pytest.approx(scores)


def test_what_does_not_fit_is_refused_in_a_sentence(made_up):
    """An unknown model with a hint, an unknown variant, one model twice, a map too small."""
    for call, words in (
        (lambda: neighbours(made_up.path, "rot-1"), "did you mean"),
        (lambda: neighbours(made_up.path, "root-1", "vaguely"), "no variant 'vaguely'"),
        (lambda: neighbours(made_up.path, "root-1", count=0), "--count is 0"),
        (lambda: compare(made_up.path, "root-1", "root-1"), "named twice"),
        (lambda: RelationSettings(n_splits=0), "n_splits is 0"),
    ):
        with pytest.raises(ConfigError, match=words) as refused:
            call()
        assert_plain_sentence(str(refused.value))


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """Five bases, two of them twins, each with a child of slightly other weights, embedded."""
    folder = tmp_path_factory.mktemp("tiny")
    rows = []
    for name, family, seed in (
        ("a", "llama", 3), ("b", "llama", 5), ("c", "gpt_neox", 3), ("d", "opt", 3),
        ("e", "gpt2", 3),
    ):  # fmt: skip
        save_tiny(folder / name, family, seed=seed)
        child = AutoModelForCausalLM.from_pretrained(folder / name)
        for weight in child.parameters():
            weight.data.mul_(1.01)
        child.save_pretrained(folder / f"{name}-child")
        tiny_tokenizer().save_pretrained(folder / f"{name}-child")
        group = "twin:llama" if family == "llama" else ""
        rows.append([name, name, name, "", "root", family, group, 0])
        rows.append([f"{name}-child", f"{name}-child", name, name, "mild_sft", family, "", 1])
    header = ["id", "path", "root", "parents", "derivation", "architecture"]
    with (folder / "all.csv").open("w", newline="") as file:
        csv.writer(file).writerows([[*header, "hard_negative_group", "copies_weights"], *rows])
    study = EmbedStudy(
        attribution=AttributionSettings(device="cpu", dtype="float32"), n_dimensions=31
    )
    embed_catalogue(
        folder / "map", read_catalogue(folder / "all.csv"), probe_set("s", SHORT), study
    )
    return folder


@pytest.mark.slow
def test_real_weights_bring_every_baseline(tiny, monkeypatch):
    """A child is most like its base by each method; samples of an earlier call are kept."""
    run = relate_models(tiny / "map", QUICK)
    methods = set(run.manifest["stages"]["relations"]["methods"])
    assert {"phylolm", "weights", "able_whole", "contrast_whole"} <= methods
    pairs = read_table(run, "model_pairs").set_index(["a", "b"])
    scores = read_table(run, "model_pair_scores").set_index(["method", "pair"])["score"]
    for method in ("able", "able_whole", "weights", "log_likelihoods", "phylolm"):
        own = scores[method, pairs.loc[("a", "a-child"), "pair"]]
        twin = scores[method, pairs.loc[("a", "b"), "pair"]]
        assert own > twin, method
    parents = read_table(run, "model_parents", where={"method": "weights"}).set_index("model")
    assert parents.loc["a-child", "rank_of_parent"] == 1
    files = sorted((run.path / "relations").glob("*.json"))
    stamps = [file.stat().st_mtime_ns for file in files]
    assert len(files) == 10

    def never(*args, **kwargs):
        raise AssertionError("loaded again")

    monkeypatch.setattr("engine.pipeline.models_relations_sampling.load_model", never)
    again = RelationSettings(n_splits=2, sampling=QUICK.sampling, seed=1)
    relate_models(tiny / "map", again)
    assert [file.stat().st_mtime_ns for file in files] == stamps


def test_a_map_without_embeddings_is_refused(house):
    """A run of another kind, and one that is not there."""
    with pytest.raises(CacheMissing):
        relate_models("nothing")
    from engine.store import RunWriter

    writer = RunWriter.create(house / "cache" / "heads", name="h", kind="heads", identity={})
    writer.begin_stage("study", {})
    writer.finish_stage("study", {})
    assert open_run("heads").kind == "heads"
    with pytest.raises(ConfigError, match="no map of models"):
        relate_models("heads")
