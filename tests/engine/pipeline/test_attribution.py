"""The attribution pool end to end on a small model and corpus: built, stopped, copied, refused."""

import shutil

import numpy as np
import pytest
import torch

from engine.config import CorpusConfig
from engine.corpus.build import build_corpus, open_corpus
from engine.corpus.shards import tokenise_corpus
from engine.corpus.tokenizer import load_tokenizer
from engine.errors import CacheMissing, CacheStale, ConfigError, CorpusError, UnsupportedModel
from engine.influence.frame import draw_sequences
from engine.pipeline import attribution
from engine.pipeline.attribution import build_pool
from engine.pipeline.attribution_rows import PoolSettings, every_window
from engine.pipeline.publish import publish
from engine.prism.attribution.gradient import VARIANTS, Variant, summed_gradient
from engine.prism.attribution.index import AttributionIndex, ranked
from engine.prism.attribution.scoring import score_sequences
from engine.prism.attribution.search import invert
from engine.prism.attribution.statistics import row_statistics
from engine.prism.checkpoints import load_prism
from engine.store import RunWriter, check_run, open_run, read_table
from engine.store.pools import POOL, find_pool, has_pool, pool_beside, pool_home
from tests.assertions import assert_plain_sentence
from tests.engine.tiny_models import CONTEXT, N_PROTOTYPES, save_prism


SEQUENCES, LENGTH = 23, 17
SETTINGS = PoolSettings(sequences=SEQUENCES, length=LENGTH, device="cpu")
WORDS = {
    "garden": "rose tulip soil spade seed leaf root stem petal bloom weed hedge",
    "harbour": "ship sail anchor rope tide dock mast crew hull deck cargo wave",
}


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """A house with a built corpus, a run in its cache and the same run among its assets."""
    root = tmp_path_factory.mktemp("pool")
    generator = np.random.default_rng(0)
    for topic, words in WORDS.items():
        folder = root / "texts" / topic
        folder.mkdir(parents=True)
        for number in range(31):
            text = " ".join(generator.choice(words.split(), 13 + number)) + "."
            (folder / f"{number:02d}.txt").write_text(text)
    settings = CorpusConfig(preset=None, path=str(root / "texts"))
    corpus = build_corpus(settings, root / "cache" / "corpus", root / "cache" / "packages")
    for home in ("cache/mine", "assets/shipped"):
        run = root / home
        identity = {"corpus": {"name": corpus.name, "fingerprint": corpus.fingerprint}}
        writer = RunWriter.create(run, name=run.name, kind="prism", identity=identity)
        writer.begin_stage("train", {})
        save_prism(run / "model")
        writer.finish_stage("train", {})
    return root


@pytest.fixture
def place(template, tmp_path, monkeypatch):
    """A copy of the house, free to be changed."""
    for name in ("cache", "assets"):
        shutil.copytree(template / name, tmp_path / name)
        monkeypatch.setenv(f"HEADWATER_{name.upper()}", str(tmp_path / name))
    return tmp_path


@pytest.fixture(autouse=True)
def _small_shards(monkeypatch):
    monkeypatch.setattr(attribution, "SHARD", 5)


def drawn(run):
    tokenizer = load_tokenizer(run.model_path / "tokenizer.json")
    shards = tokenise_corpus(open_corpus(run.manifest["corpus"]["name"]), tokenizer)
    return shards, draw_sequences(shards, SEQUENCES, length=LENGTH, split="train", seed=0)


def bytes_of(folder):
    """Every file of a pool but the manifest."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for pattern in ("attribution/*", "attribution_*")
        for path in sorted([*folder.glob(pattern), *folder.glob(f"{pattern}/*.parquet")])
        if path.is_file()
    }


@pytest.mark.parametrize("variant", ["path", "errors+diagonal", "path+coupled+unit"])
@pytest.mark.parametrize("bits", [4, 8])
def test_a_stored_pool_scores_like_the_same_sequences_in_memory(place, variant, bits):
    """The index agrees with `score_sequences` at the same bits, ids and order among them."""
    run = open_run("mine")
    pool = build_pool("mine", PoolSettings(**{**vars(SETTINGS), "bits": bits}))
    assert check_run(pool) == []
    model, _ = load_prism(run.model_path)
    shards, rows = drawn(run)
    index = AttributionIndex.open(run, model)
    assert index.sequences["start"].tolist() == rows.start.tolist()
    assert index.sequences["doc_id"].tolist() == [
        shards.corpus.documents["doc_id"][i] for i in rows.document
    ]
    queries = draw_sequences(shards, 1, length=LENGTH, split="train", seed=5)
    expected = score_sequences(model, rows, queries, variant, bits=bits)[0]
    chosen = Variant.parse(variant)
    gradient = summed_gradient(
        row_statistics(model, queries), model.prototypes.detach(), chosen.statistic
    )
    query = index.prepare(gradient, chosen)
    found = index.scores([query])[0]
    np.testing.assert_allclose(found, expected, rtol=2e-3, atol=1e-4 * np.abs(expected).max())
    best = index.search(query, 7)
    assert best["sequence"].tolist() == np.argsort(-found, kind="stable")[:7].tolist()
    for sequence in best["sequence"]:
        tokens, shares = index.token_scores(query, sequence), index.shares(query, sequence)
        assert len(tokens) == LENGTH - 1
        assert tokens.sum() == pytest.approx(found[sequence], rel=1e-3, abs=1e-6)
        assert shares["share"].sum() == pytest.approx(found[sequence], rel=1e-3, abs=1e-6)


def test_a_pool_killed_at_any_shard_ends_with_the_same_files(place, monkeypatch):
    """Between the arrays and the table as well; one so large that its inverted index is stored."""
    monkeypatch.setattr(attribution, "INVERT_BELOW", 0)
    shutil.copytree(place / "cache" / "mine", place / "cache" / "stopped")
    whole = build_pool("mine", SETTINGS)
    expected = bytes_of(whole.path)
    assert len(expected) == 8 + 1 + 5
    for place_of_death in ("append", "write_shard", "register_arrays"):
        for calls in (1, 3):
            left = [calls]

            def killed(*arguments, left=left, original=lambda *_, **__: None, **more):
                left[0] -= 1
                if left[0] <= 0:
                    raise KeyboardInterrupt
                return original(*arguments, **more)

            owner = attribution.ArrayFiles if place_of_death == "append" else RunWriter
            original = getattr(owner, place_of_death)

            def dying(*a, killed=killed, original=original, **b):
                return killed(*a, original=original, **b)

            with monkeypatch.context() as patch:
                patch.setattr(owner, place_of_death, dying)
                if place_of_death != "register_arrays" or calls == 1:
                    with pytest.raises(KeyboardInterrupt):
                        build_pool("stopped", SETTINGS)
            assert not has_pool(open_run("stopped"))
    done = build_pool("stopped", SETTINGS)
    assert bytes_of(done.path) == expected
    run = open_run("stopped")
    stored = AttributionIndex.open(run, load_prism(run.model_path)[0])
    made = invert(stored.pool.arrays, N_PROTOTYPES)
    assert stored.inverted is not None
    assert all(map(np.array_equal, stored.inverted, made))
    with monkeypatch.context() as patch:
        patch.setattr(attribution, "row_statistics", None)  # a finished pool asks nothing more
        build_pool("stopped", SETTINGS)


def test_another_setting_makes_the_pool_again(place):
    """And what another left behind is not mixed in."""
    build_pool("mine", SETTINGS)
    again = build_pool("mine", PoolSettings(sequences=11, length=13, bits=4, device="cpu"))
    facts = again.manifest["stages"][POOL]
    assert (facts["sequences"], facts["tokens"], facts["bits"]) == (11, 11 * 12, 4)
    assert len(read_table(again, "attribution_sequences")) == 11
    assert check_run(again) == []


def test_the_pool_of_a_shipped_run_is_kept_in_the_cache_and_comes_first(place):
    """Nothing is written among the assets; built in place, it ships, until one is built here."""
    before = sorted(path.name for path in (place / "assets" / "shipped").rglob("*"))
    local = build_pool("shipped", SETTINGS)
    assert local.path == place / "cache" / POOL / "shipped" == pool_home(open_run("shipped"))
    assert sorted(path.name for path in (place / "assets" / "shipped").rglob("*")) == before
    build_pool("shipped", PoolSettings(sequences=3, length=LENGTH), in_place=True)
    assert find_pool(open_run("shipped")).path == local.path
    beside = pool_beside(open_run("shipped"))
    assert beside is not None
    assert beside.path == local.path
    assert pool_beside(open_run("mine")) is None
    shutil.rmtree(local.path)
    assert find_pool(open_run("shipped")).path == place / "assets" / "shipped"
    assert check_run(open_run("shipped")) == []


def test_a_pool_of_another_checkpoint_is_refused(place):
    """By fingerprint, with the command that makes it again; so is a run without one."""
    with pytest.raises(CacheMissing, match="headwater attribution-index --run mine") as caught:
        find_pool(open_run("mine"))
    assert_plain_sentence(str(caught.value))
    build_pool("mine", SETTINGS)
    writer = RunWriter.resume(place / "cache" / "mine")
    writer.begin_stage("train", {"more": 1})
    save_prism(place / "cache" / "mine" / "model", seed=7)
    writer.finish_stage("train", {})
    with pytest.raises(
        CacheStale, match=r"another checkpoint.*attribution-index --run mine"
    ) as old:
        find_pool(open_run("mine"))
    assert_plain_sentence(str(old.value))
    build_pool("mine", SETTINGS)
    assert has_pool(open_run("mine"))


def test_a_copy_to_ship_takes_some_of_the_pool_along(place):
    """Spread over the domains, with the numbers of the whole; its statistics are its own."""
    whole = build_pool("mine", SETTINGS)
    copy = publish("mine", place / "copy", pool=6)
    ids = ["doc_id", "start", "loss", "path_norm"]
    kept = read_table(copy, "attribution_sequences")
    every = read_table(whole, "attribution_sequences")
    assert kept["sequence"].tolist() == list(range(6))
    assert kept["domain"].value_counts().tolist() == [3, 3]
    assert len(kept[ids].merge(every[ids])) == 6
    assert copy.manifest["stages"][POOL]["drawn_from"] == SEQUENCES
    again = publish(str(place / "copy"), place / "again", pool=4)
    facts = again.manifest["stages"][POOL]
    assert (facts["sequences"], facts["drawn_from"]) == (4, SEQUENCES)
    assert check_run(copy) == []
    model, _ = load_prism(copy.model_path)
    small, large = (AttributionIndex.open(run, model) for run in (copy, open_run("mine")))
    _, rows = drawn(open_run("mine"))
    gradient = summed_gradient(row_statistics(model, rows), model.prototypes.detach(), "path")
    query = small.prepare(gradient, Variant("path"))
    place_of = {tuple(row): n for n, row in enumerate(every[ids[:2]].to_numpy().tolist())}
    chosen = [place_of[tuple(row)] for row in kept[ids[:2]].to_numpy().tolist()]
    np.testing.assert_allclose(
        small.scores([query])[0], large.scores([query])[0][chosen], rtol=1e-5, atol=1e-6
    )
    usage = read_table(copy, "attribution_prototypes")["usage"].to_numpy()
    np.testing.assert_allclose(usage, small.pool.co_usage().diagonal)
    with pytest.raises(ConfigError, match="pool of 0 sequences"):
        publish("mine", place / "none", pool=0)
    shutil.rmtree(place / "cache" / "mine" / "attribution")
    publish("shipped", place / "without")
    assert not has_pool(open_run(place / "without"))


@pytest.mark.slow
def test_every_window_of_the_training_texts_can_be_stored(place):
    """Short last windows among them, padded and not predicted; every training token once."""
    run = open_run("mine")
    shards, _ = drawn(run)
    rows = every_window(shards, LENGTH)
    documents = shards.corpus.documents
    train = np.flatnonzero((documents["split"] == "train").to_numpy())
    assert rows.predicted.sum() == sum(shards.length(int(i)) for i in train)
    assert rows.length.min() < LENGTH
    for row in range(len(rows)):
        text = shards.document_tokens(int(rows.document[row]))
        own = rows.tokens[row, 1:][rows.predicted[row]]
        assert own.tolist() == text[rows.start[row] : rows.start[row] + len(own)].tolist()
    pool = build_pool("mine", PoolSettings(sequences=None, length=LENGTH, device="cpu"))
    assert pool.manifest["stages"][POOL]["tokens"] == rows.predicted.sum()
    assert read_table(pool, "attribution_sequences")["n_tokens"].tolist() == (
        rows.predicted.sum(1).tolist()
    )


def test_a_window_is_no_longer_than_the_model_reads(place):
    """A length beyond the context is cut to it."""
    pool = build_pool("mine", PoolSettings(sequences=3, length=10 * CONTEXT, device="cpu"))
    assert pool.manifest["stages"][POOL]["length"] == CONTEXT


def test_what_cannot_be_stored_is_said_in_a_sentence(place):
    """Too many sequences, a dense run, settings that mean nothing."""
    with pytest.raises(CorpusError, match="ask for 1 to"):
        build_pool("mine", PoolSettings(sequences=10_000, length=LENGTH))
    RunWriter.create(place / "cache" / "flat", name="flat", kind="dense", identity={}).finish_stage(
        "train", {}
    )
    with pytest.raises(UnsupportedModel, match="dense model without prototypes"):
        build_pool("flat", SETTINGS)
    for wrong in ({"sequences": 0}, {"length": 1}, {"seed": -1}):
        with pytest.raises(ConfigError):
            PoolSettings(**wrong)


def test_the_best_come_first_and_equal_ones_in_their_order():
    """All of them where fewer are there than were asked for."""
    scores = np.array([0.5, 2.0, -1.0, 2.0, 0.0])
    assert ranked(scores, 3)["sequence"].tolist() == [1, 3, 0]
    assert ranked(scores, 3)["rank"].tolist() == [1, 2, 3]
    assert ranked(scores, 9)["sequence"].tolist() == [1, 3, 0, 4, 2]


def test_the_tiny_model_has_the_sizes_the_facts_name(place):
    """What the index compares with the model when it is opened."""
    pool = build_pool("mine", SETTINGS)
    facts = pool.manifest["stages"][POOL]
    assert (facts["n_prototypes"], facts["d_model"]) == (N_PROTOTYPES, 24)
    assert len(VARIANTS) == 18
    assert torch.get_num_threads() == 1
