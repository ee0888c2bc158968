"""What a training run is: the settings that decide its result, and those a fork must share."""

from pathlib import Path
from typing import Any

from engine.config import TrainConfig, resolved
from engine.errors import ConfigError
from engine.store import stored_manifest


EXECUTION = frozenset({"device", "threads", "compile"})
"""Settings that change how fast a run is and not what comes out; a resumed run may change them."""

_AFTER_THE_FORK = frozenset(
    {
        "n_prototypes",
        "n_active",
        "dense",
        "weights",
        "bank_start",
        "bank_ramp",
        "bank_learning_rate",
        "steps",
        "eval_every",
        "eval_rows",
        "checkpoint_every",
    }
)
"""Settings a fork may have of its own: of the bank, the length and the evaluations."""

_COMPARED_BY_CONTENT = frozenset({"corpus"})


def run_identity(
    config: TrainConfig, fork_of: Path | None, corpus: dict[str, Any], tokenizer: dict[str, Any]
) -> dict[str, Any]:
    """The values of a manifest that say what a run is.

    Args:
        config: Settings of the run.
        fork_of: Folder of its trunk; only the name counts, a folder may move.
        corpus: Name and fingerprints of the corpus.
        tokenizer: Fingerprint and size of the vocabulary.
    """
    settings = {name: value for name, value in resolved(config).items() if name not in EXECUTION}
    return {
        "config": {"train": settings, "fork_of": fork_of and fork_of.name},
        "corpus": corpus,
        "tokenizer": tokenizer,
    }


def check_fork(trunk: Path, config: TrainConfig, identity: dict[str, Any]) -> None:
    """Refuse a trunk that is not the same model on the same data until the fork.

    The number of steps may differ, as arms are cut short; so may all that is the bank's own. A
    trunk that left no manifest is not judged here.

    Args:
        trunk: Run folder to fork from, finished or not.
        config: Settings of the fork.
        identity: Its `run_identity`.

    Raises:
        ConfigError: A setting differs; the sentence names it.
    """
    manifest = stored_manifest(trunk)
    theirs = manifest.get("config", {}).get("train") if manifest else None
    if manifest is None or theirs is None:
        return
    for name in ("corpus", "tokenizer"):
        found, wanted = manifest[name]["fingerprint"], identity[name]["fingerprint"]
        if found != wanted:
            raise _differs(trunk, f"{name} fingerprint", found, wanted)
    ours = resolved(config)
    free = EXECUTION | _AFTER_THE_FORK | _COMPARED_BY_CONTENT
    for name in theirs:
        if name in ours and name not in free and theirs[name] != ours[name]:
            raise _differs(trunk, name, theirs[name], ours[name])
    if not theirs["dense"] and theirs["bank_start"] < config.bank_start:
        raise _differs(trunk, "bank_start", theirs["bank_start"], config.bank_start)


def _differs(trunk: Path, name: str, theirs: Any, ours: Any) -> ConfigError:
    return ConfigError(
        f"Run {trunk.name} cannot be forked with these settings: its {name} is {theirs} and not "
        f"{ours}; use the same {name}, or train another trunk."
    )
