"""Rows of a map of models: cards, edges, filters, and how much a picture keeps."""

import numpy as np
import pandas as pd
import pytest

from dashboard import model_rows
from dashboard.model_rows import Asked


def frame() -> pd.DataFrame:
    cards = pd.DataFrame(
        {
            "model": ["a", "b", "c"],
            "place": ["x/a", "x/b", "x/c"],
            "family": ["f", "f", "g"],
            "relation": ["root", "lora", "distilled"],
            "parents": [[], ["a"], ["a", "gone"]],
            "roots": [["a"], ["a"], []],
            "copies_weights": [False, True, False],
            "evidence": ["made here"] * 3,
            "architecture": ["llama"] * 3,
            "tokenizer": ["bpe", "bpe", "bytes"],
            "data": ["A", "A", "B"],
            "size": ["S"] * 3,
            "target": ["", "jobs", ""],
            "groups": [[], [], []],
            "n_parameters": [100, 0, 300],
        }
    )
    measured = pd.DataFrame(
        {
            "model": ["a", "b", "c"],
            "place": [""] * 3,
            "architecture": ["LlamaForCausalLM"] * 3,
            "n_parameters": [0, 120, 290],
            "accuracy": [0.5, 0.25, np.nan],
        }
    )
    found = model_rows.joined(pd.DataFrame({"model": ["a", "b", "c"]}), cards, measured)
    return found.assign(place=range(3))


def test_counted_parameters_win_over_documented_ones():
    """What was loaded is known; what a catalogue says is not, and 0 says nothing."""
    assert frame()["n_parameters"].tolist() == [100, 120, 290]


def test_a_run_without_cards_has_models_of_which_nothing_is_said():
    """Old runs, and runs of folders, still open."""
    found = model_rows.joined(pd.DataFrame({"model": ["a"]}), None, None)
    assert found["family"].tolist() == [""]
    assert found["root"].tolist() == [""]
    assert found["parents"].tolist() == [()]
    assert found["accuracy"].isna().all()


def test_edges_join_embedded_models_and_say_whether_weights_were_copied():
    """A parent that is not embedded has no mark to draw an edge to."""
    edges, copies = model_rows.documented_edges(frame())
    assert edges.tolist() == [[0, 1], [0, 2]]
    assert copies.tolist() == [True, False]


def test_filters_say_how_many_each_of_them_hides():
    """Two filters, each alone."""
    kept = model_rows.kept(frame(), Asked(relations=("lora",), tokenizers=("bpe",)))
    assert kept.shown.tolist() == [False, True, False]
    assert kept.said == "2 of 3 hidden by derivation (2), tokenizer (1)."
    assert model_rows.kept(frame(), Asked()).said == "All 3 models shown."
    assert model_rows.kept(frame(), Asked(query="F b")).shown.tolist() == [False, True, False]


def test_neighbours_kept_equals_a_slow_count():
    """By hand: sorted lists of every model, without itself."""
    generator = np.random.default_rng(5)
    vectors = generator.normal(size=(17, 7))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines, xy = vectors @ vectors.T, generator.normal(size=(17, 2))
    found = model_rows.neighbours_kept(cosines, xy)
    for one in range(17):
        others = [k for k in range(17) if k != one]
        near = sorted(others, key=lambda k: -cosines[one, k])[:10]
        drawn = sorted(others, key=lambda k: ((xy[one] - xy[k]) ** 2).sum())[:10]
        assert found[one] == pytest.approx(len(set(near) & set(drawn)) / 10)


def test_models_without_a_place_are_left_out_of_the_count():
    """They are no neighbours on a picture they are not on."""
    xy = np.array([[0.0, 0], [1, 0], [np.nan, np.nan]])
    found = model_rows.neighbours_kept(np.ones((3, 3)), xy)
    assert found[:2].tolist() == [1.0, 1.0]
    assert np.isnan(found[2])
    assert np.isnan(model_rows.neighbours_kept(np.ones((1, 1)), xy[:1])).all()


def test_a_map_is_synthetic_only_where_every_model_was_made_here():
    """One public model among them, and the title may not call it made up."""
    own = frame()
    assert model_rows.is_synthetic(own)
    own.loc[0, "evidence"] = "a card"
    assert not model_rows.is_synthetic(own)
    assert not model_rows.is_synthetic(own.iloc[:0])


def test_the_page_opens_on_the_model_that_most_others_were_made_of():
    """A parent that is not embedded cannot be opened."""
    assert model_rows.landmark(frame()) == "a"
    assert model_rows.landmark(frame().iloc[2:].reset_index(drop=True)) == "c"


def test_answers_are_read_in_both_forms():
    """Flags, or choices held against the right options."""
    answers = np.array([0, 1, 2])
    assert model_rows.right_answers({"correct": [True, False, True]}, answers).tolist() == [
        True, False, True,
    ]  # fmt: skip
    assert model_rows.right_answers({"choices": [0, 0, 2]}, answers).tolist() == [
        True, False, True,
    ]  # fmt: skip
