"""What the index hands to the labels: contexts, and the tokens that are never shown."""

import numpy as np

from engine.pipeline.labels import TokenTally
from engine.prism.labels.vocabulary import Vocabulary


def test_letters_typical_of_unwanted_texts_are_masked():
    """Token 1 is typical, 2 is common everywhere, 3 is typical but only a sign, 4 is too rare."""
    vocabulary = Vocabulary.of(["", " foul", " the", "!", " odd"])
    tally = TokenTally(5, unwanted=1)
    tokens = np.array([1] * 20 + [2] * 20 + [3] * 20 + [4] * 2 + [2] * 400)
    domain = np.array([1] * 62 + [0] * 400)
    tally.update(tokens, domain)
    assert tally.masked(vocabulary) == {1}
    assert TokenTally(5, unwanted=None).masked(vocabulary) == frozenset()
