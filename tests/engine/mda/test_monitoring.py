"""What is watched along a training, against its definitions."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from engine.errors import ConfigError
from engine.mda.monitoring import contexts, icl_score, measure, predicted_tokens
from engine.mda.patterns import head_scores, repeated_sequences
from engine.mda.settings import ProbeConfig
from tests.engine.tiny_decoders import VOCAB, decoder


WORDS = np.arange(3, VOCAB)
PROBE = ProbeConfig(sequences=7, length=10)


def test_the_icl_score_is_the_reference_definition_where_rows_have_a_token_500():
    """L_500 - mean(L_0..50); column i of the losses belongs to token i + 1."""
    losses = torch.rand(3, 511)
    by_hand = losses[:, 499].mean() - losses[:, :50].mean()
    assert icl_score(losses) == pytest.approx(float(by_hand))
    assert contexts(511).definition.startswith(
        "loss at token 500 minus mean loss of tokens 1 to 50"
    )
    assert contexts(500).late == range(500, 501)


def test_shorter_rows_compare_their_ends():
    """The last quarter, 28 tokens at most, with the first third, 50 at most."""
    losses = torch.rand(3, 41)
    assert icl_score(losses) == pytest.approx(float(losses[:, -10:].mean() - losses[:, :13].mean()))
    assert contexts(256).late == range(229, 257)
    assert contexts(256).early == range(1, 51)
    assert "mean loss of tokens 32 to 41" in contexts(41).definition
    with pytest.raises(ConfigError, match="7 tokens are too short"):
        contexts(7)


@pytest.mark.parametrize("name", ["gpt2", "gpt_neox", "llama"])
def test_losses_and_scores_do_not_depend_on_the_batch(name: str):
    """Loss, copying and heads against one pass over everything."""
    torch.manual_seed(0)
    model = decoder(name)
    rows = torch.randint(3, VOCAB, (11, 20))
    found = measure(model, WORDS, rows, PROBE, 4)
    with torch.inference_mode():
        logits = model(input_ids=rows[:, :-1]).logits
        losses = functional.cross_entropy(logits.mT, rows[:, 1:], reduction="none")
        repeated = repeated_sequences(WORDS, PROBE)
        copied = model(input_ids=repeated[:, :-1]).logits.mT[:, :, 5:]
        copy_loss = functional.cross_entropy(copied, repeated[:, 6:])
    assert found["loss"] == pytest.approx(float(losses.mean()), rel=1e-5)
    assert found["icl"] == pytest.approx(icl_score(losses), abs=1e-5)
    assert found["copy_loss"] == pytest.approx(float(copy_loss), rel=1e-5)
    for pattern, scores in head_scores(model, WORDS, PROBE).items():
        assert scores.shape == (2, 3)
        np.testing.assert_allclose(found["heads"][pattern], scores, atol=1e-6)


def test_without_held_out_rows_there_is_no_loss():
    """Nothing stands in for it."""
    found = measure(decoder("llama"), WORDS, None, PROBE, 4)
    assert found["loss"] is None
    assert found["icl"] is None


def test_a_model_gives_away_the_tokens_it_has_seen():
    """Tokens that it never predicts, and its special ones, are left out."""
    torch.manual_seed(0)
    model = decoder("gpt_neox", tie_word_embeddings=False)
    head = model.get_output_embeddings()
    biased = torch.nn.Linear(head.in_features, VOCAB)
    model.set_output_embeddings(biased)
    with torch.no_grad():
        biased.bias[40:] = -30.0
    found = predicted_tokens(model, length=9)
    assert found.max() < 40
    assert len(found) > 30
    assert not {1, 2} & set(found.tolist())
    assert (found == predicted_tokens(model, length=9)).all()
