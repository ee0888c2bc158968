"""Decoders of several families, all of one tiny shape, with random weights."""

from typing import Any

from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedConfig, PreTrainedModel


D_MODEL, VOCAB = 24, 61
ARCHITECTURES = ("gpt2", "gpt_neox", "llama", "qwen2", "qwen3", "mistral", "olmo2")

_SIZES: dict[str, Any] = {
    "vocab_size": VOCAB,
    "hidden_size": D_MODEL,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "num_key_value_heads": 3,
    "head_dim": 8,
    "intermediate_size": 40,
    "max_position_embeddings": 64,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}
_OWN: dict[str, dict[str, Any]] = {
    "gpt2": {
        "vocab_size": VOCAB,
        "n_embd": D_MODEL,
        "n_layer": 2,
        "n_head": 3,
        "n_positions": 64,
        "bos_token_id": 1,
        "eos_token_id": 2,
    },
    "cohere": {**_SIZES, "logit_scale": 0.5},
    "granite": {**_SIZES, "logits_scaling": 4.0},
}


def decoder_config(name: str, **settings: Any) -> PreTrainedConfig:
    """Configuration of a tiny decoder of one family."""
    return AutoConfig.for_model(name, **{**_OWN.get(name, _SIZES), **settings})


def decoder(name: str, **settings: Any) -> PreTrainedModel:
    """A tiny decoder with random weights, in evaluation mode."""
    return AutoModelForCausalLM.from_config(decoder_config(name, **settings)).eval()
