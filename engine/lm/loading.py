"""Load any causal LM by the name of a package, a folder or a hub id; safetensors only."""

from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from transformers import AutoModelForCausalLM, PreTrainedModel
from transformers.utils import logging as transformers_logging

from engine.errors import CacheMissing, CacheStale, UnsupportedModel
from engine.lm.packaged import PACKAGED, require_packaged


REASON_LENGTH = 200
"""Characters of a library's own message that an error sentence quotes."""


def quiet_loading() -> None:
    """Keep transformers from drawing a bar for each weight file: it says nothing to a reader."""
    transformers_logging.disable_progress_bar()


def model_reference(name: str) -> dict[str, Any]:
    """How to find the model again: {"package": ...}, {"path": ...} or {"hub": ...}."""
    if name in PACKAGED:
        package = PACKAGED[name].package
        return {"package": name, "version": package.version, "sha256": package.sha256}
    if Path(name).is_dir():
        return {"path": str(Path(name).resolve())}
    return {"hub": name}


def locate(reference: dict[str, Any]) -> str:
    """Folder or hub id that `transformers` loads the referenced model from."""
    if "package" in reference:
        return str(require_packaged(str(reference["package"])))
    if "path" in reference:
        if not Path(reference["path"]).is_dir():
            raise CacheMissing(
                f"The model folder {reference['path']} is not on this machine; "
                "copy it back, or fit the bank again with `headwater retrofit`."
            )
        return str(reference["path"])
    if "hub" in reference:
        return str(reference["hub"])
    raise CacheStale(
        "The bank's configuration does not say which weights it belongs to (no `base`); "
        "fit it again with `headwater retrofit`."
    )


def load_weights(
    reference: dict[str, Any], *, dtype: torch.dtype = torch.float32
) -> tuple[PreTrainedModel, str]:
    """Load a referenced model for inference, with the folder or hub id of its tokenizer.

    Code from the folder or hub is never run, and nothing but safetensors is read.

    Raises:
        PackageMissing: the package is not fetched.
        CacheMissing: no such folder or hub id, or it cannot be reached.
        UnsupportedModel: it holds no causal language model of transformers.
    """
    source = locate(reference)
    try:
        model = AutoModelForCausalLM.from_pretrained(
            source, dtype=dtype, use_safetensors=True, trust_remote_code=False
        )
    except SafetensorError as error:
        raise CacheStale(
            f"The weights in {source} are damaged ({first_line(error)}); copy the model again."
        ) from error
    except OSError as error:
        raise CacheMissing(
            f"No model can be read from {source!r} ({first_line(error)}); name a folder with "
            f"safetensors, a hub id or one of: {', '.join(sorted(PACKAGED))}."
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        raise UnsupportedModel(
            f"{source} is no causal language model that transformers can load "
            f"({first_line(error)})."
        ) from error
    return model.eval(), source


def first_line(error: Exception) -> str:
    """First line of a library's message, without its final full stop."""
    lines = str(error).strip().splitlines()
    first = lines[0].strip() if lines else type(error).__name__
    return first[:REASON_LENGTH].rstrip(".")
