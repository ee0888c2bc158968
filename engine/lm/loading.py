"""Load any causal LM by the name of a package, a folder or a hub id; safetensors only."""

from pathlib import Path
from typing import Any

import torch
from huggingface_hub.errors import StrictDataclassError
from safetensors import SafetensorError
from torch import nn
from transformers import AutoModelForCausalLM, PreTrainedModel
from transformers.utils import logging as transformers_logging

from engine.errors import CacheMissing, CacheStale, UnsupportedModel
from engine.lm.packaged import PACKAGED, require_packaged


REASON_LENGTH = 200
"""Characters of a library's own message that an error sentence quotes."""


MISFITS = (StrictDataclassError, RuntimeError, ValueError, KeyError, TypeError, AttributeError)
"""What transformers raises at a configuration it cannot use or weights of another shape."""


def quiet_loading() -> None:
    """Keep transformers from drawing a bar for each weight file: it says nothing to a reader."""
    transformers_logging.disable_progress_bar()


def model_reference(name: str) -> dict[str, Any]:
    """How to find the model again: {"package": ...}, {"path": ...} or {"hub": ...}.

    A hub reference may have a `revision`: a branch, tag or commit, such as `step1000`.
    """
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

    Args:
        reference: as `model_reference` makes it, of a hub with a `revision` where one is meant.
        dtype: format of all weights.

    Raises:
        PackageMissing: the package is not fetched.
        CacheMissing: no such folder or hub id, or it cannot be reached.
        CacheStale: its weights are damaged, incomplete or not finite.
        UnsupportedModel: it holds no causal language model of transformers.
    """
    source = locate(reference)
    revision = reference.get("revision")
    try:
        loaded: Any = AutoModelForCausalLM.from_pretrained(
            source,
            dtype=dtype,
            use_safetensors=True,
            trust_remote_code=False,
            output_loading_info=True,
            **({"revision": revision} if revision else {}),
        )
    except SafetensorError as error:
        raise CacheStale(
            f"The weights in {source} are damaged ({first_line(error)}); copy the model again."
        ) from error
    except OSError as error:
        at = f" at revision {revision!r}" if revision else ""
        raise CacheMissing(
            f"No model can be read from {source!r}{at} ({first_line(error)}); name a folder with "
            f"safetensors, a hub id or one of: {', '.join(sorted(PACKAGED))}."
        ) from error
    except MISFITS as error:
        raise UnsupportedModel(
            f"{source} is no causal language model that transformers can load "
            f"({first_line(error)})."
        ) from error
    model, report = loaded
    check_weights(source, model, report)
    return model.eval(), source


def check_weights(source: str | Path, model: nn.Module, report: dict[str, Any]) -> None:
    """Refuse a model of which a weight was left to chance or is no finite number.

    Args:
        source: where the weights come from, for the sentence.
        model: as loaded.
        report: what `from_pretrained(output_loading_info=True)` says of it.

    Raises:
        CacheStale: it is such a model.
    """
    if report["missing_keys"]:
        missing = ", ".join(sorted(report["missing_keys"])[:3])
        raise CacheStale(f"The weights in {source} lack {missing}; train or copy the model again.")
    for name, weight in model.named_parameters():
        check_finite(source, name, weight)


def check_finite(source: str | Path, name: str, weight: torch.Tensor) -> None:
    """Refuse a weight with NaN or infinity in it, which would spread to every number shown.

    Raises:
        CacheStale: it has one.
    """
    finite = torch.isfinite(weight)
    if not bool(finite.all()):
        count = int(finite.numel() - finite.sum())
        raise CacheStale(
            f"The weights in {source} hold {count:,} values that are no finite number, the first "
            f"in {name}; train or copy the model again."
        )


def first_line(error: Exception) -> str:
    """First line of a library's message, without its final full stop."""
    lines = str(error).strip().splitlines()
    first = lines[0].strip() if lines else type(error).__name__
    return first[:REASON_LENGTH].rstrip(".")
