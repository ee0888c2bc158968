"""What words and tokens add to a score, by leaving them out one by one."""

import numpy as np
import pytest

from engine.live.text import Codec
from engine.pipeline.suppression_weights import (
    TokenEffects,
    token_effects,
    token_weights,
    unwanted_words,
    word_effects,
)
from tests.engine import tiny_models


def saturating(texts):
    """0.1 without a bad word, 0.6 with one, 0.8 with more."""
    counts = [text.split().count("dog") + text.split().count("dog,") for text in texts]
    return [(0.1, 0.6, 0.8)[min(count, 2)] for count in counts]


def test_a_words_effect_is_the_mean_of_going_last_and_coming_first():
    """Of two bad words each gives (0.8 - 0.6 + 0.6 - 0.1) / 2, of one 0.5, of the others 0."""
    found = word_effects(["the dog, a dog", "", "one dog", "the fox"], saturating)
    assert found.text.tolist() == [0, 0, 0, 0, 2, 2, 3, 3]
    assert found.effect == pytest.approx([0, 0.35, 0, 0.35, 0, 0.5, 0, 0])
    assert word_effects([" "], saturating).effect.size == 0


def test_every_piece_of_a_word_knows_the_word():
    """Shares of the pieces add up to the word's effect; spaces belong to no word."""
    codec = Codec(tiny_models.tiny_tokenizer())
    texts = ["the lazy dog  sleeps", "dog", "zz dog"]
    tokens = [codec.encode(text) for text in texts]
    found = token_effects(tokens, codec, saturating)
    assert len(found.word) == sum(len(ids) for ids in tokens)
    place = 0
    for text, ids in zip(texts, tokens, strict=True):
        end = place
        for piece in codec.texts(ids):
            inside = found.word[end] >= 0
            assert inside == bool(piece.strip())
            end += 1
        total = 0.5 * text.split().count("dog")
        assert found.share[place:end].sum() == pytest.approx(total)
        assert found.whole[place:end].max() == pytest.approx(0.5)
        place = end


def test_a_rare_token_weighs_less_than_its_mean():
    """Sum over occurrences plus two."""
    tokens = np.array([3, 3, 5, 3])
    weights = token_weights(tokens, np.array([1.0, 0.5, 0.6, 0.0]), 7)
    assert weights[[3, 5]] == pytest.approx([1.5 / 5, 0.6 / 3])
    assert np.count_nonzero(weights) == 2


def test_a_text_without_words_has_no_effect():
    """Nothing to divide by."""
    nothing = TokenEffects(np.array([-1, -1]), np.zeros(0))
    assert nothing.share.tolist() == nothing.whole.tolist() == [0, 0]


def test_unwanted_words_are_those_the_scorer_calls_so():
    """Lower case, letters alone, each once."""
    assert unwanted_words(["The Dog! dog2 fox", "a do"], saturating) == ["dog"]
