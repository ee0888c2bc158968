"""Questions as vectors."""

import numpy as np
import pytest

from engine.atlas.question_encoder import QuestionEncoder, question_text
from engine.errors import ConfigError


TEXTS = (
    "What is the capital of Kegul?",
    "Which city governs Kegul?",
    "What is the capital of Fidra?",
    "What does the owl eat?",
    "What does the fox eat?",
    "What is 7 plus 3?",
    "What is twice 7?",
)


def test_what_is_asked_is_taken_out_of_either_style_of_prompt():
    """A typed question has no instruction, so known ones must be compared without it."""
    lettered = (
        "Choose the best.\nQuestion: Who is Bo?\nHe is tall.\nChoices:\nA. x\nB. y\nAnswer:\n"
    )
    assert question_text(lettered) == "Who is Bo?\nHe is tall."
    assert question_text("Question: Who is Bo?\nAnswer: ") == "Who is Bo?"
    assert question_text("  Who is Bo? ") == "Who is Bo?"


def test_questions_that_share_words_lie_closer():
    """Otherwise neighbours would be no evidence."""
    encoder = QuestionEncoder.fit(TEXTS, n_dimensions=5)
    found = encoder.encode(["Where is the capital of Kegul?", *TEXTS])
    assert found.shape == (8, 5)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)
    assert (found[1:] @ found[0]).argmax() == 0


def test_an_encoder_comes_back_from_its_arrays():
    """What a run keeps must encode as what was trained on."""
    encoder = QuestionEncoder.fit(TEXTS, n_dimensions=5)
    again = QuestionEncoder.from_arrays(encoder.arrays)
    np.testing.assert_array_equal(again.encode(TEXTS), encoder.encode(TEXTS))


def test_a_text_without_known_words_is_zero_and_says_so():
    """A ranking of such a text is one of no question; the page has to know."""
    encoder = QuestionEncoder.fit(TEXTS, n_dimensions=5)
    assert not encoder.encode(["Quo vadis?"]).any()
    assert encoder.unknown_words("Quo vadis, owl?") == ("quo", "vadis")


def test_digits_are_words():
    """Arithmetic differs by its digits alone; scikit-learn's own pattern would drop them."""
    assert "7" in QuestionEncoder.fit(TEXTS).terms


def test_an_encoder_needs_questions():
    """Two texts have no directions to speak of."""
    with pytest.raises(ConfigError, match="2 questions"):
        QuestionEncoder.fit(TEXTS[:2])
