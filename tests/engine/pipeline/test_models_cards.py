"""Cards and answers: what a catalogue documents is read as it says, and no more."""

import json

import pandas as pd
import pytest

from engine.able.probe_sources import read_lines
from engine.able.probes import probe_set
from engine.config import PROJECT_ROOT
from engine.errors import ConfigError
from engine.pipeline.models_answers import probe_answers, read_answers
from engine.pipeline.models_cards import card_frame, merged_cards
from engine.pipeline.models_catalogue import read_catalogue


def cards(path, text):
    path.write_text(text)
    return card_frame(read_catalogue(path)).set_index("model")


def test_roots_follow_from_parents_where_all_are_known(tmp_path):
    """A model whose ancestor has no card belongs to no known root; one of a chain does."""
    found = cards(
        tmp_path / "real.csv",
        "hub_id,family,params_b,parent_hub_id,relation,source\n"
        "a/base,A,6.5,,base,paper\n"
        "a/chat,A,6.5,a/base,instruct,card\n"
        "a/chat-more,A,6.5,a/chat,finetune,card\n"
        "b/lost,B,7,x/unknown,finetune,general knowledge\n",
    )
    assert found["roots"].tolist() == [["a/base"], ["a/base"], ["a/base"], []]
    assert found["parents"].tolist() == [[], ["a/base"], ["a/chat"], ["x/unknown"]]
    assert found["n_parameters"].tolist() == [6_500_000_000] * 3 + [7_000_000_000]
    assert found["copies_weights"].tolist() == [False, True, True, True]
    assert found["evidence"].tolist()[-1] == "general knowledge"


def test_a_circle_of_parents_has_no_root(tmp_path):
    """A catalogue may say anything; it must end."""
    found = cards(
        tmp_path / "c.csv", "hub_id,parent_hub_id,relation\nm/a,m/b,merge\nm/b,m/a,merge\n"
    )
    assert found["roots"].tolist() == [[], []]


def test_a_zoo_names_its_roots_and_copies(tmp_path):
    """A distilled model has a parent and no weights of it."""
    found = cards(
        tmp_path / "zoo.csv",
        "id,path,root,parents,derivation,copies_weights,hard_negative_group,n_parameters,sha256\n"
        "r,models/r,r,,root,0,twin:x;data:y,1000,1\n"
        "m,models/m,r;s,r;s,merged,1,,1000,2\n"
        "d,models/d,d,r,distilled,0,,900,3\n",
    )
    assert found.loc["m", "roots"] == ["r", "s"]
    assert found.loc["r", "groups"] == ["twin:x", "data:y"]
    assert found["copies_weights"].tolist() == [False, True, False]
    assert set(found["evidence"]) == {"made here"}


def test_a_later_call_keeps_the_cards_of_earlier_ones():
    """Models added later stand beside those of the catalogue; a new card replaces an old one."""
    old = pd.DataFrame({"model": ["a", "b"], "family": ["x", "y"]})
    new = pd.DataFrame({"model": ["b", "c"], "family": ["z", "z"]})
    found = merged_cards(old, new)
    assert found.to_dict("list") == {"model": ["a", "b", "c"], "family": ["x", "z", "z"]}


def test_the_catalogue_of_real_models_is_read_whole():
    """239 models, each with the evidence of its lineage, and no ancestor made up for a base."""
    found = card_frame(read_catalogue(PROJECT_ROOT / "assets" / "models" / "able239.csv"))
    assert len(found) == 239
    assert (found["evidence"] != "").all()
    bases = found[found["relation"] == "base"]
    assert all(row["roots"] == [row["model"]] for _, row in bases.iterrows() if not row["parents"])


@pytest.fixture
def judged(tmp_path):
    """A folder with three questions and the answers of two models."""
    rows = [
        {
            "question": f"Choose.\nQuestion: {n}?\nChoices:\nA. x\nB. y\nAnswer:",
            "choices": ["A", "B"],
        }
        for n in range(3)
    ]
    lines = (json.dumps(row | {"ans_idx": n % 2, "index": n}) for n, row in enumerate(rows))
    (tmp_path / "questions.jsonl").write_text("\n".join(lines))
    (tmp_path / "correctness.csv").write_text("id,jobs/a,jobs/b,kin/c\nm,1,0,1\nn,0,0,1\n")
    return tmp_path


@pytest.mark.parametrize("style", ["letters", "texts"])
def test_answers_tell_probes_from_other_questions(judged, style):
    """A forecast of questions that were probes would be no forecast; styles change their hashes."""
    asked, _ = read_lines(judged / "questions.jsonl")
    found = read_answers(judged, probe_set("some", asked[1:], style))
    assert found.questions["is_probe"].tolist() == [False, True, True]
    assert found.questions["domain"].tolist() == ["jobs", "jobs", "kin"]
    assert found.answers["correct"].tolist() == [[True, False, True], [False, False, True]]


@pytest.mark.parametrize(
    "line", ["m,1,0", "m,1,0,2", "m,1,0,1\nm,1,0,1"], ids=["short", "no flag", "twice"]
)
def test_a_line_that_is_no_answer_is_named(judged, line):
    """Answers laid on the wrong questions would be believed."""
    (judged / "correctness.csv").write_text(f"id,a,b,c\nfirst,0,1,0\n{line}\n")
    asked, _ = read_lines(judged / "questions.jsonl")
    with pytest.raises(ConfigError, match="is no line of answers"):
        read_answers(judged, probe_set("some", asked))


def test_as_many_columns_as_questions_are_asked_for(judged):
    """A file of other questions does not pass for these."""
    (judged / "correctness.csv").write_text("id,a,b\nm,0,1\n")
    asked, _ = read_lines(judged / "questions.jsonl")
    with pytest.raises(ConfigError, match=r"3 questions and correctness\.csv 2 columns"):
        read_answers(judged, probe_set("some", asked))


def test_probes_stand_in_where_nothing_else_is_known():
    """A model that skipped a probe has no whole row of answers."""
    probes = pd.DataFrame(
        {"probe": [0, 1], "key": ["x", "y"], "source": ["s", "s"], "prompt": ["", ""], "n_words": 1}
        | {"options": [["a", "b"]] * 2, "answer": [0, 1]}
    )
    options = pd.DataFrame(
        {"model": ["m", "m", "n"], "probe": [1, 0, 0], "correct": [False, True, True]}
    )
    found = probe_answers(probes, options)
    assert found.answers.to_dict("list") == {"model": ["m"], "correct": [[True, False]]}
    assert found.questions["is_probe"].all()
