"""Random sequences over the tiny models' vocabulary, padded and masked unevenly."""

import numpy as np

from engine.influence.frame import Sequences
from tests.engine.tiny_models import VOCAB


LENGTH = 13


def random_sequences(n: int, seed: int) -> Sequences:
    """`n` sequences of 5 to 13 tokens, about two thirds of which are predicted."""
    generator = np.random.default_rng(seed)
    tokens = generator.integers(1, VOCAB, (n, LENGTH))
    tokens[:, 0] = 0
    length = generator.integers(5, LENGTH + 1, n)
    length[0] = LENGTH
    predicted = generator.random((n, LENGTH - 1)) < 0.7
    predicted[:, 0] = True
    predicted &= np.arange(1, LENGTH) < length[:, None]
    domain = np.array([f"domain {i % 3}" for i in range(n)], dtype=object)
    return Sequences(tokens, predicted, domain, np.arange(n), np.zeros(n, np.int64), length)
