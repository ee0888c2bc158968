"""Any text classifier of transformers as a scorer: safetensors alone, no code from outside."""

import re
from collections.abc import Sequence
from typing import Any

from engine.errors import ScorerFailed


_UNWANTED = re.compile(r"[^a-z]*(toxic|nsfw|unwanted|hate|offens|profan|obscene|abus)")
"""Beginnings of labels that say what they mean; `not_hate` and `LABEL_1` do not begin so."""
_BATCH = 32
_LONGEST = 512


class HuggingFaceScorer:
    """Probability of the unwanted label of a sequence classifier."""

    def __init__(self, spec: str, *, device: str = "cpu") -> None:
        """Load a model by folder or hub id; `MODEL#LABEL` names the unwanted label.

        Raises:
            ScorerFailed: It cannot be loaded without running its code or unpickling its weights,
                it classifies no texts, or its unwanted label cannot be told.
        """
        self._path, _, wanted = spec.partition("#")
        self._pipe, labels = _load(self._path, device)
        self.label = _label(self._path, labels, wanted)
        self.name = f"hf:{spec}"
        self.meaning = f"Probability of {self.label} by {self._path}"

    def score(self, texts: Sequence[str]) -> list[float]:
        """One probability a text.

        Raises:
            ScorerFailed: The model cannot read a text.
        """
        if not texts:
            return []
        try:
            rows = self._pipe(
                list(texts),
                top_k=None,
                batch_size=_BATCH,
                truncation=True,
                max_length=self._longest,
            )
        except (RuntimeError, ValueError, IndexError) as error:
            raise ScorerFailed(f"The scorer {self.name} failed on a text: {error}.") from error
        return [
            next(float(entry["score"]) for entry in row if entry["label"] == self.label)
            for row in rows
        ]

    @property
    def _longest(self) -> int:
        """Tokens of a text that are read, at most."""
        config = self._pipe.model.config
        limit = getattr(config, "max_position_embeddings", None) or _LONGEST
        return min(int(limit), int(self._pipe.tokenizer.model_max_length), _LONGEST)


def _load(path: str, device: str) -> tuple[Any, list[str]]:
    """A pipeline and the labels of its model."""
    from transformers import (
        AutoModelForSequenceClassification,
        AutoTokenizer,
        TextClassificationPipeline,
    )

    try:
        tokenizer = AutoTokenizer.from_pretrained(path, trust_remote_code=False)
        model = AutoModelForSequenceClassification.from_pretrained(
            path, use_safetensors=True, trust_remote_code=False
        )
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ScorerFailed(
            f"The text classifier {path} cannot be loaded ({reason}); name a folder or hub id with "
            "safetensors and a tokenizer."
        ) from error
    model.eval()
    pipe = TextClassificationPipeline(model=model, tokenizer=tokenizer, device=device)
    return pipe, [str(name) for name in model.config.id2label.values()]


def _label(path: str, labels: Sequence[str], wanted: str) -> str:
    """The unwanted label: the one named, or the only one that says so itself."""
    if wanted:
        if wanted in labels:
            return wanted
        raise ScorerFailed(
            f"{path} has no label {wanted!r}; it has {', '.join(labels)}. Write hf:{path}#LABEL."
        )
    found = [label for label in labels if _UNWANTED.match(label.casefold())]
    if len(found) != 1:
        raise ScorerFailed(
            f"Which label of {path} is the unwanted one cannot be told from {', '.join(labels)}; "
            f"write hf:{path}#LABEL."
        )
    return found[0]
