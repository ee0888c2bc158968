from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.nn import functional

from engine.config import LossWeights
from engine.errors import ConfigError
from engine.prism.attribution import statistics
from engine.prism.attribution.statistics import row_statistics
from engine.prism.configuration import PrismConfig
from engine.prism.model import PrismForCausalLM
from tests.engine.tiny_models import gpt2_config, llama_config, neox_config


ROWS, LENGTH, PROTOTYPES, ACTIVE, VOCAB = 7, 19, 37, 5, 311


def tiny(backbone):
    config = PrismConfig.for_backbone(
        backbone, weights=LossWeights(), n_prototypes=PROTOTYPES, n_active=ACTIVE
    )
    return PrismForCausalLM(config).eval()


def rows():
    generator = np.random.default_rng(1)
    lengths = np.array([3, LENGTH - 1, 0, 11, 5, LENGTH - 1, 8])
    predicted = np.arange(LENGTH - 1) < lengths[:, None]
    predicted[1, 4] = False
    return SimpleNamespace(tokens=generator.integers(0, VOCAB, (ROWS, LENGTH)), predicted=predicted)


@pytest.mark.parametrize("backbone", [llama_config, gpt2_config, neox_config])
def test_statistics_of_rows_are_those_of_each_row_alone(backbone, monkeypatch):
    """Batches of like length, padding and chunks change nothing, whatever the decoder."""
    monkeypatch.setattr(statistics, "CHUNK_LOGITS", 11 * VOCAB)
    monkeypatch.setattr(statistics, "BATCH_TOKENS", 2 * LENGTH)
    model, given = tiny(backbone()), rows()
    found = row_statistics(model, given)
    expected_place = np.argwhere(given.predicted)
    assert np.array_equal(torch.stack([found.row, found.position], 1).numpy(), expected_place)
    for row in range(ROWS):
        own = found.row == row
        if not own.any():
            continue
        with torch.no_grad():
            ids = torch.from_numpy(given.tokens[row : row + 1])
            out = model(input_ids=ids, return_prototypes=True)
        at = found.position[own]
        state = out.states[0, at]
        torch.testing.assert_close(
            found.unit_states[own], functional.normalize(state, dim=1), rtol=1e-4, atol=1e-5
        )
        torch.testing.assert_close(
            found.square_norm[own], state.square().sum(1), rtol=1e-4, atol=1e-4
        )
        torch.testing.assert_close(
            found.activations[own], out.prototype_activations[0, at], rtol=1e-4, atol=1e-5
        )
        logits = out.logits[0, at]
        target = ids[0, at + 1]
        torch.testing.assert_close(
            found.loss[own],
            functional.cross_entropy(logits, target, reduction="none"),
            rtol=1e-4,
            atol=1e-4,
        )
        head = model.get_output_embeddings().weight.detach()
        excess = logits.softmax(-1) - functional.one_hot(target, len(head))
        torch.testing.assert_close(found.errors[own], excess @ head, rtol=1e-3, atol=1e-4)


def test_rows_without_a_prediction_are_refused():
    """There is nothing to attribute."""
    given = rows()
    given.predicted[:] = False
    with pytest.raises(ConfigError, match="No token of these sequences is predicted"):
        row_statistics(tiny(llama_config()), given)
