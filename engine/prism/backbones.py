"""Decoder configurations for training from scratch: any `transformers` causal language model."""

from pathlib import Path
from typing import Any

from transformers import AutoConfig, PreTrainedConfig
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from engine.config import TrainConfig
from engine.errors import ConfigError


_SIZES = {
    "n_embd": "d_model",
    "hidden_size": "d_model",
    "n_layer": "n_layers",
    "num_hidden_layers": "n_layers",
    "n_head": "n_heads",
    "num_attention_heads": "n_heads",
    "num_key_value_heads": "n_heads",
    "n_positions": "context",
    "max_position_embeddings": "context",
}
"""Names a configuration may use, and the setting each takes its value from."""

_NO_DROPOUT = ("resid_pdrop", "embd_pdrop", "attn_pdrop", "attention_dropout", "hidden_dropout")


def backbone_config(config: TrainConfig, *, end_of_text: int) -> PreTrainedConfig:
    """The decoder a run trains.

    `config.backbone` is a `transformers` model type (its configuration takes the run's sizes) or
    a folder with a `config.json` (kept as it is, but for vocabulary and context).

    Raises:
        ConfigError: No such model type or folder.
    """
    shared = {
        "vocab_size": config.vocab_size,
        "tie_word_embeddings": True,
        "bos_token_id": end_of_text,
        "eos_token_id": end_of_text,
        "pad_token_id": None,
    }
    folder = Path(config.backbone)
    if (folder / "config.json").is_file():
        found = AutoConfig.from_pretrained(folder)
        for name, value in (shared | _context(found, config.context)).items():
            setattr(found, name, value)
        return found
    if config.backbone not in CONFIG_MAPPING:
        raise ConfigError(
            f"There is no backbone called {config.backbone!r}; name a transformers model type "
            "(llama, gpt2, gpt_neox, qwen2 ...) or a folder with a config.json."
        )
    default = CONFIG_MAPPING[config.backbone]()
    sizes = {n: getattr(config, field) for n, field in _SIZES.items() if n in vars(default)}
    sizes |= {name: 0.0 for name in _NO_DROPOUT if name in vars(default)}
    return AutoConfig.for_model(config.backbone, **shared, **sizes, **_widths(default, config))


def _context(found: PreTrainedConfig, context: int) -> dict[str, Any]:
    name = "n_positions" if "n_positions" in vars(found) else "max_position_embeddings"
    return {name: context}


def _widths(default: PreTrainedConfig, config: TrainConfig) -> dict[str, Any]:
    """Width of the feed-forward layers: 8/3 of the state where gated, 4 times it elsewhere."""
    names = vars(default)
    widths: dict[str, Any] = {}
    if "intermediate_size" in names:
        gated = "hidden_act" in names and names["hidden_act"] == "silu"
        width = config.d_model * 8 / 3 if gated else config.d_model * 4
        widths["intermediate_size"] = max(32, round(width / 32) * 32)
    if "head_dim" in names:
        widths["head_dim"] = config.d_model // config.n_heads
    return widths
