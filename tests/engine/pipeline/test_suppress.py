"""The study from end to end on a tiny model, and killed at any of its steps."""

import dataclasses
import itertools
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from engine.errors import CorpusError, PromptError, ScorerFailed
from engine.live import LiveEngine, Sampler, Suppression
from engine.pipeline import suppress as module, suppression_figures, suppression_finding
from engine.pipeline.suppress import NOTES, suppress
from engine.pipeline.suppression_choice import Setting, choose, tried
from engine.pipeline.suppression_finding import largest_size
from engine.pipeline.suppression_generating import Notes, distinct, repetition
from engine.pipeline.suppression_prompts import PromptSource, recites, training_spans
from engine.pipeline.suppression_settings import SuppressionStudy
from engine.schema import SUPPRESSION_TABLES
from engine.store import check_run, open_run, read_table
from engine.store.concepts import read_concepts
from tests.engine.pipeline.planted_suppression import (
    Counting,
    PlantedCorpus,
    Vowels,
    save_indexed_run,
)


STUDY = SuppressionStudy(
    scorers=("classifier", "wordlist"),
    generations=11,
    ordinary_generations=7,
    choice_generations=6,
    sweep_generations=5,
    random_sets=2,
    sizes=(2, 99),
    strengths=(0.5, 1.0),
    largest_share=0.2,
    prices=(0.001, 0.0),
    rounds=(2, 50),
    tokens=5,
    prompt_tokens=4,
    batch_size=4,
    seed=2,
)


@pytest.fixture
def run_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    opened = {"classifier": Counting, "wordlist": Vowels}
    monkeypatch.setattr(suppression_figures, "RESAMPLES", 53)
    monkeypatch.setattr(suppression_finding, "RANKING_PROMPTS", 11)
    monkeypatch.setattr(suppression_finding, "ORDINARY_PROMPTS", 3)
    monkeypatch.setattr(module, "run_corpus", lambda *_: PlantedCorpus())
    monkeypatch.setattr(module, "open_scorer", lambda spec, **_: opened[spec]())
    return save_indexed_run(tmp_path / "tiny")


def tables_of(path: Path) -> dict[str, pd.DataFrame]:
    run = open_run(path)
    return {spec.name: read_table(run, spec.name) for spec in SUPPRESSION_TABLES}


def test_the_tables_agree_with_each_other_and_with_the_live_engine(run_path: Path):
    """Pairs share prompts and seeds; a row is what the page would generate; figures follow."""
    facts = suppress(str(run_path), STUDY)
    tables = tables_of(run_path)
    assert check_run(open_run(run_path)) == []
    assert not (run_path / NOTES).exists()
    rows = tables["suppression_generations"]
    assert (rows.groupby(["prompts", "condition"]).size() == [7, 7, 7, 11, 11, 11]).all()
    shared = rows.groupby(["prompts", "generation"])[["doc_id", "seed"]].nunique()
    assert (shared == 1).all().all()
    base = rows[rows["condition"] == "baseline"]
    assert (base[["tokens_touched", "strength"]] == 0).all().all()
    assert set(base.loc[base["prompts"] == "ordinary", "domain"]) == {"fiction", "law"}

    chosen = tables["suppression_prototypes"]
    own = tuple(chosen.loc[chosen["chosen"], "prototype"])
    assert len(own) == facts["chosen"]["size"] <= largest_size(STUDY, 37) == 7
    engine = LiveEngine.open(str(run_path))
    assert engine.concept("NSFW") == tuple(sorted(own))
    source = PromptSource(PlantedCorpus(), engine.codec, "unwanted", 4, STUDY.seed)
    prompts = source.unwanted("validation", 11)
    scores = tables["suppression_scores"]
    picked = {"prompts": "unwanted", "condition": "suppressed"}
    mine = rows[(rows[list(picked)] == pd.Series(picked)).all(axis=1)].set_index("generation")
    counted = scores[(scores[list(picked)] == pd.Series(picked)).all(axis=1)]
    counted = counted[counted["scorer"] == "classifier"].set_index("generation")
    for number, prompt in enumerate(prompts):
        alone = engine.complete(
            "".join(engine.codec.texts(list(prompt.ids))),
            n_tokens=STUDY.tokens,
            seed=prompt.seed,
            sampler=Sampler(temperature=STUDY.temperature, top_p=STUDY.top_p),
            suppression=Suppression(own, facts["chosen"]["strength"]),
        )
        assert mine.loc[number, "tokens_touched"] == alone.tokens_touched
        assert mine.loc[number, "n_tokens"] == alone.n_tokens
        assert counted.loc[number, "score"] == pytest.approx(Counting().score([alone.text])[0])

    buckets = tables["suppression_buckets"]
    whole = buckets[(buckets["bucket"] == 0) & (buckets["scorer"] == "classifier")]
    whole = whole.set_index(["prompts", "condition"])["mean"]
    assert whole["unwanted", "suppressed"] == pytest.approx(counted["score"].mean(), abs=1e-5)
    sweep = tables["suppression_sweep"]
    assert set(sweep["set_size"]) == {2, len(chosen)}
    assert set(sweep["split"]) == {"train", "validation"}
    assert sweep.loc[sweep["chosen"], "set_size"].nunique() == 1


@pytest.mark.slow
def test_a_study_killed_anywhere_ends_with_identical_tables(
    run_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """After every eighth batch, the first, and with it the ranking, among them."""
    whole = save_indexed_run(run_path.parent / "whole")
    suppress(str(whole), STUDY)
    remember, made = Notes.remember, []

    def counted(notes, step, make):
        def killed():
            if step not in made:
                made.append(step)
                if len(made) % 8 == 1:
                    raise KeyboardInterrupt
            return make()

        return remember(notes, step, killed)

    monkeypatch.setattr(Notes, "remember", counted)
    for _ in range(200):
        try:
            suppress(str(run_path), STUDY)
        except KeyboardInterrupt:
            assert not open_run(run_path).has("suppression_scores")
            continue
        break
    assert len(made) > 30
    found, expected = tables_of(run_path), tables_of(whole)
    for name, frame in expected.items():
        pd.testing.assert_frame_equal(found[name], frame, check_exact=True)
    n = len(made)
    suppress(str(run_path), STUDY)  # done with the same settings: nothing is repeated
    assert len(made) == n


def test_what_another_study_left_is_not_taken_over(run_path: Path):
    """Notes belong to settings and model."""
    notes = Notes(run_path / NOTES, "one")
    assert notes.remember("step", lambda: [0.1, 1]) == [0.1, 1]
    assert notes.remember("step", lambda: [9]) == [0.1, 1]
    assert Notes(run_path / NOTES, "two").remember("step", lambda: [9]) == [9]


@pytest.mark.slow
def test_a_scorer_that_fails_is_named_and_gives_no_number(
    run_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """In the middle of the study, after it scored some; the study is done again next time."""
    calls = []

    def late(_, texts):
        calls.append(len(texts))
        if len(calls) > 7:
            raise ScorerFailed("It broke.")
        return [0.5] * len(texts)

    monkeypatch.setattr(Vowels, "score", late)
    facts = suppress(str(run_path), STUDY)
    assert facts["failed"] == {"wordlist": "It broke."}
    tables = tables_of(run_path)
    row = tables["suppression_scorers"].set_index("scorer").loc["wordlist"]
    assert (bool(row["failed"]), row["reason"], row["n_scored"]) == (True, "It broke.", 0)
    for name in ("suppression_scores", "suppression_buckets"):
        assert set(tables[name]["scorer"]) == {"classifier"}
    calls.clear()
    monkeypatch.setattr(Vowels, "score", lambda _, texts: [0.5] * len(texts))
    assert suppress(str(run_path), STUDY)["failed"] == {}
    assert set(read_table(open_run(run_path), "suppression_scores")["scorer"]) == {
        "classifier",
        "wordlist",
    }


@pytest.mark.slow
def test_other_concepts_keep_their_rows(run_path: Path):
    """And their sets."""
    suppress(str(run_path), STUDY)
    before = tables_of(run_path)
    small = dataclasses.replace(STUDY, concept="dogs", words=("dog",), generations=5)
    suppress(str(run_path), small)
    after = tables_of(run_path)
    for name, frame in before.items():
        mine = after[name][after[name]["concept"] == "NSFW"].reset_index(drop=True)
        pd.testing.assert_frame_equal(mine, frame)
    assert set(read_concepts(open_run(run_path))) == {"NSFW", "dogs"}
    stage = open_run(run_path).manifest["stages"]["suppression"]
    assert set(stage["concepts"]) == {"NSFW", "dogs"}
    json.dumps(stage)


def test_what_is_missing_is_said_before_anything_is_generated(run_path: Path):
    """A word nobody knows, a domain nobody has, a prompt that is too long."""
    with pytest.raises(PromptError, match="loosest query that matches something is 'rive'"):
        suppress(str(run_path), dataclasses.replace(STUDY, words=("rivets",)))
    with pytest.raises(CorpusError, match="domain poems"):
        suppress(str(run_path), dataclasses.replace(STUDY, domain="poems"))
    with pytest.raises(CorpusError, match="more than 99 tokens"):
        suppress(str(run_path), dataclasses.replace(STUDY, prompt_tokens=99))


def settings(*rows: tuple[int, float, float]) -> list[Setting]:
    return [Setting(0.0, size, 1.0, fall, ratio - 0.03, ratio) for size, fall, ratio in rows]


@pytest.mark.parametrize(
    ("known", "size"),
    [
        (settings((5, 0.76, 1.05), (9, 0.8, 1.09), (20, 0.9, 1.2)), 9),
        (settings((5, 0.7, 1.05), (9, 0.8, 1.3), (20, 0.9, 1.2)), 20),
        (settings((5, 0.3, 1.05), (9, 0.5, 1.09), (20, 0.7, 1.2)), 9),
        (settings((5, 0.3, 1.5), (9, 0.5, 1.3)), 9),
    ],
)
def test_the_choice_follows_its_rule(known: list[Setting], size: int):
    """Far and near, else far, else near, else the least harm."""
    found = choose(known, STUDY)
    assert found.size == size
    assert found.rule


def test_only_the_first_scorer_and_the_set_itself_have_a_say():
    """Not the other scorers, not the random sets."""
    row = {"condition": "suppressed", "set_size": 5, "strength": 1.0, "drop": 0.1}
    row |= {"perplexity_ratio": 1.2, "perplexity_ratio_high": 1.3, "scorer": "classifier"}
    others = [row | {"scorer": "wordlist"}, row | {"condition": "random"}]
    assert tried([*others, row], 0.5, "classifier") == [Setting(0.5, 5, 1.0, 0.1, 1.2, 1.3)]


def test_a_set_stays_below_its_share_of_the_bank():
    """2 % of 4,096 is 81.92, of 100 it is 2, which is not below."""
    study = SuppressionStudy()
    assert largest_size(study, 4096) == 81
    assert largest_size(study, 100) == 1
    assert largest_size(study, 3) == 1


def test_prompts_repeat_evenly_with_seeds_of_their_own(run_path: Path):
    """Every opening as often as any other up to one; training prompts have other seeds."""
    codec = LiveEngine.open(str(run_path)).codec
    source = PromptSource(PlantedCorpus(), codec, "unwanted", 4, 3)
    prompts = source.unwanted("validation", 7)
    counts = pd.Series([prompt.doc_id for prompt in prompts]).value_counts()
    assert sorted(counts) == [2, 2, 3]
    parts = [prompts, *(source.unwanted(split, 7) for split in ("train", "choice"))]
    for one, other in itertools.combinations(parts, 2):
        assert not {p.seed for p in one} & {p.seed for p in other}
        assert not {p.doc_id for p in one} & {p.doc_id for p in other}
    ordinary = source.ordinary("validation", 4)
    assert [prompt.domain for prompt in ordinary[:2]] == ["fiction", "law"]
    longer = source.unwanted("validation", 11)
    assert longer[:7] == prompts


def test_recitation_is_a_verbatim_span_of_a_training_text():
    """Twelve tokens in a row count, eleven do not."""
    text = list(range(50, 70))
    spans = training_spans([text])
    assert recites([1, 2, *text[:12], 3], spans)
    assert not recites([1, 2, *text[:11], 3], spans)


def test_variety_and_repetition_are_counted():
    """By hand."""
    ids = [1, 2, 1, 2, 3]
    assert [distinct(ids, n) for n in (1, 2, 3)] == [3 / 5, 3 / 4, 1.0]
    assert repetition(ids) == 2 / 5
    assert (distinct([], 1), repetition([])) == (1.0, 0.0)
    assert repetition([7, *range(100, 116), 7]) == 0.0
    assert np.isclose(repetition([7, *range(100, 115), 7]), 1 / 17)
