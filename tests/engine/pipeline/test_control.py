"""The control and downstream stages on tiny models: tables that agree with each other."""

import json

import numpy as np
import pytest
import torch

from engine.control.sae import SaeReport, SparseAutoencoder
from engine.errors import CacheMissing, ConfigError, UnsupportedModel
from engine.pipeline import control, control_reading, control_sae
from engine.pipeline.control import ControlStudy, study_control
from engine.pipeline.downstream import DownstreamStudy, chosen, study_downstream
from engine.questions import read_set
from engine.store import RunWriter, open_run, read_table
from tests.engine.tiny_models import N_PROTOTYPES, TEXTS, save_dense, save_run


WORDS = sorted({word.strip(",:") for text in TEXTS for word in text.split()})
N_QUESTIONS = 131


@pytest.fixture
def questions(tmp_path):
    """A file of questions of two to four options."""
    generator = np.random.default_rng(0)
    path = tmp_path / "words.jsonl"
    rows = []
    for number in range(N_QUESTIONS):
        options = list(generator.choice(WORDS, generator.integers(2, 5), replace=False))
        text = f"{number} {' '.join(generator.choice(WORDS, 3))}"
        answer = int(generator.integers(len(options)))
        rows.append({"question": text, "options": options, "answer": answer})
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return str(path)


@pytest.fixture
def run(house):
    """A run with a random prototype model."""
    return save_run(house / "cache" / "mine")


@pytest.fixture
def autoencoder(monkeypatch):
    """A random autoencoder in the place of a trained one: only its form matters here."""
    torch.manual_seed(11)
    found = SparseAutoencoder(
        torch.randn(31, 24), torch.zeros(31), torch.randn(31, 24), torch.zeros(24), 4
    )
    report = SaeReport(
        residual_share=0.4,
        variance_explained=0.5,
        dead_share=0.1,
        held_out_states=13,
        training_states=101,
        samples=997,
    )
    monkeypatch.setattr(control, "autoencoder_of", lambda *_: (found, report))
    return found


def test_tables_of_the_study_agree_with_each_other(run, questions, autoencoder):
    """Accuracies, gains and traces are all counted from the same answers."""
    study = ControlStudy(sets=(questions,), seeds=3, max_nonzeros=7)
    done = study_control(run.name, study)
    answers = read_table(done, "control_answers")
    results = read_table(done, "control_results")
    assert set(results["condition"]) == {"none", "per-byte", "prototypes", "sae"}
    for row in results.to_dict("records"):
        own = answers[answers["seed"] == row["seed"]]
        right = own[f"{row['condition'].replace('-', '_')}_choice"] == own["answer"]
        assert row["n_test"] == len(own)
        assert row["accuracy"] == pytest.approx(right.mean(), abs=1e-6)
        assert row["n_train"] + row["n_validation"] + row["n_test"] == N_QUESTIONS
        assert row["nonzeros"] <= 7
    gains = read_table(done, "control_gains").set_index(["set", "comparison"])
    difference = (answers["prototypes_choice"] == answers["answer"]).astype(float) - (
        answers["sae_choice"] == answers["answer"]
    )
    for name in ("words", "mean"):
        assert gains.loc[(name, "prototypes-sae"), "gain"] == pytest.approx(
            100 * difference.mean(), abs=1e-4
        )
    known = read_table(done, "control_questions")
    assert len(known) == N_QUESTIONS
    assert (known["answer"] < known["n_options"]).all()


def test_every_turned_answer_is_traced_and_nothing_else(run, questions):
    """A correction that is missing, or one that corrects nothing, would mislead."""
    done = study_control(
        run.name, ControlStudy(sets=(questions,), features="prototypes", max_nonzeros=13)
    )
    answers = read_table(done, "control_answers")
    before = answers["none_choice"] == answers["answer"]
    after = answers["prototypes_choice"] == answers["answer"]
    turned = answers[before != after]
    traced = read_table(done, "control_corrections")
    weights = read_table(done, "control_weights").set_index(["seed", "prototype"])
    keys = ["seed", "question"]
    assert set(map(tuple, traced[keys].to_numpy())) == set(map(tuple, turned[keys].to_numpy()))
    assert traced["prototype"].max() < N_PROTOTYPES
    assert all(
        pair in weights.index for pair in map(tuple, traced[["seed", "prototype"]].to_numpy())
    )
    assert answers["sae_choice"].isna().all()


@pytest.mark.slow
def test_a_study_is_not_repeated_and_one_with_other_settings_is(run, questions):
    """The manifest says what the tables were made with."""
    study = ControlStudy(sets=(questions,), features="prototypes", seeds=2)
    first = study_control(run.name, study)
    assert study_control(run.name, study).stamp == first.stamp
    other = study_control(run.name, ControlStudy(sets=(questions,), features="prototypes", seeds=1))
    assert other.stamp != first.stamp
    assert set(read_table(other, "control_results")["seed"]) == {0}


@pytest.mark.slow
def test_a_study_killed_while_reading_goes_on_with_the_chunks_it_has(run, questions, monkeypatch):
    """What was read is not read again, and the tables are those of an undisturbed study."""
    monkeypatch.setattr(control_reading, "CHUNK_QUESTIONS", 23)
    study = ControlStudy(sets=(questions,), features="prototypes", seeds=2)
    reads = []
    real = control_reading.read_options

    def killed(backbone, chunk):
        if len(reads) == 3:
            raise KeyboardInterrupt
        reads.append(len(chunk))
        return real(backbone, chunk)

    monkeypatch.setattr(control_reading, "read_options", killed)
    with pytest.raises(KeyboardInterrupt):
        study_control(run.name, study)
    monkeypatch.setattr(control_reading, "read_options", lambda *a: reads.append(0) or real(*a))
    resumed = {
        name: read_table(study_control(run.name, study), name)
        for name in ("control_results", "control_answers", "control_weights")
    }
    assert len(reads) == -(-N_QUESTIONS // 23)
    undisturbed = save_run(run.parent / "other")
    for name, table in resumed.items():
        whole = read_table(study_control(undisturbed.name, study), name)
        assert table.equals(whole)


@pytest.mark.slow
def test_a_damaged_chunk_is_read_anew(run, questions):
    """A file cut short by a full disk must not stop the study or enter it."""
    study = ControlStudy(sets=(questions,), features="prototypes", seeds=1)
    first = read_table(study_control(run.name, study), "control_results")
    chunk = next((run.parent / "control").rglob("words-*.safetensors"))
    chunk.write_bytes(chunk.read_bytes()[:100])
    again = ControlStudy(sets=(questions,), features="prototypes", seeds=2)
    second = read_table(study_control(run.name, again), "control_results")
    own = second[second["seed"] == 0].reset_index(drop=True)
    assert own.equals(first)


def test_items_too_few_for_a_split_are_said(run, questions):
    """Before any controller is trained."""
    with pytest.raises(ConfigError, match="words has 29 questions"):
        study_control(run.name, ControlStudy(sets=(questions,), items=29, features="prototypes"))


@pytest.mark.parametrize(
    ("settings", "why"),
    [({"features": "words"}, "--features is 'words'"), ({"seeds": 0}, "--seeds is 0")],
)
def test_settings_out_of_range_are_refused(settings, why):
    """Each by the name of its option."""
    with pytest.raises(ConfigError, match=why):
        ControlStudy(**settings)


def _dense_run(house, seed: int = 5):
    writer = RunWriter.create(
        house / "cache" / "twin", name="twin", kind="dense", identity={"corpus": {"name": "x"}}
    )
    writer.begin_stage("train", {})
    save_dense(writer.path / "model", seed)
    writer.finish_stage("train", {})
    return writer.path


def test_a_run_without_a_bank_is_refused(house, questions):
    """It is said before anything is read."""
    with pytest.raises(UnsupportedModel, match="no prototypes to control"):
        study_control(_dense_run(house).name, ControlStudy(sets=(questions,)))


def test_downstream_accuracies_and_differences_are_counted_from_the_answers(run, house, questions):
    """Both models read the same questions, so that the difference is paired."""
    _dense_run(house)
    done = study_downstream(run.name, DownstreamStudy(dense_run="twin", sets=(questions,)))
    answers = read_table(done, "downstream_answers")
    table = read_table(done, "downstream").set_index(["set", "model"])
    right = {m: answers[f"{m}_choice"] == answers["answer"] for m in ("prism", "dense")}
    for model, own in right.items():
        row = table.loc[("words", model)]
        assert row["accuracy"] == pytest.approx(own.mean(), abs=1e-6)
        assert row["low"] <= row["accuracy"] <= row["high"]
        assert row["chance"] == pytest.approx((1 / answers["n_options"]).mean(), abs=1e-6)
    difference = 100 * (right["prism"].mean() - right["dense"].mean())
    assert table.loc[("mean", "prism"), "difference"] == pytest.approx(difference, abs=1e-4)
    assert np.isnan(table.loc[("mean", "dense"), "difference"])
    again = study_downstream(run.name, DownstreamStudy(dense_run="twin", sets=(questions,)))
    assert again.stamp == done.stamp


def test_downstream_choices_are_the_highest_log_likelihood_per_byte(run, questions):
    """Question by question, in the order of the questions."""
    read = control_reading.read_question_set(control.open_model(run.name), read_set(questions))
    score = read.options.log_likelihood("byte")
    for place, choice in enumerate(chosen(read)):
        own = score[read.options.question == place]
        assert choice == own.argmax()


def test_a_model_folder_without_a_run_is_a_sentence(run):
    """Nothing would say which model a cached chunk belongs to."""
    opened = control.open_model(str(run / "model"))
    with pytest.raises(CacheMissing, match="no finished run"):
        control_reading.model_folder(opened)


def test_a_bank_s_rows_are_those_of_its_fit(house):
    """A retrofit read its first rows; a trained bank those after its start."""
    path = house / "cache" / "fit"
    settings = {"fit_tokens": 1_000, "context": 128, "batch_tokens": 512, "steps": 3, "seed": 7}
    RunWriter.create(
        path, name="fit", kind="retrofit", identity={"config": {"retrofit": settings}}
    ).finish_stage("retrofit", {})
    found = control_sae.bank_data(open_run("fit"))
    assert (found.first_row, found.n_rows, found.n_states, found.samples) == (0, 7, 896, 1_536)
    train = {"steps": 10, "bank_start": 4, "batch_size": 3, "accumulate": 2, "context": 5}
    RunWriter.create(
        house / "cache" / "full", name="full", kind="prism", identity={"config": {"train": train}}
    ).finish_stage("train", {})
    found = control_sae.bank_data(open_run("full"))
    assert (found.first_row, found.n_rows, found.n_states, found.samples) == (24, 36, 180, 180)
