"""Attribution of a loaded run: queries, results, details, and what cannot be asked."""

import shutil
from copy import copy

import numpy as np
import pytest

from engine.config import CorpusConfig
from engine.corpus.build import build_corpus
from engine.errors import CacheMissing, ConfigError, PromptError, UnsupportedModel
from engine.live import AttributionQuery, LiveEngine, attribution_pool
from engine.live.attribution import DEFAULT_VARIANT
from engine.live.attribution_pool import PoolTexts
from engine.pipeline.attribution import build_pool
from engine.pipeline.attribution_rows import PoolSettings
from engine.prism.attribution.scoring import score_sequences
from engine.snippets import SnippetReader, tokenizer_of
from engine.store import RunWriter
from tests.assertions import assert_plain_sentence
from tests.engine.tiny_models import CONTEXT, VOCAB, save_dense, save_prism


SEQUENCES, LENGTH = 19, 13
PROMPT = "the dog sleeps by the river bank"


@pytest.fixture(scope="module")
def house_of_run(tmp_path_factory):
    """A corpus, a run made from it, and its pool."""
    root = tmp_path_factory.mktemp("live")
    generator = np.random.default_rng(0)
    words = ["the", "quick", "brown", "fox", "dog", "river", "bank", "valley", "word", "lazy"]
    for topic in ("one", "two"):
        (root / "texts" / topic).mkdir(parents=True)
        for number in range(23):
            text = " ".join(generator.choice(words, 23)) + "."
            (root / "texts" / topic / f"{number:02d}.txt").write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        for name in ("cache", "assets"):
            (root / name).mkdir()
            patch.setenv(f"HEADWATER_{name.upper()}", str(root / name))
        corpus = build_corpus(CorpusConfig(preset=None, path=str(root / "texts")))
        identity = {"corpus": {"name": corpus.name, "fingerprint": corpus.fingerprint}}
        writer = RunWriter.create(
            root / "cache" / "mine", name="mine", kind="prism", identity=identity
        )
        writer.begin_stage("train", {})
        save_prism(root / "cache" / "mine" / "model")
        writer.finish_stage("train", {})
        build_pool("mine", PoolSettings(sequences=SEQUENCES, length=LENGTH, device="cpu"))
    return root


@pytest.fixture
def engine(house_of_run, monkeypatch):
    """The run, loaded; nothing writes to its house."""
    for name in ("cache", "assets"):
        monkeypatch.setenv(f"HEADWATER_{name.upper()}", str(house_of_run / name))
    return LiveEngine.open("mine", device="cpu")


def test_results_are_the_largest_scores_with_their_ids_and_parts(engine):
    """Ranks from 1, scores falling; tokens and prototypes add up to a score."""
    query = AttributionQuery(PROMPT)
    found = engine.attribute(PROMPT, top=5)
    every = engine.attribution.scores(query)
    best = every.frame.sort_values("score", ascending=False, kind="stable").head(5)
    assert found.results["rank"].tolist() == [1, 2, 3, 4, 5]
    assert found.results["sequence"].tolist() == best["sequence"].tolist()
    assert set(found.seconds) == {"pass", "preparation", "search"}
    assert (found.scores.n_sequences, found.scores.n_tokens) == (
        SEQUENCES,
        SEQUENCES * (LENGTH - 1),
    )
    assert found.method == DEFAULT_VARIANT
    tokens = engine.attribution.token_scores(query, "cached", found.results["sequence"].tolist())
    added = tokens.groupby("sequence")["score"].sum()
    for row in found.results.to_dict("records"):
        assert added[row["sequence"]] == pytest.approx(row["score"], rel=1e-3, abs=1e-6)
        shares = engine.attribution.shares(query, "cached", row["sequence"])
        assert shares["share"].sum() == pytest.approx(row["score"], rel=1e-3, abs=1e-6)
        listed = found.shares[found.shares["rank"] == row["rank"]]
        assert listed["prototype"].tolist() == shares["prototype"].tolist()[: len(listed)]
        own = tokens[tokens["sequence"] == row["sequence"]]
        assert "".join(own["token"]) == engine.attribution.text(row["sequence"]) != ""
        assert own["position"].tolist() == list(range(row["position"], row["position"] + 12))


def test_a_query_is_the_sum_of_its_predictions(engine):
    """A span against each of its tokens as a target, and against scores made in memory."""
    ids = [token.token_id for token in engine.tokens(PROMPT)]
    first, last = 2, 5
    span = engine.attribution.scores(AttributionQuery(PROMPT, span=(first, last)))
    single = [
        engine.attribution.scores(AttributionQuery(PROMPT, target=ids[i], position=i - 1))
        for i in range(first, last + 1)
    ]
    total = sum(part.frame["score"].to_numpy() for part in single)
    scale = np.abs(total).max()
    np.testing.assert_allclose(span.frame["score"], total, rtol=1e-3, atol=1e-4 * scale)
    assert span.loss == pytest.approx(sum(part.loss for part in single), rel=1e-4)
    assert span.target_ids == tuple(ids[first : last + 1])
    texts = [token.text for token in engine.tokens(PROMPT)]
    assert span.target == "".join(texts[first : last + 1])
    tables = [engine.next_tokens(PROMPT, i - 1, VOCAB) for i in range(first, last + 1)]
    likelihoods = [
        table.set_index("token_id")["probability"][token]
        for table, token in zip(tables, span.target_ids, strict=True)
    ]
    assert span.loss == pytest.approx(-np.log(likelihoods).sum(), rel=1e-4)
    generated = engine.complete("the dog", n_tokens=4, seed=1).token_ids
    whole = engine.attribution.scores(AttributionQuery("the dog", generation=generated))
    assert whole.target_ids == generated


def test_the_likeliest_token_is_traced_where_none_is_named(engine):
    """As everywhere else."""
    likeliest = engine.next_tokens(PROMPT, n=1)["token_id"].iloc[0]
    assert engine.attribution.scores(AttributionQuery(PROMPT)).target_ids == (likeliest,)
    named = engine.attribute(PROMPT, int(likeliest), top=3)
    assert named.results.equals(engine.attribute(PROMPT, top=3).results)


def test_other_methods_score_the_same_pool(engine):
    """The exact gradient agrees with the cached one; neighbours are kept from call to call."""
    query = AttributionQuery(PROMPT)
    exact = engine.attribution.scores(query, "full").frame["score"].to_numpy()
    cached = engine.attribution.scores(query, "path").frame["score"].to_numpy()
    assert np.corrcoef(exact, cached)[0, 1] > 0.999
    assert np.abs(exact - cached).max() < 0.03 * exact.std()
    rows = engine.attribution.texts.rows()
    prism = engine.model.prism
    traced = engine.attribution.overlap(query, ["path+unit", "knn", "tfidf", "nothing"], 7)
    assert traced["method"].tolist() == ["path+unit", "knn", "tfidf", "nothing"]
    assert (traced["top"] == 7).all()
    assert traced["overlap"][:3].between(0, 1).all()
    assert "no attribution method" in traced["reason"][3]
    again = engine.attribution.scores(query, "knn").frame["score"].to_numpy()
    assert np.abs(again).max() <= 1.0001
    in_memory = score_sequences(prism, rows, rows, "path", bits=8)
    assert in_memory.shape == (SEQUENCES, SEQUENCES)
    with pytest.raises(ConfigError, match="says nothing of tokens or prototypes"):
        engine.attribution.shares(query, "knn", 0)
    with pytest.raises(ConfigError, match="says nothing of tokens or prototypes"):
        engine.attribution.token_scores(query, "knn", [0])


def test_a_pool_smaller_than_asked_for_is_shown_whole(engine):
    """With a notice that says how many there are."""
    found = engine.attribute(PROMPT, top=100)
    assert len(found.results) == SEQUENCES
    assert found.notices == (
        f"The pool holds {SEQUENCES} sequences, fewer than the 100 asked for; all are shown.",
    )
    assert engine.attribute(PROMPT, top=SEQUENCES).notices == ()


def test_a_long_prompt_is_read_from_its_end_with_a_notice(engine):
    """And a span that does not fit the context is refused with how many tokens fit."""
    long = " ".join(["the dog"] * CONTEXT)
    n = len(engine.tokens(long))
    assert n > CONTEXT
    found = engine.attribute(long, top=3)
    assert found.notices == (engine.notice(long),)
    with pytest.raises(PromptError, match=f"reads {CONTEXT} at once; choose a span of {CONTEXT}"):
        engine.attribute(long, span=(1, n - 1))
    whole = engine.attribute(long, span=(n - CONTEXT, n - 1), top=3)
    assert len(whole.scores.target_ids) == CONTEXT
    assert whole.notices != ()


@pytest.mark.parametrize(
    ("query", "says"),
    [
        (AttributionQuery(""), "prompt is empty"),
        (AttributionQuery(PROMPT, target="zzz zzz"), "is not one token of this model"),
        (AttributionQuery(PROMPT, target=VOCAB + 7), "is not in the vocabulary"),
        (AttributionQuery(PROMPT, position=99), "lies outside the prompt"),
        (AttributionQuery(PROMPT, span=(3, 99)), "lies outside the text"),
        (AttributionQuery(PROMPT, span=(5, 3)), "lies outside the text"),
        (AttributionQuery(PROMPT, span=(0, 3)), "begin the span at token 1"),
        (AttributionQuery(PROMPT, generation=(VOCAB + 7,)), "is not in the vocabulary"),
    ],
)
def test_a_query_that_cannot_be_read_is_refused_in_a_sentence(engine, query, says):
    """What was wrong, and what to do."""
    with pytest.raises(PromptError, match=says) as caught:
        engine.attribution.attribute(query)
    assert_plain_sentence(str(caught.value))


def test_what_has_no_pool_says_which_command_makes_one(house_of_run, engine, tmp_path, monkeypatch):
    """A run without one, a model folder, a dense model, a method that is not there."""
    with pytest.raises(ConfigError, match="no attribution method 'nothing'"):
        engine.attribute(PROMPT, method="nothing")
    with pytest.raises(PromptError, match="choose 1 or more"):
        engine.attribute(PROMPT, top=0)
    with pytest.raises(PromptError, match="There is no sequence 99"):
        engine.attribution.shares(AttributionQuery(PROMPT), "cached", 99)
    monkeypatch.setenv("HEADWATER_CACHE", str(tmp_path))
    bare = tmp_path / "bare"
    shutil.copytree(house_of_run / "cache" / "mine" / "model", bare / "model")
    writer = RunWriter.create(bare, name="bare", kind="prism", identity={})
    writer.begin_stage("train", {})
    writer.finish_stage("train", {})
    with pytest.raises(CacheMissing, match="headwater attribution-index --run bare"):
        LiveEngine.open("bare", device="cpu").attribute(PROMPT)
    with pytest.raises(CacheMissing, match="is a model folder and not a run"):
        LiveEngine.open(str(bare / "model"), device="cpu").attribute(PROMPT)
    save_dense(tmp_path / "flat")
    with pytest.raises(UnsupportedModel, match="dense model without prototypes"):
        LiveEngine.open(str(tmp_path / "flat"), device="cpu").attribute(PROMPT)


def test_texts_are_empty_where_the_corpus_is_not_here(house_of_run, tmp_path, monkeypatch):
    """Scores need none of it: a shipped pool answers at once."""
    shutil.copytree(house_of_run / "cache" / "mine", tmp_path / "mine")
    monkeypatch.setenv("HEADWATER_CACHE", str(tmp_path))
    engine = LiveEngine.open("mine", device="cpu")
    found = engine.attribute(PROMPT, top=2)
    assert engine.attribution.text(int(found.results["sequence"].iloc[0])) == ""
    tokens = engine.attribution.token_scores(AttributionQuery(PROMPT), "cached", [3])
    assert (tokens["token_id"] == -1).all()
    overlap = engine.attribution.overlap(AttributionQuery(PROMPT), ["tfidf"])
    assert np.isnan(overlap["overlap"][0])
    assert overlap["reason"][0] != ""


def test_a_text_that_a_study_planted_is_read_from_its_run(engine, monkeypatch):
    """It is in no corpus; its words show, and methods that read the pool can score it."""
    number = 3
    row = engine.attribution.index.sequences.iloc[number]
    before = engine.attribution.text(number)
    words = engine.attribution.texts.rows().tokens[number]
    text = SnippetReader(
        engine.attribution.texts.corpus, tokenizer_of(engine.attribution.texts._run.model_path)
    ).document(str(row["doc_id"]))
    index = copy(engine.attribution.index)
    ids = index.sequences["doc_id"].astype(object).copy()
    ids.iloc[number] = "0" * 16
    index.sequences = index.sequences.assign(doc_id=ids)
    monkeypatch.setattr(attribution_pool, "planted_texts", lambda _run: {"0" * 16: text})
    texts = PoolTexts(index, engine.attribution.texts._run)
    assert "".join(token.text for token in texts.tokens(number)) == before != ""
    assert texts.rows().tokens[number].tolist() == words.tolist()
