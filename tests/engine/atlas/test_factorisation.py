"""EmbedLLM's factorisation and the same head over frozen embeddings."""

import numpy as np
import pytest

from engine.atlas.factorisation import HeadSettings, Standard, train_head
from engine.errors import ConfigError


N_MODELS, N_QUESTIONS, N_WORDS, N_EMBEDDED = 11, 97, 5, 7
QUICK = HeadSettings(n_dimensions=3, learning_rate=0.1, batch=211, epochs=7)


@pytest.fixture
def planted():
    """Models good at one of two kinds of question, and embeddings that tell which."""
    generator = np.random.default_rng(0)
    kind = generator.integers(0, 2, N_QUESTIONS)
    questions = generator.normal(0, 0.1, (N_QUESTIONS, N_WORDS)).astype(np.float32)
    questions[np.arange(N_QUESTIONS), kind] += 1
    skill = np.arange(N_MODELS) % 2
    correct = skill[:, None] == kind[None, :]
    embeddings = generator.normal(0, 0.1, (N_MODELS, N_EMBEDDED))
    embeddings[np.arange(N_MODELS), skill] += 1
    return questions, correct, embeddings


@pytest.mark.parametrize("frozen", [True, False])
def test_a_head_learns_who_answers_what(planted, frozen):
    """On questions that it never saw, with learned and with frozen vectors."""
    questions, correct, embeddings = planted
    own = {"embeddings": embeddings} if frozen else {}
    head = train_head(questions[:71], correct[:, :71], QUICK, validation=np.arange(60, 71), **own)
    told = head.predict(questions[71:])
    assert told.shape == (N_MODELS, 26)
    assert ((told > 0.5) == correct[:, 71:]).mean() > 0.95
    assert head.loss < 0.3


def test_a_new_model_is_placed_by_its_embedding_alone(planted):
    """The claim of the method: no training, and old predictions stay as they were."""
    questions, correct, embeddings = planted
    head = train_head(questions, correct[:-1], QUICK, embeddings=embeddings[:-1])
    placed = head.place(embeddings)
    np.testing.assert_allclose(placed[:-1], head.vectors, atol=1e-5)
    told = head.predict(questions, placed)[-1]
    assert ((told > 0.5) == correct[-1]).mean() > 0.95


def test_the_matrix_of_a_head_is_the_head(planted):
    """What a run keeps gives the same logits as what was trained."""
    questions, correct, embeddings = planted
    head = train_head(questions, correct, QUICK, embeddings=embeddings)
    matrix = head.bilinear().astype(np.float64)
    asked = np.hstack([questions, np.ones((N_QUESTIONS, 1))])
    scaled = np.hstack([head.standard.apply(embeddings), np.ones((N_MODELS, 1))])
    told = 1 / (1 + np.exp(-(asked @ matrix @ scaled.T).T))
    np.testing.assert_allclose(told, head.predict(questions), atol=1e-5)


def test_prediction_is_the_softmax_of_the_published_form(planted):
    """logits = W (p ∘ (A q + a)) + w, written out."""
    questions, correct, _ = planted
    head = train_head(questions, correct, QUICK)
    product = head.vectors[4] * (questions[6] @ head.question_map + head.question_bias)
    margin = product @ head.weights + head.bias
    assert head.predict(questions)[4, 6] == pytest.approx(1 / (1 + np.exp(-margin)), abs=1e-6)


def test_the_same_seed_gives_the_same_head(planted):
    """Results must be reproducible; another seed must matter."""
    questions, correct, _ = planted
    first, again = (train_head(questions, correct, QUICK) for _ in range(2))
    np.testing.assert_array_equal(first.vectors, again.vectors)
    other = train_head(questions, correct, HeadSettings(n_dimensions=3, epochs=1, seed=1))
    assert not np.array_equal(first.vectors, other.vectors)


def test_training_ends_when_validation_gets_no_better(planted):
    """And the weights of the best epoch stay: here of the first, as labels are random."""
    questions, _, _ = planted
    noise = np.random.default_rng(1).random((N_MODELS, N_QUESTIONS)) < 0.5
    settings = HeadSettings(n_dimensions=3, learning_rate=0.3, batch=211, epochs=40, patience=2)
    head = train_head(questions, noise, settings, validation=np.arange(0, 97, 3))
    assert head.epoch <= 38
    right = noise[:, ::3]
    told = head.predict(questions[::3])
    loss = -np.log(np.where(right, told, 1 - told)).mean()
    assert loss == pytest.approx(head.loss, abs=1e-5)


def test_embeddings_are_scaled_by_the_models_that_are_trained_on():
    """A later model must not move the scale."""
    standard = Standard.of(np.array([[1.0, 5.0], [3.0, 5.0]]))
    np.testing.assert_allclose(standard.apply(np.array([[4.0, 6.0]])), [[2.0, 1.0]] / np.sqrt(0.5))
    assert Standard.of(np.ones((3, 2))).scale == 1.0


def test_no_question_is_no_training(planted):
    """All questions held out is a mistake of the caller, said in a sentence."""
    questions, correct, _ = planted
    with pytest.raises(ConfigError, match="no questions"):
        train_head(questions, correct, QUICK, validation=np.arange(N_QUESTIONS))
