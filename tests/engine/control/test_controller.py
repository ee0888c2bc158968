"""The conditional logit with L1, against plain loops, its optimality and planted truth."""

import numpy as np
import pytest
from scipy import optimize, sparse

from engine.control.controller import Choices, _Path, fit_temperature, train_controller
from engine.control.tracing import mean_effect, turned_answers


def _choices(n_questions: int, n_features: int = 23, seed: int = 0, planted=()) -> Choices:
    """Questions of 2 to 5 options; planted features point at the answer."""
    generator = np.random.default_rng(seed)
    size = generator.integers(2, 6, n_questions)
    start = np.cumsum(size) - size
    total = int(size.sum())
    answer = generator.integers(0, size)
    dense = generator.normal(size=(total, n_features)) * (
        generator.random((total, n_features)) < 0.4
    )
    for feature in planted:
        dense[start + answer, feature] += 1.5
    base = generator.normal(size=total) * 3 - 9
    return Choices(base, sparse.csr_array(dense), start, answer)


def _loss(choices: Choices, tau: float, weights: np.ndarray) -> float:
    """Mean cross-entropy, question by question."""
    total = 0.0
    dense = choices.features.toarray()
    for question, first in enumerate(choices.start):
        rows = slice(first, first + choices.size[question])
        scores = tau * (choices.base[rows] + dense[rows] @ weights)
        total -= scores[choices.answer[question]] - np.log(np.exp(scores).sum())
    return total / len(choices.start)


def test_scores_choices_and_cross_entropy_are_those_of_a_plain_loop():
    """Questions of different numbers of options share one flat array."""
    choices = _choices(31)
    weights = np.random.default_rng(1).normal(size=23)
    scores = choices.scores(weights)
    for question, first in enumerate(choices.start):
        own = scores[first : first + choices.size[question]]
        assert choices.choose(scores)[question] == np.argmax(own)
    assert choices.cross_entropy(0.3 * scores) == pytest.approx(_loss(choices, 0.3, weights))


def test_the_first_of_equal_options_is_chosen():
    """A tie must not depend on the order of a sort."""
    choices = Choices(np.zeros(5), sparse.csr_array((5, 2)), np.array([0, 3]), np.array([1, 0]))
    assert choices.choose(np.array([1.0, 2.0, 2.0, 4.0, 4.0])).tolist() == [1, 0]


def test_a_part_holds_the_rows_of_its_questions():
    """A split is a selection of questions, never of options."""
    choices = _choices(13)
    part = choices.part(np.array([7, 2, 11]))
    own = [np.arange(s, s + n) for s, n in zip(choices.start, choices.size, strict=True)]
    rows = np.concatenate([own[question] for question in (7, 2, 11)])
    np.testing.assert_array_equal(part.base, choices.base[rows])
    np.testing.assert_array_equal(part.features.toarray(), choices.features.toarray()[rows])
    np.testing.assert_array_equal(part.size, choices.size[[7, 2, 11]])
    np.testing.assert_array_equal(part.answer, choices.answer[[7, 2, 11]])


def test_the_gradient_is_that_of_finite_differences():
    """The solver knows the loss through its gradient alone."""
    choices = _choices(29)
    path = _Path.of(choices, 0.7)
    weights = np.random.default_rng(2).normal(size=23)
    numeric = optimize.approx_fprime(weights, lambda w: _loss(choices, 0.7, w), 1e-6)
    np.testing.assert_allclose(path.gradient(weights), numeric, atol=1e-5)


@pytest.mark.parametrize("share", [0.6, 0.2])
def test_a_solution_meets_the_conditions_of_the_lasso(share):
    """At the optimum a weight is 0 or its gradient is the penalty with the opposite sign."""
    choices = _choices(101, planted=(3, 5))
    path = _Path.of(choices, 0.5)
    l1 = share * path.largest_penalty
    weights = path.solve(np.zeros(23), l1)
    gradient, active = path.gradient(weights), weights != 0
    assert active.any()
    np.testing.assert_allclose(gradient[active], -l1 * np.sign(weights[active]), atol=l1 * 1e-2)
    assert (np.abs(gradient[~active]) <= l1 * 1.01).all()


def test_at_the_largest_penalty_every_weight_is_zero():
    """The path begins with no controller at all."""
    choices = _choices(101, planted=(3,))
    path = _Path.of(choices, 0.5)
    first = path.largest_penalty
    assert not path.solve(np.zeros(23), first * 1.0001).any()
    assert path.solve(np.zeros(23), first * 0.95).any()


def test_a_planted_feature_is_found_and_raises_held_out_accuracy():
    """What a controller is for."""
    train, validation, test = (_choices(n, seed=n, planted=(3, 5)) for n in (401, 151, 307))
    controller = train_controller(train, validation, max_nonzeros=7)
    assert controller.weights[3] > 0
    assert controller.weights[5] > 0
    assert 0 < controller.nonzeros <= 7
    plain = (test.choose(test.base) == test.answer).mean()
    steered = (test.choose(test.scores(controller.weights)) == test.answer).mean()
    assert steered > plain + 0.1


def test_noise_alone_leaves_the_controller_empty_or_nearly():
    """Validation must be able to say that no weight helps."""
    train, validation = (_choices(n, seed=n) for n in (401, 211))
    found = train_controller(train, validation, max_nonzeros=23)
    none = validation.cross_entropy(found.tau * validation.base)
    assert validation.cross_entropy(found.tau * validation.scores(found.weights)) <= none


def test_the_budget_bounds_the_weights():
    """Both kinds of features get the same budget."""
    train, validation = (_choices(n, seed=n, planted=range(11)) for n in (401, 211))
    assert train_controller(train, validation, max_nonzeros=3).nonzeros <= 3
    assert train_controller(train, validation, max_nonzeros=23).nonzeros > 3


def test_training_temperature_lowers_cross_entropy_and_moves_no_choice():
    """It calibrates the loss and is no part of the score."""
    choices = _choices(101)
    tau = fit_temperature(choices)
    assert choices.cross_entropy(tau * choices.base) <= choices.cross_entropy(choices.base)
    np.testing.assert_array_equal(choices.choose(tau * choices.base), choices.choose(choices.base))


def test_options_without_any_feature_train_to_no_controller():
    """A set may not touch a single feature of a dictionary."""
    plain = _choices(23)
    empty = Choices(plain.base, sparse.csr_array(plain.features.shape), plain.start, plain.answer)
    assert train_controller(empty, empty, max_nonzeros=5).nonzeros == 0


def test_contributions_of_a_turned_answer_add_up_to_the_change_of_margin():
    """A trace that leaves something out would name the wrong prototypes."""
    train = _choices(401, n_features=7, planted=(3,))
    controller = train_controller(train, _choices(151, 7, 5, (3,)), max_nonzeros=7)
    test = _choices(101, 7, 9, (3,))
    scores = test.scores(controller.weights)
    turned = turned_answers(test, controller)
    assert turned
    for found in turned:
        before, after = test.start[found.question] + np.array([found.before, found.after])
        change = (scores[after] - scores[before]) - (test.base[after] - test.base[before])
        assert found.contributions.sum() == pytest.approx(change)
        assert (np.diff(np.abs(found.contributions)) <= 1e-12).all()
        answer = test.answer[found.question]
        assert (found.before == answer) != (found.after == answer)


def test_mean_effect_is_the_mean_change_of_score_without_the_question_s_mean():
    """What all options share cannot move a choice and must not count as an effect."""
    choices = _choices(17, 7)
    controller = train_controller(
        _choices(401, 7, 1, (3,)), _choices(151, 7, 5, (3,)), max_nonzeros=7
    )
    dense, expected = choices.features.toarray(), np.zeros(7)
    for first, size in zip(choices.start, choices.size, strict=True):
        rows = dense[first : first + size] * controller.weights
        expected += np.abs(rows - rows.mean(0)).sum(0)
    np.testing.assert_allclose(mean_effect(choices, controller), expected / len(dense))
