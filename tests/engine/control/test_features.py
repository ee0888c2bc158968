"""Features of options against plain loops over tokens and prototypes."""

import numpy as np
import torch

from engine.control.features import Dictionary, centred, option_features
from engine.control.options import OptionTokens
from engine.prism.activation import prototype_activations


TOKENS, WIDTH, K, VOCAB = 19, 11, 13, 23


def _read() -> OptionTokens:
    generator = np.random.default_rng(0)
    option = np.sort(generator.integers(0, 7, TOKENS))
    option[:7] = np.arange(7)
    return OptionTokens(
        states=generator.normal(size=(TOKENS, WIDTH)).astype(np.float32),
        tokens=generator.integers(0, VOCAB, TOKENS),
        option=np.sort(option),
        log_probability=-generator.random(TOKENS),
        option_bytes=np.full(7, 3),
        question=np.array([0, 0, 0, 1, 1, 2, 2]),
    )


def test_features_are_sums_of_slices_over_the_tokens_of_an_option(monkeypatch):
    """f_i = sum_t a_ti (W p_i)[v_t], also across the chunks it is computed in."""
    monkeypatch.setattr("engine.control.features._ROWS", 5)
    bank, head = torch.randn(K, WIDTH), torch.randn(VOCAB, WIDTH)
    read = _read()
    dictionary = Dictionary(lambda z: prototype_activations(z, bank, 3), bank)
    found = option_features(read, dictionary, head, factor=0.7).toarray()
    expected = np.zeros((7, K))
    for state, token, option in zip(read.states, read.tokens, read.option, strict=True):
        cosine = torch.nn.functional.cosine_similarity(torch.from_numpy(state), bank, dim=1)
        for i in cosine.topk(3).indices.tolist():
            activation = max(0.0, float(cosine[i]))
            expected[option, i] += activation * 0.7 * float(bank[i] @ head[token])
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_centred_features_lose_the_mean_over_the_options_of_a_question():
    """What a question's options share cannot move its choice."""
    bank, head = torch.randn(K, WIDTH), torch.randn(VOCAB, WIDTH)
    read = _read()
    dictionary = Dictionary(lambda z: prototype_activations(z, bank, 3), bank)
    features = option_features(read, dictionary, head)
    found, dense = centred(features, read.question).toarray(), features.toarray()
    for question in range(3):
        own = read.question == question
        np.testing.assert_allclose(found[own], dense[own] - dense[own].mean(0), atol=1e-9)
