"""The decoder architectures of a zoo, each as a configuration of a few ten thousand weights."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedConfig, PreTrainedModel

from engine.errors import ConfigError


POSITIONS = 512
"""Positions of every model that counts them: more than any probe has tokens."""
HEAD = 16
"""Channels of an attention head."""
_INITIAL = 0.02
_RESOLUTION = 8
Sizes = dict[str, Any]


@dataclass(frozen=True)
class Size:
    """Width and depth."""

    d_model: int
    """Hidden size."""
    n_layers: int
    """Layers."""


SIZES: dict[str, Size] = {
    "XS": Size(48, 2),
    "S": Size(64, 2),
    "M": Size(96, 3),
    "L": Size(128, 4),
}
"""Sizes by name."""


def _common(d: int, n: int, vocab: int) -> Sizes:
    heads = d // HEAD
    return {
        "vocab_size": vocab,
        "hidden_size": d,
        "num_hidden_layers": n,
        "num_attention_heads": heads,
        "num_key_value_heads": heads,
        "intermediate_size": 4 * d,
        "max_position_embeddings": POSITIONS,
        "tie_word_embeddings": True,
        "initializer_range": _INITIAL,
        "bos_token_id": 0,
        "eos_token_id": 0,
        "pad_token_id": None,
        "use_cache": False,
    }


def _gated(d: int, n: int, vocab: int) -> Sizes:
    """A gated feed-forward part has three matrices in place of two, so it is narrower."""
    return _common(d, n, vocab) | {"intermediate_size": 8 * d // 3 // 8 * 8}


def _with_head(d: int, n: int, vocab: int) -> Sizes:
    return _gated(d, n, vocab) | {"head_dim": HEAD}


def _mistral(d: int, n: int, vocab: int) -> Sizes:
    return _with_head(d, n, vocab) | {"sliding_window": None}


def _gemma(d: int, n: int, vocab: int) -> Sizes:
    scaled = {"query_pre_attn_scalar": HEAD, "sliding_window": POSITIONS}
    return _with_head(d, n, vocab) | scaled


def _granite(d: int, n: int, vocab: int) -> Sizes:
    scaled = {"residual_multiplier": 0.7, "embedding_multiplier": 2.0, "logits_scaling": 1.0}
    return _gated(d, n, vocab) | scaled


def _gpt2(d: int, n: int, vocab: int) -> Sizes:
    dropout = dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), 0.0)
    sizes = {"n_embd": d, "n_layer": n, "n_head": d // HEAD, "n_positions": POSITIONS}
    return {**_tokens(vocab), **sizes, **dropout}


def _gpt_neo(d: int, n: int, vocab: int) -> Sizes:
    sizes = {"hidden_size": d, "num_layers": n, "num_heads": d // HEAD}
    attention = {"attention_types": [[["global"], n]], "max_position_embeddings": POSITIONS}
    return {**_tokens(vocab), **sizes, **attention}


def _opt(d: int, n: int, vocab: int) -> Sizes:
    return _common(d, n, vocab) | {
        "ffn_dim": 4 * d,
        "word_embed_proj_dim": d,
        "dropout": 0.0,
        "pad_token_id": 1,
    }


def _bloom(d: int, n: int, vocab: int) -> Sizes:
    return {**_tokens(vocab), "hidden_size": d, "n_layer": n, "n_head": d // HEAD}


def _mpt(d: int, n: int, vocab: int) -> Sizes:
    sizes = {"d_model": d, "n_layers": n, "n_heads": d // HEAD, "max_seq_len": POSITIONS}
    return {**_tokens(vocab), **sizes}


def _falcon(d: int, n: int, vocab: int) -> Sizes:
    sizes = {"hidden_size": d, "num_hidden_layers": n, "num_attention_heads": d // HEAD}
    kind = {"alibi": False, "multi_query": True, "parallel_attn": True, "bias": False}
    return {**_tokens(vocab), **sizes, **kind, "new_decoder_architecture": False}


def _mamba(d: int, n: int, vocab: int) -> Sizes:
    sizes = {"hidden_size": d, "num_hidden_layers": n, "state_size": _RESOLUTION}
    return {**_tokens(vocab), **sizes}


def _tokens(vocab: int) -> Sizes:
    names = {"bos_token_id": 0, "eos_token_id": 0, "pad_token_id": None, "use_cache": False}
    return {"vocab_size": vocab, **names}


_CONFIGURATIONS: dict[str, Callable[[int, int, int], Sizes]] = {
    "gpt2": _gpt2,
    "gpt_neo": _gpt_neo,
    "gpt_neox": _common,
    "opt": _opt,
    "bloom": _bloom,
    "mpt": _mpt,
    "falcon": _falcon,
    "phi": _common,
    "llama": _with_head,
    "mistral": _mistral,
    "qwen3": _with_head,
    "gemma2": _gemma,
    "gemma3_text": _gemma,
    "olmo2": _gated,
    "granite": _granite,
    "stablelm": _gated,
    "mamba": _mamba,
}
ARCHITECTURES = tuple(_CONFIGURATIONS)
"""Model types of transformers that a zoo holds. Qwen2 is none of them: transformers reads any
tokenizer of that type as its own, so a folder with another one would be read wrongly."""


def architecture_config(
    name: str, size: str, vocab_size: int, n_layers: int | None = None
) -> PreTrainedConfig:
    """Configuration of one architecture.

    Args:
        name: one of `ARCHITECTURES`.
        size: one of `SIZES`.
        vocab_size: tokens.
        n_layers: layers where they differ from the size's.

    Raises:
        ConfigError: there is no such architecture or size.
    """
    if name not in _CONFIGURATIONS:
        raise ConfigError(
            f"There is no architecture {name!r} in the zoo; there are {', '.join(ARCHITECTURES)}."
        )
    if size not in SIZES:
        raise ConfigError(f"There is no size {size!r}; there are {', '.join(SIZES)}.")
    shape = SIZES[size]
    settings = _CONFIGURATIONS[name](shape.d_model, n_layers or shape.n_layers, vocab_size)
    return AutoConfig.for_model(name, **settings)


def random_model(config: PreTrainedConfig, seed: int) -> PreTrainedModel:
    """A decoder with random weights from its seed; the caller's random state stays as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return AutoModelForCausalLM.from_config(config, dtype=torch.float32)


def linear_weights(model: PreTrainedModel) -> dict[str, torch.nn.Module]:
    """Modules with a matrix that maps hidden states, by name; embedding and head are left out.

    Their `weight` is [out, in], or [in, out] in GPT-2, whose modules are transposed.
    """
    outside = {id(model.get_input_embeddings()), id(model.get_output_embeddings())}
    return {
        name: module
        for name, module in model.named_modules()
        if id(module) not in outside and type(module).__name__ in _LINEAR
    }


def is_transposed(module: torch.nn.Module) -> bool:
    """Whether a module of `linear_weights` has its weight as [in, out]."""
    return type(module).__name__ == "Conv1D"


_LINEAR = ("Linear", "Conv1D", "FalconLinear")
