"""A model of a zoo as a folder that transformers reads, with what is known of it beside."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM, PreTrainedModel

from engine.corpus.tokenizer import load_tokenizer, save_tokenizer
from engine.errors import CacheStale
from engine.lm.loading import quiet_loading
from engine.zoo.architectures import POSITIONS


WEIGHTS = "model.safetensors"
CARD = "zoo.json"
"""What is known of a model: its plan, its identity, its accuracy."""
ANSWERS = "answers.npy"
"""Log-probabilities of the options of every question, [questions, options] float32."""


@dataclass
class ZooModel:
    """A model in memory."""

    model: PreTrainedModel
    """In float32."""
    tokenizer: Tokenizer
    """Its tokenizer."""
    loss: float | None = None
    """Mean loss at the end of its training, in nats per token; None where there was none."""


def save_model(found: ZooModel, folder: Path) -> None:
    """Write configuration, float32 weights and tokenizer."""
    quiet_loading()
    found.model.save_pretrained(folder)
    save_tokenizer(found.tokenizer, folder, POSITIONS)


def load_model(folder: Path) -> ZooModel:
    """Read what `save_model` wrote.

    Raises:
        CacheStale: the folder is damaged.
    """
    quiet_loading()
    try:
        model: Any = AutoModelForCausalLM.from_pretrained(
            folder, dtype=torch.float32, local_files_only=True
        )
    except (OSError, ValueError, RuntimeError) as error:
        raise CacheStale(
            f"The model in {folder} cannot be read; remove the folder and build the zoo again."
        ) from error
    return ZooModel(model, load_tokenizer(folder))
