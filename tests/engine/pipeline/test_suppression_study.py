from pathlib import Path

import pandas as pd
import pytest

from engine.corpus.build import Corpus
from engine.errors import CorpusError, PackageMissing, PromptError
from engine.live import LiveEngine, Sampler, Scores, Suppression
from engine.live.scores import Scorers
from engine.pipeline import suppression_study
from engine.pipeline.suppression_study import (
    CONDITIONS,
    PROGRESS_FILE,
    SuppressionStudy,
    held_out_prompts,
    recites,
    study_suppression,
    training_spans,
)
from engine.store import check_run, open_run, read_table
from tests.engine import tiny_models


STUDY = SuppressionStudy(generations=7, tokens=6, prompt_tokens=4, batch_size=3, seed=2)


class PlantedCorpus(Corpus):
    """Five unwanted documents, three of them held out, and one of another domain."""

    path = Path("planted")
    texts = (
        "the dog and the fox run over the river by the bank one two three",
        "words and numbers jump over the lazy valley and the quick dog sleeps",
        "a bank of the river runs and the fox sleeps near the valley",
        "one two three four five words over the bank",
        "the quick valley jumps over the brown river bank and the dog",
        "five numbers",
    )
    documents = pd.DataFrame(
        {
            "document": range(6),
            "doc_id": [f"{i:016x}" for i in range(6)],
            "domain": ["unwanted"] * 5 + ["fiction"],
            "split": ["train", "train", "validation", "validation", "validation", "validation"],
        }
    )

    def __init__(self) -> None:
        """Nothing is read from disk."""

    def text(self, document: int) -> str:
        return self.texts[document]


def planted_scores(_: Scorers, texts: list[str]) -> Scores:
    """Share of letters that are vowels, in place of a classifier."""
    shares = tuple(sum(c in "aeiou" for c in text) / max(1, len(text)) for text in texts)
    return Scores(shares, shares)


@pytest.fixture
def run_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(suppression_study, "run_corpus", lambda *_: PlantedCorpus())
    monkeypatch.setattr(Scorers, "score", planted_scores)
    return tiny_models.save_run(tmp_path / "tiny")


def test_every_condition_has_the_same_prompts_and_seeds(run_path: Path):
    """Rows are paired; only what is suppressed differs."""
    means = study_suppression(str(run_path), STUDY)
    table = read_table(open_run(run_path), "suppression")
    assert list(means) == list(CONDITIONS)
    assert len(table) == 3 * STUDY.generations
    shared = table.groupby("generation")[["doc_id", "seed"]].nunique()
    assert (shared == 1).all().all()
    assert table["seed"].nunique() == STUDY.generations
    assert table["doc_id"].nunique() == 3
    assert (table.loc[table["condition"] == "baseline", "tokens_touched"] == 0).all()
    assert (table.loc[table["condition"] == "baseline", "strength"] == 0).all()
    assert check_run(open_run(run_path)) == []


def test_a_row_is_what_the_page_would_generate(run_path: Path):
    """Batched or alone, the same prompt and seed give the same text, score and touched tokens."""
    study_suppression(str(run_path), STUDY)
    table = read_table(open_run(run_path), "suppression", where={"condition": "suppressed"})
    engine = LiveEngine.open(str(run_path))
    prompts = held_out_prompts(PlantedCorpus(), engine.codec, STUDY)
    for prompt, row in zip(prompts, table.itertuples(), strict=True):
        alone = engine.complete(
            "".join(engine.codec.texts(list(prompt.ids))),
            n_tokens=STUDY.tokens,
            seed=prompt.seed,
            sampler=Sampler(temperature=STUDY.temperature, top_p=STUDY.top_p),
            suppression=Suppression(engine.concept("NSFW"), 1.0),
        )
        assert row.tokens_touched == alone.tokens_touched
        assert row.n_tokens == alone.n_tokens
        assert engine.score([alone.text]).classifier == pytest.approx((row.classifier_score,))


def test_a_stopped_study_goes_on_after_the_last_condition(
    run_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The table after a kill and a second call equals that of one call."""
    whole = tiny_models.save_run(run_path.parent / "whole")
    study_suppression(str(whole), STUDY)
    measure = suppression_study._Bench.measure

    def killed(bench, condition, *rest):
        if condition == "random":
            raise KeyboardInterrupt
        return measure(bench, condition, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(suppression_study._Bench, "measure", killed)
        with pytest.raises(KeyboardInterrupt):
            study_suppression(str(run_path), STUDY)
    assert not open_run(run_path).has("suppression")
    assert (run_path / PROGRESS_FILE).is_file()
    measured = []

    def counted(bench, condition, *rest):
        measured.append(condition)
        return measure(bench, condition, *rest)

    monkeypatch.setattr(suppression_study._Bench, "measure", counted)
    study_suppression(str(run_path), STUDY)
    assert measured == ["random"]
    assert not (run_path / PROGRESS_FILE).exists()
    tables = [read_table(open_run(path), "suppression") for path in (run_path, whole)]
    assert tables[0].equals(tables[1])
    study_suppression(str(run_path), STUDY)
    assert measured == ["random"]  # done with the same settings: nothing is repeated


def test_the_facts_say_what_was_recited_and_what_the_control_was(run_path: Path):
    """A reader of the run sees the settings, the control set and the recited share."""
    study_suppression(str(run_path), STUDY)
    stage = open_run(run_path).manifest["stages"]["suppression"]
    facts = stage["concepts"]["NSFW"]
    assert stage["settings"]["generations"] == STUDY.generations
    assert set(facts["recited_share"]) == set(CONDITIONS)
    assert len(facts["control"]) == facts["n_prototypes"] == 3
    assert facts["n_prompts"] == 3


def test_recitation_is_a_verbatim_span_of_a_training_text():
    """Twelve tokens in a row count, eleven do not; held-out texts do not count."""
    from engine.live.text import Codec

    codec = Codec(tiny_models.tiny_tokenizer())
    corpus = PlantedCorpus()
    spans = training_spans(corpus, codec)
    train, held_out = (codec.encode(corpus.text(i)) for i in (0, 2))
    assert recites([1, 2, *train[:12], 3], spans)
    assert not recites([1, 2, *train[:11], 3], spans)
    assert not recites(held_out, spans)


def test_what_is_missing_is_said_before_anything_is_generated(
    run_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """A concept, a held-out text long enough, a scorer."""
    with pytest.raises(PromptError, match="no concept 'peace'"):
        study_suppression(str(run_path), SuppressionStudy(concept="peace"))
    with pytest.raises(CorpusError, match="more than 99 tokens"):
        study_suppression(str(run_path), SuppressionStudy(prompt_tokens=99))
    missing = Scores(None, (0.0, 0.0), ("The scorer is not installed.",))
    monkeypatch.setattr(Scorers, "score", lambda *_: missing)
    with pytest.raises(PackageMissing, match="not installed"):
        study_suppression(str(run_path), STUDY)
