"""What a scorer of unwanted text is, and opening one by what a user writes."""

import os
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from engine.endpoint import KEY, Endpoint
from engine.errors import ConfigError
from engine.scoring.classifier import ProfanityClassifier
from engine.scoring.huggingface import HuggingFaceScorer
from engine.scoring.judge import Judge
from engine.scoring.wordlist import WordList


@runtime_checkable
class Scorer(Protocol):
    """Gives each text a value from 0 to 1, higher is more unwanted.

    A scorer that cannot do so raises an `EngineError` and gives no number at all.
    """

    name: str
    """Short name, the same for the same scorer."""
    meaning: str
    """What the value is, in one phrase."""

    def score(self, texts: Sequence[str]) -> list[float]:
        """One value a text, in order."""
        ...


def scorer_name(spec: str) -> str:
    """The name a scorer has in tables.

    Raises:
        ConfigError: No scorer is written so.
    """
    if spec in ("classifier", "wordlist", "judge") or (spec.startswith("hf:") and spec[3:]):
        return spec
    raise ConfigError(
        f"There is no scorer {spec!r}; write classifier, wordlist, judge, or hf:MODEL with the "
        "name or folder of a text classifier (hf:MODEL#LABEL to name its unwanted label)."
    )


def open_scorer(
    spec: str, *, endpoint: str | None = None, model: str | None = None, device: str = "cpu"
) -> Scorer:
    """The scorer that a word names.

    Args:
        spec: classifier, wordlist, judge, or hf:MODEL[#LABEL].
        endpoint: Address of the judge.
        model: Name of the judge's model there.
        device: Where a model of transformers runs.

    Raises:
        ConfigError: No scorer is written so, or the judge has no address.
        PackageMissing: What the scorer needs is not on this machine.
        ScorerFailed: A model cannot be loaded.
    """
    name = scorer_name(spec)
    if name == "classifier":
        return ProfanityClassifier()
    if name == "wordlist":
        return WordList.from_package()
    if name == "judge":
        if not endpoint or not model:
            raise ConfigError(
                "The judge needs --judge-endpoint ADDRESS and --judge-model NAME; its key is read "
                f"from {KEY}."
            )
        return Judge(Endpoint(endpoint, model, os.environ.get(KEY)))
    return HuggingFaceScorer(spec.removeprefix("hf:"), device=device)
