"""Accuracies, paired differences and signed bars as data."""

import numpy as np
import pandas as pd
import pytest

from dashboard.components import control_downstream
from dashboard.components.control_corrections import RIGHT, WRONG, turned_questions
from dashboard.figures import control, signed_bars


@pytest.fixture
def results() -> pd.DataFrame:
    """Two sets, three conditions, two splits that lie 0.02 to either side of their mean."""
    means = {
        ("mmlu", "none"): 0.30,
        ("mmlu", "sae"): 0.31,
        ("mmlu", "prototypes"): 0.35,
        ("siqa", "none"): 0.40,
        ("siqa", "sae"): 0.42,
        ("siqa", "prototypes"): 0.41,
    }
    return pd.DataFrame(
        [
            {"set": name, "condition": condition, "seed": seed, "accuracy": mean + by}
            for (name, condition), mean in means.items()
            for seed, by in ((0, -0.02), (1, 0.02))
        ]
    )


@pytest.fixture
def gains() -> pd.DataFrame:
    """Two comparisons on a set and in the mean."""
    rows = [
        ("mmlu", "prototypes-none", 5.0, 1.0, 9.0),
        ("mean", "prototypes-none", 3.0, 1.0, 5.0),
        ("mmlu", "sae-none", 1.0, -2.0, 4.0),
        ("mean", "sae-none", 0.5, -1.0, 2.0),
    ]
    frame = pd.DataFrame(rows, columns=["set", "comparison", "gain", "low", "high"])
    return frame.assign(n_questions=[41, 97, 41, 97], n_seeds=2)


def trace(figure, name: str):
    return next(t for t in figure.data if t.name == name)


def test_accuracy_has_a_row_a_set_and_their_mean(results: pd.DataFrame):
    """The large mark is the mean over splits, the last row the mean over sets."""
    figure = control.accuracy_dots(results, {"mmlu": 0.25, "siqa": 1 / 3}, 97, dark=False)
    assert list(figure.layout.yaxis.ticktext) == ["MMLU", "SIQA", "mean"]
    assert list(trace(figure, "prototype controller").x) == pytest.approx([0.35, 0.41, 0.38])
    assert "n = 97" in figure.layout.title.text


def test_chance_is_marked_in_every_row(results: pd.DataFrame):
    """An accuracy says nothing without the accuracy of guessing."""
    figure = control.accuracy_dots(results, {"mmlu": 0.25, "siqa": 0.35}, 97, dark=False)
    marks = [x for x in trace(figure, "chance").x if x is not None]
    assert marks == pytest.approx([0.25, 0.25, 0.35, 0.35, 0.3, 0.3])


def test_differences_carry_their_intervals_and_the_paper_stands_apart(gains: pd.DataFrame):
    """The paper's means are of other models: they have a row of their own and no interval."""
    figure = control.gain_dots(gains, dark=True)
    own = trace(figure, "prototypes − none")
    assert list(own.x) == [5.0, 3.0]
    assert list(own.error_x.array) == [4.0, 2.0]
    assert list(own.error_x.arrayminus) == [4.0, 2.0]
    assert list(figure.layout.yaxis.ticktext) == ["MMLU", "mean", "paper's mean"]
    references = {t.x[0] for t in figure.data if t.mode == "markers+text"}
    assert references == {2.72, 0.32}
    assert all(t.y[0] > 1.5 for t in figure.data if t.mode == "markers+text")


def test_the_alt_text_of_the_differences_names_the_mean_and_its_interval(gains: pd.DataFrame):
    """A reader who does not see the dots gets the numbers."""
    said = control.gains_alt(gains)
    assert "prototypes − none +3.00 points [+1.00, +5.00]" in said
    assert "SAE − none +0.500 points [−1.00, +2.00]" in said


def test_bars_keep_sign_order_and_prototype():
    """Blue to the right, orange to the left; a click finds the prototype, not the row."""
    rows = pd.DataFrame(
        {
            "prototype": [11, 3, 7],
            "label": ["a <b>", "c", "d"],
            "label_score": [0.81, np.nan, 0.5],
            "value": [0.9, -0.5, 0.1],
        }
    )
    figure = signed_bars.prototype_bars(
        rows, axis="logits", title="Weights", subtitle="n = 3", selected=3, dark=False
    )
    bar = figure.data[0]
    assert [row[0] for row in bar.customdata] == [11, 3, 7]
    assert list(bar.text) == ["+0.900", "−0.500", "+0.100"]
    assert list(bar.marker.line.width) == [0, 2, 0]
    assert bar.marker.color[0] == bar.marker.color[2] != bar.marker.color[1]
    assert list(bar.y) == ["a &lt;b&gt;  #11  (0.81)", "c  #3", "d  #7  (0.50)"]


def test_a_long_label_is_cut_and_its_number_stays():
    """In a narrow column the number still tells two prototypes apart."""
    rows = pd.DataFrame(
        {"prototype": [11], "label": ["abcdefghijk"], "label_score": [np.nan], "value": [1.0]}
    )
    assert signed_bars.bar_names(rows, 5) == ["abcd…  #11"]


def test_no_bars_are_an_empty_figure():
    """A controller without weights draws its axes and nothing else."""
    rows = pd.DataFrame({"prototype": [], "label": [], "label_score": [], "value": []})
    figure = signed_bars.prototype_bars(
        rows, axis="logits", title="Weights", subtitle="n = 0", selected=None, dark=False
    )
    assert len(figure.data[0].y) == 0
    assert signed_bars.bars_alt(rows, "Weights") == "Weights of 0 prototypes. Largest: none."


def downstream(low: float) -> pd.DataFrame:
    """Two sets; on `siqa` both models guess, on `mmlu` the twin's interval begins at `low`."""
    rows = [
        ("mmlu", "prism", 0.27, 0.22, 0.25, np.nan),
        ("mmlu", "dense", 0.30, low, 0.25, np.nan),
        ("siqa", "prism", 0.34, 0.30, 1 / 3, np.nan),
        ("siqa", "dense", 0.33, 0.29, 1 / 3, np.nan),
        ("mean", "prism", 0.305, 0.28, 0.29, -1.0),
        ("mean", "dense", 0.315, 0.29, 0.29, np.nan),
    ]
    frame = pd.DataFrame(rows, columns=["set", "model", "accuracy", "low", "chance", "difference"])
    return frame.assign(
        high=frame["accuracy"] + 0.04,
        n_questions=53,
        difference_low=frame["difference"] - 2,
        difference_high=frame["difference"] + 2,
    )


def test_guessing_is_said_and_where():
    """A set on which neither interval lies above chance compares nothing."""
    assert control_downstream.at_chance(downstream(0.26)) == ["siqa"]
    assert "SIQA" in control_downstream.chance_sentence(downstream(0.26))
    assert "MMLU" not in control_downstream.chance_sentence(downstream(0.26))
    assert "not comparable" in control_downstream.chance_sentence(downstream(0.24))


def test_a_set_above_chance_is_not_called_guessing():
    """One model above chance is enough to compare."""
    frame = downstream(0.26)
    frame = frame[frame["set"] != "siqa"]
    assert control_downstream.chance_sentence(frame) == ""


def test_the_difference_to_the_twin_has_its_interval():
    """Paired, in percentage points, of the mean over sets."""
    said = control_downstream.difference_sentence(downstream(0.26))
    assert "−1.00 percentage points [−3.00, +1.00]" in said


def test_a_turned_answer_is_named_by_where_it_ended():
    """Right ones first; of each question the prototype that moved it most."""
    rows = pd.DataFrame(
        {
            "question": [5, 5, 9, 2],
            "question_id": ["a", "a", "b", "c"],
            "answer": [1, 1, 0, 3],
            "before": [2, 2, 0, 1],
            "after": [1, 1, 2, 3],
            "rank": [1, 0, 0, 0],
            "prototype": [13, 17, 19, 23],
            "label": ["", "", "", ""],
            "contribution": [0.1, -0.4, 0.9, 0.7],
        }
    )
    found = turned_questions(rows)
    assert found["question"].tolist() == [2, 5, 9]
    assert found["turned"].tolist() == [RIGHT, RIGHT, WRONG]
    assert found["prototype"].tolist() == [23, 17, 19]
