"""What the references ask of the decoder: losses and states of sequences, and its block linears."""

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional
from transformers import PreTrainedModel

from engine.influence.frame import Sequences
from engine.numerics import full_precision
from engine.prism.model import PrismForCausalLM


def decoder_of(model: PreTrainedModel) -> PreTrainedModel:
    """The decoder that emits the logits: the backbone of a prototype model, else the model."""
    return model.backbone if isinstance(model, PrismForCausalLM) else model


def tensors(
    sequences: Sequences, device: torch.device | str
) -> tuple[Int[Tensor, "n length"], Bool[Tensor, "n length-1"]]:
    """Tokens and what is predicted, on a device."""
    tokens = torch.from_numpy(np.ascontiguousarray(sequences.tokens, dtype=np.int64)).to(device)
    return tokens, torch.from_numpy(np.ascontiguousarray(sequences.predicted)).to(device)


def summed_losses(
    model: PreTrainedModel, tokens: Int[Tensor, "n length"], predicted: Bool[Tensor, "n length-1"]
) -> Float[Tensor, " n"]:
    """Loss of each sequence: the sum over its predicted tokens of -log p, nats.

    Padding stands on the right, where a causal decoder does not see it.
    """
    logits = full_precision(decoder_of(model)(input_ids=tokens, use_cache=False).logits)[:, :-1]
    return label_losses(logits, tokens[:, 1:], predicted)


def label_losses(
    logits: Float[Tensor, "n pos vocab"],
    labels: Int[Tensor, "n pos"],
    predicted: Bool[Tensor, "n pos"],
) -> Float[Tensor, " n"]:
    """The sum of -log p of the labels over the predicted positions, nats."""
    losses = functional.cross_entropy(logits.transpose(1, 2), labels, reduction="none")
    return torch.where(predicted, losses, 0.0).sum(1)


@torch.no_grad()
def last_states(
    model: PreTrainedModel, tokens: Int[Tensor, "n length"]
) -> Float[Tensor, "n length d_model"]:
    """States after the final norm, the LM head's input."""
    base: nn.Module = decoder_of(model).base_model
    return full_precision(base(input_ids=tokens, use_cache=False).last_hidden_state)


def block_linears(decoder: PreTrainedModel) -> list[str]:
    """Names of the linear layers inside the decoder's blocks: not the embedding, not the LM head.

    A layer whose weight is also the embedding's or the head's is left out with them.
    """
    outer = [decoder.get_output_embeddings(), decoder.get_input_embeddings()]
    shared = {id(p) for module in outer if module is not None for p in module.parameters()}
    return [
        name
        for name, module in decoder.named_modules()
        if isinstance(module, nn.Linear) and id(module.weight) not in shared
    ]
