"""Load a model to be embedded: a folder or hub id, an adapter on its base, its tokenizer."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedConfig, PreTrainedModel
from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

from engine.able.words import check_offsets
from engine.errors import CacheMissing, CacheStale, EngineError, UnsupportedModel
from engine.lm.loading import (
    MISFITS,
    check_finite,
    check_weights,
    first_line,
    load_weights,
    model_reference,
    quiet_loading,
)
from engine.prism.model import PrismForCausalLM


OWN = PrismForCausalLM
"""Named so that its module is loaded, which teaches transformers to load prototype models."""
ADAPTER_FILE = "adapter_config.json"
ADAPTER_WEIGHTS = "adapter_model.safetensors"
_CONTEXTS = (
    "max_position_embeddings",
    "n_positions",
    "max_seq_len",
    "n_ctx",
    "max_sequence_length",
)
_NO_BACKWARD = frozenset(
    ("gptq", "awq", "auto-round", "aqlm", "quip", "eetq", "exl2", "vptq", "spqr", "higgs")
) | frozenset(("bitnet", "fp8", "fbgemm_fp8", "mxfp4", "quark"))
"""Kinds of quantised weights whose kernels compute no gradient."""
_SAMPLE = "Question: Which 2 of 10 words fit?\nChoices:\nA. cat, B2\nAnswer:\n"
"""A text that tokenizers are tried on; plain ASCII, as nearly all of a probe is."""


@dataclass
class LoadedModel:
    """A causal language model, ready to be asked, with its tokenizer."""

    name: str
    """What it is called in tables."""
    model: PreTrainedModel
    """In evaluation mode, its parameters frozen."""
    tokenizer: Any
    """A tokenizer of transformers that gives offsets."""
    context: int | None
    """Most tokens it reads at once; None where nothing limits them."""
    facts: dict[str, Any] = field(default_factory=dict)
    """What is worth keeping: architecture, number of parameters."""

    @property
    def device(self) -> torch.device:
        """Where its embedding lies."""
        return next(self.model.parameters()).device


def load_model(
    source: str,
    *,
    name: str | None = None,
    base: str | None = None,
    dtype: torch.dtype = torch.float32,
    device: torch.device | None = None,
    allow_code: bool = False,
) -> LoadedModel:
    """Load a model for attribution.

    Args:
        source: Folder of a model or of an adapter, a hub id or the name of a packaged model.
        name: What to call it; the source unless given.
        base: Where the base of an adapter is read; where the adapter says unless given.
        dtype: Format of its weights.
        device: Where it computes; the CPU unless given.
        allow_code: Whether Python code that comes with the model may run.

    Raises:
        PackageMissing: The package that holds it is not here.
        CacheMissing: There is no such folder or hub id, it is gated, or it cannot be reached.
        CacheStale: Its weights are damaged, incomplete or not finite.
        UnsupportedModel: It is no causal language model, has no gradients, needs code of its own,
            or its tokenizer gives no offsets.
    """
    quiet_loading()
    name = name or source
    adapter = adapter_base(source)
    base = source if adapter is None else base or adapter
    if Path(base).is_absolute() and not Path(base).is_dir():
        raise CacheMissing(f"There is no folder {base}; check the path, or give a hub id.")
    refuse_configuration(base, allow_code=allow_code)
    model, place = _weights(base, dtype, allow_code)
    if adapter is not None:
        model = _with_adapter(model, Path(source))
    tokenizer = load_tokenizer(
        source if _has_tokenizer(Path(source)) else place, name, allow_code=allow_code
    )
    model.eval().requires_grad_(False)
    model.to(device or torch.device("cpu"))  # pyright: ignore[reportArgumentType]
    facts = {
        "architecture": type(model).__name__,
        "n_parameters": sum(weight.numel() for weight in model.parameters()),
    }
    return LoadedModel(name, model, tokenizer, context_of(model), facts)


def adapter_base(source: str) -> str | None:
    """What the adapter in a folder belongs to; None where the folder holds no adapter alone."""
    folder = Path(source)
    path = folder / ADAPTER_FILE
    if not path.is_file() or (folder / "config.json").is_file():
        return None
    base = _read(path).get("base_model_name_or_path")
    if not isinstance(base, str) or not base:
        raise CacheStale(f"{path} does not name the base model; add base_model_name_or_path to it.")
    beside = folder / base
    return str(beside) if beside.is_dir() else base


def refuse_configuration(source: str, *, allow_code: bool = False) -> None:
    """Refuse what the configuration of a folder already shows to be unfit; a hub id passes.

    Raises:
        UnsupportedModel: Quantised kernels without gradients, no causal language model, or code of
            its own that was not allowed.
    """
    path = Path(source) / "config.json"
    if not path.is_file():
        return
    config = _read(path)
    quantised = config.get("quantization_config")
    kind = quantised.get("quant_method") if isinstance(quantised, Mapping) else None
    if kind in _NO_BACKWARD:
        raise UnsupportedModel(
            f"{source} is quantised with {kind}, whose kernels compute no gradients; embed the "
            "model it was made from, or a copy in full precision."
        )
    own_code = "auto_map" in config and config.get("model_type") not in CONFIG_MAPPING_NAMES
    if own_code and not allow_code:
        raise UnsupportedModel(
            f"{source} runs Python code of its own; if you trust it, allow it with "
            f"`--allow-code {source}`."
        )
    named = [str(each) for each in config.get("architectures") or []]
    causal = any("CausalLM" in each or "LMHead" in each for each in named)
    both = any(each.endswith("ForConditionalGeneration") for each in named)
    if named and not causal and (config.get("is_encoder_decoder") or not both):
        raise UnsupportedModel(
            f"{source} is a {named[0]}, no causal language model (encoder-only and "
            "encoder-decoder models have no next token to attribute); name a decoder."
        )


def load_tokenizer(source: str | Path, name: str, *, allow_code: bool = False) -> Any:
    """A tokenizer that says which characters each token covers.

    Raises:
        UnsupportedModel: There is none, it gives no offsets, or they do not fit the text.
    """
    try:
        tokenizer = AutoTokenizer.from_pretrained(str(source), trust_remote_code=allow_code)
    except (OSError, ImportError, *MISFITS) as error:
        raise UnsupportedModel(
            f"{name} has no tokenizer that can be read ({first_line(error)}); put its "
            "tokenizer.json into the model's folder."
        ) from error
    try:
        encoded = tokenizer(_SAMPLE, return_offsets_mapping=True)
        offsets = encoded["offset_mapping"]
    except (NotImplementedError, KeyError, ValueError) as error:
        raise UnsupportedModel(
            f"{name} has a slow tokenizer that gives no offsets, so its tokens cannot be laid on "
            "words; convert it to a tokenizer.json."
        ) from error
    check_offsets(_SAMPLE, np.array(offsets, dtype=np.int64).reshape(-1, 2), name)
    return tokenizer


def context_of(model: PreTrainedModel) -> int | None:
    """Tokens a model reads at most; None where its configuration states no limit."""
    return configured_context(model.config)


def configured_context(config: PreTrainedConfig) -> int | None:
    """The same of a configuration alone."""
    own = config.get_text_config()
    for key in _CONTEXTS:
        value = getattr(own, key, None)
        if isinstance(value, int) and value > 0:
            return value
    return None


def _weights(source: str, dtype: torch.dtype, allow_code: bool) -> tuple[PreTrainedModel, str]:
    if allow_code:
        return _own_code(source, dtype), source
    try:
        return load_weights(model_reference(source), dtype=dtype)
    except ImportError as error:
        raise UnsupportedModel(
            f"{source} needs a package that is not installed ({first_line(error)})."
        ) from error
    except EngineError as error:
        gated = gated_sentence(source, error)
        if gated is not None:
            raise CacheMissing(gated) from error
        raise


def gated_sentence(source: str, error: BaseException) -> str | None:
    """What to do about a repository one must ask access to; None where that is not the matter."""
    chain: list[BaseException] = []
    found: BaseException | None = error
    while found is not None and found not in chain:
        chain.append(found)
        found = found.__cause__ or found.__context__
    if any(type(each).__name__ == "GatedRepoError" or "gated repo" in str(each) for each in chain):
        return (
            f"The hub repository {source} is gated; accept its conditions on its page, log in with "
            "`hf auth login`, and run the command again."
        )
    return None


def _own_code(source: str, dtype: torch.dtype) -> PreTrainedModel:
    """Load with the model's own code, which the user has allowed."""
    try:
        loaded: Any = AutoModelForCausalLM.from_pretrained(
            source,
            dtype=dtype,
            use_safetensors=True,
            trust_remote_code=True,
            output_loading_info=True,
        )
    except (OSError, ImportError, *MISFITS) as error:
        gated = gated_sentence(source, error)
        raise UnsupportedModel(
            gated or f"{source} cannot be loaded with its own code ({first_line(error)})."
        ) from error
    model, report = loaded
    check_weights(source, model, report)
    return model


def _with_adapter(model: PreTrainedModel, folder: Path) -> PreTrainedModel:
    """The base with the adapter of a folder merged into its weights."""
    if not (folder / ADAPTER_WEIGHTS).is_file():
        raise CacheMissing(f"The adapter in {folder} has no {ADAPTER_WEIGHTS}; copy it again.")
    try:
        peft = import_module("peft")  # an extra
    except ImportError as error:
        raise UnsupportedModel(
            f"{folder} is an adapter, and the extra that loads it is missing; "
            'install it with `pip install -e ".[adapters]"`.'
        ) from error
    try:
        merged: Any = peft.PeftModel.from_pretrained(model, str(folder)).merge_and_unload()
    except (OSError, *MISFITS) as error:
        raise UnsupportedModel(
            f"The adapter in {folder} does not fit its base model ({first_line(error)})."
        ) from error
    for name, weight in merged.named_parameters():
        check_finite(folder, name, weight)
    return merged


def _has_tokenizer(folder: Path) -> bool:
    names = ("tokenizer.json", "tokenizer_config.json", "tokenizer.model")
    return any((folder / name).is_file() for name in names)


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CacheStale(f"{path} is damaged; copy the model again.") from error
    if not isinstance(found, dict):
        raise CacheStale(f"{path} is damaged; copy the model again.")
    return found
