"""Folders a prototype model is read from: whole, or a bank beside weights kept elsewhere."""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import nn
from transformers import PreTrainedModel

from engine.errors import CacheMissing, CacheStale, UnsupportedModel
from engine.lm.loading import (
    MISFITS,
    check_finite,
    check_weights,
    first_line,
    load_weights,
    quiet_loading,
)
from engine.prism.configuration import MODEL_TYPE, PrismConfig
from engine.prism.model import PrismForCausalLM


BANK_FILE = "bank.safetensors"
"""A retrofit's own weights; the decoder's stay where `config.base` says."""

CONFIG_FILE = "config.json"


def load_prism(
    path: str | Path, *, dtype: torch.dtype = torch.float32, device: torch.device | str = "cpu"
) -> tuple[PrismForCausalLM, Path]:
    """Load a prototype model for inference, and the folder its tokenizer lies in.

    Args:
        path: a folder written by `save_pretrained`, or one written by `save_bank`.
        dtype: format of all weights.
        device: where they go.
    """
    quiet_loading()
    folder = Path(path)
    settings = _read_config(folder)
    if settings.get("model_type") != MODEL_TYPE:
        raise UnsupportedModel(
            f"{folder} holds a model of type {settings.get('model_type')!r} without prototypes; "
            "fit a bank to it with `headwater retrofit`."
        )
    try:
        if (folder / BANK_FILE).exists():
            model, tokenizer = _load_retrofit(folder, settings, dtype)
        else:
            model, tokenizer = _load_whole(folder, dtype), folder
    except OSError as error:
        raise CacheMissing(
            f"{folder} holds no readable model.safetensors; write the model with save_pretrained "
            "or train it again."
        ) from error
    except SafetensorError as error:
        raise CacheStale(
            f"The weights in {folder} are damaged ({error}); train or copy the model again."
        ) from error
    except MISFITS as error:
        raise CacheStale(
            f"The weights in {folder} do not fit its {CONFIG_FILE} ({first_line(error)}); "
            "train or copy the model again."
        ) from error
    nn.Module.to(model, device)
    return model.eval(), tokenizer


def save_bank(model: PrismForCausalLM, folder: str | Path, base: dict[str, Any]) -> None:
    """Write a retrofit: the bank and the configuration, without the decoder's weights.

    Args:
        model: the fitted model.
        folder: where to write; created if missing.
        base: how to find the decoder again, as `engine.lm.loading.load_weights` reads it.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    model.config.base = base
    model.config.decoder.name_or_path = ""  # a place on this machine says nothing elsewhere
    bank = model.prototypes.detach().to("cpu").contiguous()
    save_file({"prototypes": bank}, folder / BANK_FILE, metadata={"format": "pt"})
    model.config.architectures = [type(model).__name__]
    model.config.save_pretrained(folder)


def _read_config(folder: Path) -> dict[str, Any]:
    """The folder's config.json, or one sentence about what is wrong with it."""
    file = folder / CONFIG_FILE
    if not file.is_file():
        raise CacheMissing(
            f"{folder} is not a model folder (it has no {CONFIG_FILE}); "
            "train one with `headwater train`."
        )
    try:
        settings = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise CacheStale(f"{file} is not valid JSON ({error}); write the model again.") from error
    if not isinstance(settings, dict):
        raise CacheStale(f"{file} does not hold a model configuration; write the model again.")
    if settings.get("model_type") == MODEL_TYPE and not isinstance(settings.get("backbone"), dict):
        raise CacheStale(f"{file} does not say which decoder it has; write the model again.")
    return settings


def _load_whole(folder: Path, dtype: torch.dtype) -> PrismForCausalLM:
    """Load a folder of `save_pretrained`; a weight it lacks is an error, never a random start."""
    loaded: Any = PrismForCausalLM.from_pretrained(
        folder, dtype=dtype, local_files_only=True, use_safetensors=True, output_loading_info=True
    )
    model, report = loaded
    check_weights(folder, model, report)
    return model


def _load_retrofit(
    folder: Path, settings: dict[str, Any], dtype: torch.dtype
) -> tuple[PrismForCausalLM, Path]:
    """Put a stored bank around the decoder that `base` names."""
    config = PrismConfig.from_pretrained(folder)
    backbone, tokenizer = load_weights(settings.get("base") or {}, dtype=dtype)
    _check_base(folder, config, backbone)
    model = PrismForCausalLM.around(backbone, config)
    bank = load_file(folder / BANK_FILE).get("prototypes")
    if bank is None or bank.shape != model.prototypes.shape:
        found = "no bank" if bank is None else f"a bank of shape {tuple(bank.shape)}"
        raise CacheStale(
            f"{folder / BANK_FILE} holds {found}, not one of shape "
            f"{tuple(model.prototypes.shape)}; fit it again with `headwater retrofit`."
        )
    check_finite(folder / BANK_FILE, "prototypes", bank)
    model.prototypes.data = bank.to(dtype)
    own = (folder / "tokenizer.json").is_file()
    return model, folder if own else Path(tokenizer)


def _check_base(folder: Path, config: PrismConfig, backbone: PreTrainedModel) -> None:
    """Refuse weights of another shape than those the bank was fitted to."""
    asked, found = config.decoder, backbone.config
    for name in ("model_type", "hidden_size", "num_hidden_layers", "vocab_size"):
        if getattr(asked, name) != getattr(found, name):
            raise CacheStale(
                f"The bank in {folder} was fitted to a decoder with {name} "
                f"{getattr(asked, name)!r}, but the weights have {getattr(found, name)!r}; "
                "fit it again with `headwater retrofit`."
            )
