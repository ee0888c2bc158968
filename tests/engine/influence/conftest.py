"""A tiny prototype model with a pool and queries."""

import pytest
import torch

from engine.config import LossWeights
from engine.influence.frame import Sequences
from engine.prism.configuration import PrismConfig
from engine.prism.model import PrismForCausalLM
from tests.engine.influence.small_sequences import random_sequences
from tests.engine.tiny_models import N_ACTIVE, N_PROTOTYPES, llama_config


@pytest.fixture(scope="session")
def small_model() -> PrismForCausalLM:
    torch.manual_seed(3)
    config = PrismConfig.for_backbone(
        llama_config(), weights=LossWeights(), n_prototypes=N_PROTOTYPES, n_active=N_ACTIVE
    )
    return PrismForCausalLM(config).eval()


@pytest.fixture(scope="session")
def pool() -> Sequences:
    return random_sequences(19, seed=1)


@pytest.fixture(scope="session")
def queries() -> Sequences:
    return random_sequences(7, seed=2)
