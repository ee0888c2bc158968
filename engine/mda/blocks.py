"""Which rows and columns of a decoder's weights belong to an attention head.

Of a layer with H heads of d_head features, the query, key and value of head h are d_head features
of some linear map's *output*; what the head writes is read from d_head features of the output
projection's *input*. How they lie differs: GPT-NeoX fuses head by head ([H, 3, d_head]), GPT-2
kind by kind ([3, H, d_head], weights transposed), Llama, Mistral, Qwen and OLMo-2 keep three maps
apart, with fewer key and value heads than query heads where these are grouped.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import torch
from jaxtyping import Int
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D

from engine.errors import ConfigError, UnsupportedModel


@dataclass(frozen=True)
class Part:
    """One kind of projection of a layer: the module it is computed by and each head's features.

    `features[h]` are output features of the module for queries, keys and values, and input
    features for the output projection. Heads of one group share the features of their key and of
    their value.
    """

    module: str
    features: Int[Tensor, "heads d_head"]


@dataclass(frozen=True)
class LayerParts:
    """The four projections of one layer."""

    query: Part
    key: Part
    value: Part
    output: Part
    coupled: bool = False
    """Whether a norm over all heads together lets a head's queries or keys move other patterns."""


@dataclass(frozen=True)
class HeadLayout:
    """Where every head of a decoder lies."""

    layers: tuple[LayerParts, ...]
    n_heads: int
    d_head: int
    n_key_value_heads: int

    @property
    def n_layers(self) -> int:
        """Layers with attention."""
        return len(self.layers)

    @property
    def grouped(self) -> bool:
        """Whether several heads share a key and a value."""
        return self.n_key_value_heads < self.n_heads

    def modules(self) -> tuple[str, ...]:
        """Names of all modules that hold a part, each once, in the order of the layers."""
        parts = (p for at in self.layers for p in (at.query, at.key, at.value, at.output))
        return tuple(dict.fromkeys(part.module for part in parts))

    def check(self, layer: int, head: int) -> None:
        """Refuse a head that does not exist.

        Raises:
            ConfigError: says which do.
        """
        if not (0 <= layer < self.n_layers and 0 <= head < self.n_heads):
            raise ConfigError(
                f"There is no head {layer}.{head}; this model has layers 0 to "
                f"{self.n_layers - 1} with heads 0 to {self.n_heads - 1}."
            )


def parse_head(name: str) -> tuple[int, int]:
    """Layer and head of `1.3`.

    Raises:
        ConfigError: it is not written so.
    """
    layer, dot, head = name.strip().partition(".")
    if not (dot and layer.isdecimal() and head.isdecimal()):
        raise ConfigError(f"{name!r} names no head; write LAYER.HEAD, 1.3 for example.")
    return int(layer), int(head)


def head_layout(model: PreTrainedModel) -> HeadLayout:
    """Find every head of a decoder.

    Raises:
        UnsupportedModel: its attention has no projections whose heads are known here.
    """
    found = [
        (name, module)
        for name, module in model.named_modules()
        if any(hasattr(module, mark) for mark in _LAYOUTS)
    ]
    config = model.config.get_text_config()
    n_heads = int(getattr(config, "num_attention_heads", 0))
    if not found or n_heads == 0:
        raise UnsupportedModel(
            f"{type(model).__name__} has no attention projections that can be read head by head; "
            "use a GPT-2, GPT-NeoX, Llama, Mistral, Qwen or OLMo-2 shaped model."
        )
    layers = tuple(_layer(name, module, n_heads) for name, module in found)
    d_head = int(layers[0].query.features.shape[1])
    groups = len(torch.unique(layers[0].key.features[:, 0]))
    return HeadLayout(layers, n_heads, d_head, groups)


def _layer(name: str, attention: nn.Module, n_heads: int) -> LayerParts:
    mark = next(mark for mark in _LAYOUTS if hasattr(attention, mark))
    return _LAYOUTS[mark](name, attention, n_heads)


def _heads(n_heads: int, d_head: int, first: int = 0, stride: int | None = None) -> Tensor:
    """Features [heads, d_head] of heads that follow each other, `stride` apart."""
    start = first + torch.arange(n_heads) * (d_head if stride is None else stride)
    return start[:, None] + torch.arange(d_head)


def _neox(name: str, attention: Any, n_heads: int) -> LayerParts:
    """Fused head by head: query, key and value of one head lie together."""
    if type(attention).__name__ != "GPTNeoXAttention":
        raise _unknown(attention, "fuses query, key and value in an order that is not known here")
    fused = f"{name}.query_key_value"
    d_head = attention.query_key_value.out_features // (3 * n_heads)
    return LayerParts(
        *(Part(fused, _heads(n_heads, d_head, i * d_head, 3 * d_head)) for i in (0, 1, 2)),
        output=Part(f"{name}.dense", _heads(n_heads, d_head)),
    )


def _gpt2(name: str, attention: Any, n_heads: int) -> LayerParts:
    """Fused kind by kind: all queries, then all keys, then all values."""
    if not isinstance(attention.c_attn, Conv1D):
        raise _unknown(attention, "fuses query, key and value in an order that is not known here")
    fused = f"{name}.c_attn"
    width = attention.c_attn.nf // 3
    d_head = width // n_heads
    return LayerParts(
        *(Part(fused, _heads(n_heads, d_head, i * width)) for i in (0, 1, 2)),
        output=Part(f"{name}.c_proj", _heads(n_heads, d_head)),
    )


def _apart(name: str, attention: Any, n_heads: int) -> LayerParts:
    """Three maps; heads of one group share key and value."""
    output = next((o for o in ("o_proj", "out_proj", "dense") if hasattr(attention, o)), None)
    if output is None or not (hasattr(attention, "k_proj") and hasattr(attention, "v_proj")):
        raise _unknown(attention, "does not compute query, key, value and output by four maps")
    d_head = int(getattr(attention, "head_dim", attention.q_proj.out_features // n_heads))
    n_shared = attention.k_proj.out_features // d_head
    sizes = (attention.k_proj.out_features, attention.v_proj.out_features, n_shared * d_head)
    if attention.q_proj.out_features != n_heads * d_head or len(set(sizes)) > 1:
        raise _unknown(attention, f"has no {n_heads} queries of {d_head} features each")
    shared = _heads(n_shared, d_head).repeat_interleave(n_heads // n_shared, dim=0)
    return LayerParts(
        Part(f"{name}.q_proj", _heads(n_heads, d_head)),
        Part(f"{name}.k_proj", shared),
        Part(f"{name}.v_proj", shared),
        Part(f"{name}.{output}", _heads(n_heads, d_head)),
        coupled=any(_is_wide(attention, norm, d_head) for norm in ("q_norm", "k_norm")),
    )


def _is_wide(attention: Any, norm: str, d_head: int) -> bool:
    """Whether a norm of queries or keys goes over more than one head."""
    weight = getattr(getattr(attention, norm, None), "weight", None)
    return weight is not None and weight.numel() > d_head


def _unknown(attention: nn.Module, what: str) -> UnsupportedModel:
    return UnsupportedModel(
        f"{type(attention).__name__} {what}; use a GPT-2, GPT-NeoX, Llama, Mistral, Qwen or OLMo-2 "
        "shaped model."
    )


_LAYOUTS: dict[str, Callable[[str, Any, int], LayerParts]] = {
    "query_key_value": _neox,
    "c_attn": _gpt2,
    "q_proj": _apart,
}
"""How a layer is read, by a module that its attention has."""


def weight_of(model: nn.Module, part: Part) -> Tensor:
    """The part's weight as [out, in], whatever way the module stores it."""
    module = model.get_submodule(part.module)
    weight = cast(Tensor, module.weight)
    return weight.T if isinstance(module, Conv1D) else weight
