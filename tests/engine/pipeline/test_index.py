"""An index end to end on a small model whose prototypes are planted on three topics."""

import shutil

import numpy as np
import pytest
import torch
from transformers import LlamaConfig

from engine.config import CorpusConfig, IndexConfig, LossWeights
from engine.corpus.build import build_corpus
from engine.corpus.shards import tokenise_corpus
from engine.corpus.tokenizer import corpus_tokenizer, load_tokenizer
from engine.devices import Device
from engine.pipeline import index
from engine.pipeline.index import index_run
from engine.prism.configuration import PrismConfig
from engine.prism.model import PrismForCausalLM
from engine.store import RunWriter, check_run, open_run, read_table


TOPICS = {
    "garden": "rose tulip soil spade seed leaf root stem petal bloom weed hedge",
    "harbour": "ship sail anchor rope tide dock mast crew hull deck cargo wave",
    "unwanted": "mud grime filth slime sludge stain rot mould dross scum muck soot",
}
"""Words of each topic; no word belongs to two."""
CONFIG = IndexConfig(
    max_tokens=6_000,
    context=23,
    n_top=5,
    n_quantiles=3,
    per_quantile=2,
    window_before=6,
    window_after=3,
    n_signature=4,
    n_bins=10,
    n_neighbours=3,
    shard_tokens=300,
    batch_size=7,
    device="cpu",
)
TABLES = (
    "documents",
    "prototypes",
    "prototype_examples",
    "prototype_histograms",
    "prototype_signatures",
    "prototype_domains",
    "prototype_neighbours",
    "prototype_activations",
    "token_residuals",
    "concepts",
)


def topic_text(words, generator):
    """Sentences of one topic's words."""
    sentences = [" ".join(generator.choice(words, 6)) + "." for _ in range(4)]
    return " ".join(sentences)


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """A cache with a built corpus and a run whose first prototypes lie on the topics."""
    root = tmp_path_factory.mktemp("planted")
    generator = np.random.default_rng(0)
    for topic, words in TOPICS.items():
        folder = root / "texts" / topic
        folder.mkdir(parents=True)
        for number in range(20):
            (folder / f"{number:02d}.txt").write_text(topic_text(words.split(), generator))
    settings = CorpusConfig(preset=None, path=str(root / "texts"))
    corpus = build_corpus(settings, root / "cache" / "corpus", root / "cache" / "packages")
    tokenizer = corpus_tokenizer(corpus, 601)
    model = planted_model(corpus, tokenizer)
    run = root / "cache" / "planted"
    identity = {"corpus": {"name": corpus.name, "fingerprint": corpus.fingerprint}}
    writer = RunWriter.create(run, name="planted", kind="prism", identity=identity)
    model.save_pretrained(run / "model")
    shutil.copy(tokenizer, run / "model" / "tokenizer.json")
    writer.finish_stage("train", {})
    return root


def planted_model(corpus, tokenizer):
    """A random decoder; prototypes 0, 1, 2 are the mean states of the topics, the rest random."""
    torch.manual_seed(3)
    decoder = LlamaConfig(
        vocab_size=601,
        hidden_size=28,
        intermediate_size=38,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=29,
        tie_word_embeddings=False,
    )
    config = PrismConfig.for_backbone(
        decoder, weights=LossWeights(), n_prototypes=13, n_active=2, cosine_chunk=11
    )
    model = PrismForCausalLM(config).eval()
    tokens = tokenise_corpus(corpus, load_tokenizer(tokenizer))
    means = []
    for documents in corpus.domains.values():
        states = []
        for document in range(documents.first, documents.stop):
            ids = torch.tensor(np.array(tokens.document_tokens(document)[:22], np.int64))[None]
            states.append(model(input_ids=ids, return_prototypes=True).states[0])
        means.append(torch.cat(states).mean(dim=0))
    means = torch.stack(means).detach()
    with torch.no_grad():
        model.prototypes[:3] = means - means.mean(dim=0)
    return model


EXACT = Device(device=torch.device("cpu"), dtype=torch.float64, reason="exact")
"""In float64 the batch a window is in does not show in its activations."""


@pytest.fixture(autouse=True)
def _exact(monkeypatch):
    monkeypatch.setattr(index, "resolve_device", lambda _: EXACT)


@pytest.fixture
def run(template, tmp_path, monkeypatch):
    """A fresh copy of the planted run."""
    shutil.copytree(template / "cache", tmp_path / "cache")
    monkeypatch.setenv("HEADWATER_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "planted"


@pytest.fixture(scope="module")
def indexed(template):
    """The planted run with its index; read it, never write it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEADWATER_CACHE", str(template / "cache"))
        patch.setattr(index, "resolve_device", lambda _: EXACT)
        target = template / "cache" / "indexed"
        shutil.copytree(template / "cache" / "planted", target)
        return index_run(target, CONFIG)


def tables_of(run, skip=()):
    """Every table of a run as frames."""
    opened = open_run(run)
    return {name: read_table(opened, name) for name in TABLES if name not in skip}


def assert_same(left, right):
    """Tables equal to the last bit, but for float32 sums of other orders."""
    assert left.keys() == right.keys()
    for name, frame in left.items():
        for column in frame.columns:
            first, second = frame[column].tolist(), right[name][column].tolist()
            message = f"{name}.{column}"
            if frame[column].dtype.kind == "f":
                assert np.allclose(first, second, atol=1e-6, equal_nan=True), message
            else:
                assert str(first) == str(second), message


def changed(**settings):
    """The configuration with other settings."""
    return IndexConfig(**{**CONFIG.__dict__, **settings})


def test_every_table_is_written_and_whole(indexed):
    """A run that `check` accepts, with the labels' control beside them."""
    done = indexed
    assert check_run(done) == []
    assert set(TABLES) <= set(done.tables)
    assert (
        done.manifest["stages"]["index"]["tokens_scanned"] == done.tables["token_residuals"]["rows"]
    )
    assert done.manifest["config"]["index"]["n_top"] == 5


def test_planted_prototypes_belong_to_their_topics(indexed):
    """Domain mix, examples and concept must all point at the planted topic."""
    done = indexed
    prototypes = read_table(done, "prototypes").set_index("prototype")
    documents = read_table(done, "documents").set_index("document")
    for number, topic in enumerate(TOPICS):
        assert prototypes.loc[number, "top_domain"] == topic
        examples = read_table(done, "prototype_examples", where={"prototype": number, "band": 0})
        assert (documents.loc[examples["document"], "domain"] == topic).mean() >= 0.8
    assert 2 in read_table(done, "concepts")["prototype"].tolist()


def test_tables_follow_from_the_activations(indexed):
    """Counts, extremes, histograms and examples against a plain look at every activation."""
    done = indexed
    activations = read_table(done, "prototype_activations")
    prototypes = read_table(done, "prototypes").set_index("prototype")
    n_tokens = done.tables["token_residuals"]["rows"]
    for number, rows in activations.groupby("prototype"):
        values = rows["activation"].to_numpy(np.float64)
        row = prototypes.loc[number]
        assert row["n_active_tokens"] == len(rows)
        assert row["firing_rate"] == pytest.approx(len(rows) / n_tokens)
        assert row["mean_activation"] == pytest.approx(values.mean(), abs=1e-6)
        assert row["max_activation"] == pytest.approx(values.max())
        assert row["n_documents"] == rows["document"].nunique()
        found = read_table(done, "prototype_histograms", where={"prototype": number})
        expected = np.histogram(np.minimum(values, 1 - 1e-9), bins=10, range=(0, 1))[0]
        assert found["count"].tolist() == expected.tolist()


def test_windows_show_the_activation_of_their_prototype_at_every_token(indexed):
    """A heat-strip is drawn from these numbers; a shift by one token would mislead."""
    done = indexed
    frame = read_table(done, "prototype_activations")
    known = frame.set_index(["prototype", "document", "position"])["activation"].to_dict()
    examples = read_table(done, "prototype_examples")
    for row in examples.itertuples():
        strip = [
            known.get((row.prototype, row.document, row.window_start + i), 0.0)
            for i in range(len(row.window_activations))
        ]
        assert row.window_activations == pytest.approx(strip)
        assert row.window_activations[row.position - row.window_start] == row.activation
        assert row.position - row.window_start <= CONFIG.window_before


@pytest.mark.parametrize("settings", [{"shard_tokens": 997}, {"batch_size": 3}])
def test_tables_do_not_depend_on_shards_or_batches(indexed, run, settings):
    """How the work was cut says nothing about the text."""
    index_run(run, changed(**settings))
    assert_same(tables_of(indexed.path), tables_of(run))


def test_an_interrupted_index_resumes_and_ends_with_the_same_tables(indexed, run, monkeypatch):
    """Shards that were written are not scanned again, and nobody sees a half-made index."""
    real, calls = index.scan_shard, []

    def failing(*args, **settings):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(*args, **settings)

    monkeypatch.setattr(index, "scan_shard", failing)
    with pytest.raises(KeyboardInterrupt):
        index_run(run, CONFIG)
    assert not open_run(run).has("prototypes")
    index_run(run, CONFIG)
    n_shards = len(indexed.tables["prototype_activations"]["files"])
    assert len(calls) == n_shards + 1
    assert_same(tables_of(indexed.path), tables_of(run))
    index_run(run, CONFIG)
    assert len(calls) == n_shards + 1
