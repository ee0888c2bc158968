"""Models that a router never saw."""

import numpy as np
import pytest

from engine.atlas.factorisation import HeadSettings
from engine.atlas.new_models import K_ANSWERS, NewModelFold, added_models, new_model_figures
from engine.atlas.routers import (
    RoutingData,
    choose_neighbours,
    fit_router,
    fit_vector,
    knn_predicted,
)


KINDS = ("Which city governs", "What food do people eat in", "How much money buys")
QUICK = HeadSettings(n_dimensions=5, learning_rate=0.05, batch=211, epochs=5)


@pytest.fixture(scope="module")
def data():
    """Questions of three kinds, each answered by every third model; embeddings tell which."""
    texts = [f"{KINDS[i % 3]} thing{i // 6 % 7}?" for i in range(252)]
    keys = [f"set/{KINDS[i % 3]}/thing{i // 6}/{i // 3 % 2}" for i in range(252)]
    skill, kind = np.arange(13) % 3, np.arange(252) % 3
    correct = skill[:, None] == kind[None, :]
    embeddings = np.eye(3)[skill] + np.random.default_rng(0).normal(0, 0.05, (13, 3))
    return RoutingData(texts, keys, correct, embeddings)


def test_a_fold_trains_checks_and_tests_on_different_facts(data):
    """Each question is in one part, and both wordings of a fact in the same."""
    part = data.part(4)
    parts = [part.train, part.known[part.validation], part.test]
    assert sorted(np.concatenate(parts).tolist()) == list(range(252))
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert not set(data.facts[parts[one]]) & set(data.facts[parts[other]])
    assert len(part.test) == pytest.approx(25, abs=2)


def test_new_models_are_told_apart_by_embedding_and_by_answers(data):
    """Without answers EmbedLLM knows nothing of them; with a hundred it does."""
    part, new = data.part(0), np.arange(13) >= 10
    heads = {
        r: fit_router(data, part, r, QUICK, np.flatnonzero(~new)) for r in ("able", "embedllm")
    }
    assert len(heads["able"].vectors) == 10
    told = added_models(data, part, new, heads)
    assert set(told) == {("able", "k=0"), *(("embedllm", f"k={k}") for k in K_ANSWERS)}
    rows = {
        (router, group, metric): estimate.value
        for router, group, metric, estimate in new_model_figures(
            data, [NewModelFold(new, part.test, told)], "new_models"
        )
    }
    assert rows["able", "new_models:k=0", "correctness"] > 0.95
    assert rows["embedllm", "new_models:k=100", "correctness"] > 0.9
    assert rows["embedllm", "new_models:k=0", "correctness"] < 0.8
    assert rows["able", "new_models:k=0", "choice_among_new"] > 0.9


def test_a_vector_without_answers_is_the_mean_and_with_many_the_maximum_likelihood(data):
    """The prior fades as answers come in."""
    known = np.random.default_rng(0).normal(0, 1, (7, 2))
    nothing = fit_vector(np.zeros((0, 2)), 0.0, np.zeros(0, dtype=bool), known)
    np.testing.assert_allclose(nothing, known.mean(0))
    features = np.random.default_rng(1).normal(0, 1, (4001, 2))
    truth = np.array([1.5, -0.5])
    right = np.random.default_rng(2).random(4001) < 1 / (1 + np.exp(-(features @ truth + 0.3)))
    np.testing.assert_allclose(fit_vector(features, 0.3, right, known), truth, atol=0.15)


def test_neighbours_vote():
    """The two nearest questions of three, by hand."""
    known = np.array([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0]])
    correct = np.array([[True, False, True], [False, False, True]])
    told = knn_predicted(known, correct, np.array([[1.0, 0.1]]), 2)
    assert told.tolist() == [[0.5], [0.0]]


def test_few_neighbours_are_chosen_where_questions_are_of_kinds(data):
    """With 131 of some 200 questions three kinds would be mixed."""
    assert choose_neighbours(data, data.part(0), (5, 131)) == 5
