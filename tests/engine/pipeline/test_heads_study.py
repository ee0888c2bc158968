"""A tiny emergence study: its parts, its tables, killed and resumed, changed by hand."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from engine.cli import app as command
from engine.cli.heads_mixture_file import read_mixtures
from engine.config import CorpusConfig
from engine.corpus.build import build_corpus
from engine.errors import CacheMissing, CacheStale, ConfigError
from engine.mda.arms import delete
from engine.mda.settings import DecoderConfig, EkfacConfig, ProbeConfig
from engine.pipeline.heads_intervene import intervene
from engine.pipeline.heads_mixtures import try_mixtures
from engine.pipeline.heads_settings import ARMS, HeadStudy, Intervention, Mixture
from engine.pipeline.heads_study import run_study
from engine.pipeline.heads_workspace import open_workspace
from engine.store import check_run, open_run, read_table
from tests.assertions import assert_plain_sentence


TABLES = ("head_scores", "head_losses", "head_arms", "head_samples", "head_influence")
ROWS, WINDOW = 5, 12


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(build_corpus(CorpusConfig(preset="tiny"), tmp_path_factory.mktemp("corpora")).path)


def settings(corpus: str, **changes) -> HeadStudy:
    """Heads count as formed at the first look, so the window begins at once."""
    tiny = HeadStudy(
        corpus=corpus,
        n_layers=2,
        d_model=12,
        n_heads=3,
        context=37,
        batch_size=ROWS,
        onset_score=0.0,
        lead_steps=4,
        window_steps=WINDOW,
        longest_steps=40,
        evaluate_every=4,
        checkpoint_every=4,
        top_share=0.2,
        ekfac_samples=20,
        held_out_rows=3,
        seeds=2,
        units={"induction": 2, "previous_token": 1},
        exchange_seeds=1,
        probe=ProbeConfig(sequences=3, length=16),
    )
    return dataclasses.replace(tiny, **changes)


@pytest.fixture(scope="module")
def cache(corpus: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache in which the study was done once."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEADWATER_CACHE", str(folder))
        patch.setenv("HEADWATER_ASSETS", str(folder / "none"))
        run_study(settings(corpus), "heads")
    return folder


@pytest.fixture
def finished(corpus: str, cache: Path, monkeypatch: pytest.MonkeyPatch):
    """Settings, run and workspace of the study that was done."""
    monkeypatch.setenv("HEADWATER_CACHE", str(cache))
    return settings(corpus), open_run("heads"), open_workspace(settings(corpus))


def test_every_arm_of_every_seed_is_there_and_the_run_is_whole(finished) -> None:
    study, run, _ = finished
    check_run(run)
    arms = read_table(run, "head_arms")
    for seed in (0, 1):
        own = arms[arms["seed"] == seed]
        found = list(zip(own["arm"], own["unit"], strict=True))
        assert sorted(found) == sorted([("baseline", ""), *study.arms_of(seed)])
    assert set(study.arms_of(0)) == {
        *((arm, "") for arm in ARMS[:2]),
        *((arm, unit) for arm in ARMS[2:] for unit in ("induction", "previous_token")),
    }
    assert study.arms_of(1) == [
        *((arm, "") for arm in ARMS[:2]),
        ("delete_top", "induction"),
        ("augment_top", "induction"),
    ]
    count = study.n_selected
    assert count == round(0.2 * WINDOW * ROWS)
    by_arm = arms[arms["seed"] == 0].set_index(["arm", "unit"])
    assert tuple(by_arm.loc[("replace_top", "induction"), ["n_deleted", "n_inserted"]]) == (12, 12)
    assert tuple(by_arm.loc[("augment_top", "induction"), ["n_deleted", "n_inserted"]]) == (0, 12)


def test_arms_leave_the_baseline_at_the_branch_alone(finished) -> None:
    """An arm that deletes nothing is the baseline, evaluation by evaluation."""
    _, _, workspace = finished
    seed = workspace.seed(0)
    again = seed.arm_result(delete("none", []), "")
    ends = {row["step"]: row for row in seed.facts["curve"]}
    for row in again["curve"]:
        assert row == ends[row["step"]]


def test_samples_say_where_they_stand_and_what_they_are(finished) -> None:
    study, run, workspace = finished
    samples = read_table(run, "head_samples")
    assert len(samples) == 2 * WINDOW * ROWS
    documents = read_table(run, "documents").set_index("document")["domain"]
    planted = samples["domain"] == "planted"
    assert (samples.loc[planted, "document"] == -1).all()
    assert (samples.loc[planted, "segment"] > 0).all()
    natural = samples[~planted]
    assert (documents.loc[natural["document"]].to_numpy() == natural["domain"]).all()
    stream = workspace.seed(1).stream
    later = natural[(natural["seed"] == 1) & (natural["position"] > 0)]
    row = later.iloc[7]
    tokens = stream.batch(int(row["step"]))[row["row"]]
    own = workspace.shards.run(int(row["document"]))[1:]  # the separator is no token of it
    run_of = own[row["position"] :][: study.context + 1]
    assert np.array_equal(tokens[: len(run_of)], run_of)
    assert samples["loss"].between(0, 10 * study.context).all()
    assert (samples["tags"] != "").all()


def test_the_top_samples_are_those_with_the_largest_influence(finished) -> None:
    """What an arm changes can be told from the shipped table alone."""
    study, run, workspace = finished
    choices = read_table(run, "head_choices").set_index(["seed", "unit"])
    influence = read_table(run, "head_influence")
    choice = choices.loc[(0, "induction")]
    own = influence[(influence["seed"] == 0) & (influence["unit"] == "induction")]
    place = list(choice["heads"]).index(f"{choice['layer']}.{choice['head']}")
    scores = np.stack(list(own["influence"]))[:, place]
    order = np.argsort(-scores, kind="stable")[: study.n_selected]
    expected = sorted(zip(own["step"].iloc[order], own["row"].iloc[order], strict=True))
    assert workspace.seed(0).selection("induction") == expected


def test_a_killed_study_ends_with_the_same_tables(finished, corpus: str, tmp_path: Path) -> None:
    """Its parts are taken up, whichever are missing."""
    study, run, workspace = finished
    before = {name: read_table(run, name) for name in TABLES}
    folder = workspace.seed(0).folder
    kept = (folder / "arm-delete_top-induction.json").read_bytes()
    for name in ("arm-delete_top-induction.json", "arm-synthetic-induction.json"):
        (folder / name).unlink()
    (folder / "influence-previous_token.json").unlink()
    again = run_study(study, tmp_path / "again")
    assert (folder / "arm-delete_top-induction.json").read_bytes() == kept
    for name, frame in before.items():
        pd.testing.assert_frame_equal(read_table(again, name), frame)


def test_the_run_of_another_study_is_not_overwritten(finished) -> None:
    study, run, _ = finished
    other = dataclasses.replace(study, repeat_share=0.4, seeds=1, units={}, arms="")
    with pytest.raises(CacheStale):
        run_study(other, run.path)


def test_a_seed_without_heads_has_a_baseline_alone(finished, tmp_path: Path) -> None:
    study, _, _ = finished
    never = dataclasses.replace(study, onset_score=1.0, seeds=1)
    run = run_study(never, tmp_path / "never")
    assert run.manifest["stages"]["study"]["emerged"] == 0
    assert set(read_table(run, "head_scores")["arm"]) == {"baseline"}
    assert not run.has("head_influence")
    with pytest.raises(CacheMissing, match="No head formed in seed 0"):
        intervene(never, 0, Intervention())


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"onset_score": 1.0}, "No induction head formed in 1 seed within 40 steps; raise"),
        ({"units": {}, "arms": ""}, "This study has no arms of a kind of head"),
    ],
)
def test_a_study_without_effects_says_why_and_keeps_its_tables(
    finished, tmp_path: Path, changes: dict, said: str
) -> None:
    """That no head forms is a result and no failure."""
    study = dataclasses.replace(finished[0], seeds=1, **changes)
    file = tmp_path / "settings.json"
    file.write_text(json.dumps(dataclasses.asdict(study)), encoding="utf-8")
    words = ["heads", "study", "--config", str(file), "--run", str(tmp_path / "bare"), "--json"]
    done = CliRunner().invoke(command.app, words)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout) == []
    sentence = done.stderr.strip().splitlines()[-1]
    assert said in sentence
    assert_plain_sentence(sentence)
    assert open_run(tmp_path / "bare").has("head_scores")


def test_heads_that_form_at_the_very_end_have_a_whole_window(
    corpus: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The baseline goes on past the step at which it would have been given up."""
    monkeypatch.setenv("HEADWATER_CACHE", str(tmp_path / "late"))
    late = open_workspace(settings(corpus, longest_steps=4)).seed(0)
    late.baseline()
    assert late.facts["onset"] == 4
    assert late.facts["end"] == late.facts["curve"][-1]["step"] == WINDOW
    assert late.last_kept == WINDOW
    late.model_at(late.last_kept)


def test_an_intervention_agrees_with_the_arm_of_the_study(finished) -> None:
    """Deleting the top samples of the chosen head is the study's arm."""
    study, _, workspace = finished
    found = intervene(study, 0, Intervention(share=study.top_share))
    seed = workspace.seed(0)
    arm = json.loads(seed.arm_path("delete_top", "induction").read_text(encoding="utf-8"))
    base = {row["step"]: row for row in seed.facts["curve"]}
    layer, head = (int(part) for part in found["head"].split("."))
    changes = [
        row["heads"]["prefix_matching"][layer][head]
        - base[row["step"]]["heads"]["prefix_matching"][layer][head]
        for row in arm["curve"]
    ]
    assert found["effects"]["score"] == pytest.approx(np.mean(changes), abs=1e-6)
    assert found["n"] == study.n_selected
    with pytest.raises(ConfigError, match=r"no head 4\.0"):
        intervene(study, 0, Intervention(head=(4, 0)))
    with pytest.raises(ConfigError, match="no kind of head 'nose'"):
        intervene(study, 0, Intervention(unit="nose"))


def test_mixtures_say_what_formed(finished, tmp_path: Path) -> None:
    study, run, _ = finished
    file = tmp_path / "mixtures.json"
    file.write_text('[{"name": "code", "domain_weights": {"code": 1.0}, "repeat_share": 0.5}]')
    done = try_mixtures(study, read_mixtures(file), run.path)
    table = read_table(done, "head_mixtures")
    assert table["tokens_seen"].tolist() == [s * ROWS * study.context for s in table["step"]]
    assert table["prefix_matching"].between(0, 1).all()
    assert open_run(run.path).has("head_effects")
    file.write_text('[{"name": "code"}]')
    with pytest.raises(ConfigError, match="no list of mixtures"):
        read_mixtures(file)
    assert Mixture(name="a", domain_weights={}, repeat_share=0.2).of(study).repeat_share == 0.2


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"domain_weights": 5}, "mixture 1: domain_weights is 5; it must be an object"),
        ({"repeat_share": "x"}, 'mixture 1: repeat_share is "x"; it must be a finite number'),
        ({"repeat_share": 1.5}, "mixture 1: repeat_share is 1.5; it must be 0 or more, and 1"),
        ({"seeds": -1}, "mixture 1: seeds is -1; it must be 1 or more"),
        ({"name": ["x"]}, r'mixture 1: name is \["x"\]; it must be a text'),
        ({"colour": "red"}, "holds no list of mixtures"),
    ],
)
def test_a_mixture_that_cannot_be_is_refused(tmp_path: Path, changes: dict, said: str) -> None:
    """Before anything is trained, with its place in the file."""
    file = tmp_path / "mixtures.json"
    whole = {"name": "code", "domain_weights": {"code": 1}, "repeat_share": 0.5}
    file.write_text(json.dumps([whole]))
    assert read_mixtures(file) == [
        Mixture(name="code", domain_weights={"code": 1.0}, repeat_share=0.5)
    ]
    file.write_text(json.dumps([whole | changes]))
    with pytest.raises(ConfigError, match=said) as refused:
        read_mixtures(file)
    assert_plain_sentence(str(refused.value))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"longest_steps": 0}, r"longest_steps is 0; it must be evaluate_every \(4\) or more"),
        ({"longest_steps": -1}, "longest_steps is -1"),
        ({"held_out_rows": 0}, "held_out_rows is 0; it must be positive"),
        ({"units": {"foo": 1}}, "no kind of head; choose from induction, previous_token, dup"),
        ({"units": {"induction": -1}}, "induction -1 seeds; it must be 0 or more"),
        ({"onset_score": -5}, "onset_score is -5; it must be 0 or more, and 1 at most"),
        ({"insertion_share": 5}, "insertion_share is 5; it must be above 0, and 1 at most"),
        ({"seeds": 10**23}, "it must be 1 or more, and 32767 at most"),
        ({"repeat_share": 2.0}, r"repeat_share is 2\.0"),
        ({"n_heads": 5}, "not divisible by 5 heads"),
    ],
)
def test_a_study_that_cannot_be_is_refused_up_front(corpus: str, changes: dict, said: str) -> None:
    with pytest.raises(ConfigError, match=said) as refused:
        settings(corpus, **changes)
    assert_plain_sentence(str(refused.value))


@pytest.mark.parametrize("kind", [ProbeConfig, EkfacConfig, DecoderConfig])
@pytest.mark.parametrize("seed", [-1, 99999999999999999999999])
def test_a_seed_that_no_generator_takes_is_refused(kind: type, seed: int) -> None:
    with pytest.raises(ConfigError, match=f"seed is {seed}; it must be 0 or more, and 92"):
        kind(seed=seed)


def test_settings_that_cannot_work_are_refused(corpus: str) -> None:
    with pytest.raises(ConfigError, match="no arm"):
        settings(corpus, arms="delete_top,paint")
    with pytest.raises(ConfigError, match="top_share"):
        settings(corpus, top_share=1.0)
    with pytest.raises(ConfigError, match="share"):
        Intervention(share=0.0)


def test_the_branch_is_a_kept_state_before_the_onset(corpus: str) -> None:
    study = settings(corpus, lead_steps=30, checkpoint_every=8)
    assert study.branch_of(61) == 24
    assert study.branch_of(7) == 0
