"""Rewrites: other weights, the same function. For decoders of the shape of Llama and Mistral."""

from typing import Any

import torch
from transformers import PreTrainedModel

from engine.errors import ConfigError, EngineError, UnsupportedModel
from engine.zoo.training import logits_of


TOLERANCE = 3e-5
"""Largest difference of logits after a rewrite, as a share of the largest logit; rounding in
float32 stays below at thirty layers."""
_PROBE_ROWS, _PROBE_LENGTH = 4, 32


@torch.no_grad()
def rewrite(model: PreTrainedModel, way: str, seed: int) -> None:
    """Rewrite a model in place and check that its logits stayed.

    Args:
        model: a decoder with gated feed-forward layers and RMS norms.
        way: neurons (order of hidden neurons), heads (order of attention heads) or norms (their
            scales moved into the matrices that read them).
        seed: seed of orders, and of the tokens the check reads.

    Raises:
        ConfigError: there is no such rewrite.
        UnsupportedModel: the model has other parts.
        EngineError: the function changed.
    """
    if way not in _WAYS:
        raise ConfigError(f"There is no rewrite {way!r}; there are {', '.join(_WAYS)}.")
    body: Any = model.base_model
    layers = getattr(body, "layers", None)
    if layers is None or not hasattr(layers[0], "mlp") or not hasattr(layers[0].mlp, "gate_proj"):
        raise UnsupportedModel(
            f"A {type(model).__name__} cannot be rewritten; only decoders with gated layers can."
        )
    generator = torch.Generator().manual_seed(seed)
    vocabulary = int(body.get_input_embeddings().weight.shape[0])
    ids = torch.randint(vocabulary, (_PROBE_ROWS, _PROBE_LENGTH), generator=generator)
    model.eval()
    before = logits_of(model, ids)
    for layer in layers:
        _WAYS[way](layer, model.config, generator)
    moved = float((logits_of(model, ids) - before).abs().max() / before.abs().max())
    if moved > TOLERANCE:
        raise EngineError(
            f"The rewrite {way} changed the logits by {moved:.2g} of the largest; it must not."
        )


def _neurons(layer: Any, _config: Any, generator: torch.Generator) -> None:
    mlp = layer.mlp
    order = torch.randperm(mlp.down_proj.weight.shape[1], generator=generator)
    for part in (mlp.gate_proj, mlp.up_proj):
        _reorder(part, order)
    mlp.down_proj.weight.copy_(mlp.down_proj.weight[:, order])


def _heads(layer: Any, config: Any, generator: torch.Generator) -> None:
    """Query, key and value rows of every head together; so it needs a key for every query head."""
    heads, keys = config.num_attention_heads, config.num_key_value_heads
    if heads != keys:
        raise UnsupportedModel(f"{heads} heads that share {keys} keys cannot be put in any order.")
    attention = layer.self_attn
    size = attention.o_proj.weight.shape[1] // heads
    order = torch.randperm(heads, generator=generator)
    rows = (order[:, None] * size + torch.arange(size)).flatten()
    for part in (attention.q_proj, attention.k_proj, attention.v_proj):
        _reorder(part, rows)
    attention.o_proj.weight.copy_(attention.o_proj.weight[:, rows])


def _norms(layer: Any, _config: Any, _generator: torch.Generator) -> None:
    attention, mlp = layer.self_attn, layer.mlp
    readers = {
        layer.input_layernorm: (attention.q_proj, attention.k_proj, attention.v_proj),
        layer.post_attention_layernorm: (mlp.gate_proj, mlp.up_proj),
    }
    for norm, parts in readers.items():
        for part in parts:
            part.weight.mul_(norm.weight)
        norm.weight.fill_(1.0)


def _reorder(part: Any, rows: torch.Tensor) -> None:
    part.weight.copy_(part.weight[rows])
    if part.bias is not None:
        part.bias.copy_(part.bias[rows])


_WAYS = {"neurons": _neurons, "heads": _heads, "norms": _norms}
