"""Causal LMs by folder, hub id or the name of a package that carries weights."""

from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, PreTrainedModel

from engine.errors import CacheMissing


def load_weights(
    base: dict[str, Any], *, dtype: torch.dtype = torch.float32
) -> tuple[PreTrainedModel, Path]:
    """Load the decoder a retrofit refers to, and the folder of its tokenizer."""
    path = Path(base.get("path", ""))
    if not path.is_dir():
        raise CacheMissing(f"The decoder {base!r} is not on this machine.")
    return AutoModelForCausalLM.from_pretrained(path, dtype=dtype).eval(), path
