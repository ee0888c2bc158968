"""Attention heads live: patterns on a text, rows that a study generated, spans that repeat."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray

from engine.errors import CacheMissing, PromptError
from engine.live.results import Token
from engine.live.text import Codec
from engine.lm.loading import load_weights, quiet_loading
from engine.mda.patterns import PATTERNS, attention_patterns, pattern_scores
from engine.mda.settings import MixtureConfig
from engine.mda.stream import repeated_row
from engine.mda.structure import nontrivial_spans
from engine.store import Run, open_run


MOST_TOKENS = 160
"""Tokens of a text that a pattern is drawn of: more could not be told apart."""
BYTES = 300
"""Vocabulary up to which tokens are taken for bytes."""
SHORTEST_SPAN = {True: 6, False: 3}
"""Tokens of the shortest span that is marked as repeated, where tokens are bytes or words."""


@dataclass(frozen=True)
class HeadPattern:
    """What one head attends to on a text.

    tokens: tokens of the text that were read.
    attention: after the softmax, from each token (row) to those up to it; rows add up to 1.
    scores: pattern scores on this text by name, in [0, 1]; NaN where no token has a target.
    n_left_out: tokens at the end that were not read.
    """

    tokens: tuple[Token, ...]
    attention: NDArray[np.float32]
    scores: dict[str, float]
    n_left_out: int


@dataclass(frozen=True)
class RepeatedSpan:
    """Tokens [start, stop) of a sample that stand in it once more, from `earlier` on."""

    start: int
    stop: int
    earlier: int


class HeadReader:
    """The decoder of one seed of a run of kind `heads`; every method is a pure function.

    Attributes:
        n_layers: layers.
        n_heads: heads a layer.
    """

    def __init__(self, model: Any, codec: Codec, name: str) -> None:
        self._model = model
        self._codec = codec
        self._name = name
        self._lock = threading.Lock()
        self.n_layers = int(model.config.num_hidden_layers)
        self.n_heads = int(model.config.num_attention_heads)

    @classmethod
    def open(cls, run: str | Path, seed: int) -> "HeadReader":
        """Load the model that a run ships of a seed.

        Raises:
            CacheMissing: it ships none.
            CacheStale: its files are damaged.
        """
        opened = open_run(run)
        folder = model_folder(opened, seed)
        quiet_loading()
        model = load_weights({"path": str(folder)})[0]
        tokenizer = folder if (folder / "tokenizer.json").is_file() else opened.model_path
        return cls(model, Codec.from_folder(tokenizer), f"{opened.name}, seed {seed}")

    def pattern(self, text: str, layer: int, head: int) -> HeadPattern:
        """What a head attends to on a typed text.

        Raises:
            PromptError: the text is empty or no text, or there is no such head.
        """
        return self.pattern_of(self._codec.encode(text, "text"), layer, head)

    def pattern_of(self, ids: Sequence[int], layer: int, head: int) -> HeadPattern:
        """What a head attends to on a row of token ids.

        Raises:
            PromptError: there are no ids, one is not in the vocabulary, or there is no such head.
        """
        kept = self._checked(ids, layer, head)
        tokens = torch.tensor([kept])
        with self._lock, torch.inference_mode():
            own = attention_patterns(self._model, tokens)[layer][:, head : head + 1]
        texts = self._codec.texts(kept)
        return HeadPattern(
            tuple(Token(i, t, x) for i, (t, x) in enumerate(zip(kept, texts, strict=True))),
            own[0, 0].numpy().astype(np.float32),
            _scores_on(own, tokens),
            len(ids) - len(kept),
        )

    def _checked(self, ids: Sequence[int], layer: int, head: int) -> list[int]:
        if not (0 <= layer < self.n_layers and 0 <= head < self.n_heads):
            raise PromptError(
                f"There is no head {layer}.{head}; {self._name} has layers 0 to "
                f"{self.n_layers - 1} with heads 0 to {self.n_heads - 1}."
            )
        size = int(self._model.get_input_embeddings().weight.shape[0])
        outside = next((i for i in ids if not 0 <= i < size), None)
        if outside is not None:
            raise PromptError(
                f"Token {outside} is not in the vocabulary of {self._name}; ids run from 0 to "
                f"{size - 1}."
            )
        if not ids:
            raise PromptError("There are no tokens to read; type at least one character.")
        limit = int(getattr(self._model.config, "max_position_embeddings", MOST_TOKENS))
        return list(ids[: min(MOST_TOKENS, limit)])


def _scores_on(own: Float[torch.Tensor, "1 1 pos pos"], tokens: torch.Tensor) -> dict[str, float]:
    """Each pattern's score of one head on one text; NaN where no token has a target."""
    found = {}
    for name, pattern in PATTERNS.items():
        mask = pattern(tokens)
        some = bool(mask.any())
        found[name] = float(pattern_scores([own], mask)[0, 0]) if some else float("nan")
    return found


def model_folder(run: Run, seed: int) -> Path:
    """The folder of the model that a run ships of a seed; the first seed's has no name.

    Raises:
        CacheMissing: it ships none.
    """
    own = run.model_path / f"seed-{seed}"
    windows = run.manifest.get("stages", {}).get("study", {}).get("windows") or {"0": None}
    first = seed == min(int(name) for name in windows)
    for folder in (own, run.model_path) if first else (own,):
        if (folder / "config.json").is_file():
            return folder
    raise CacheMissing(
        f"Run {run.name} ships no weights of seed {seed}, so attention cannot be computed live; "
        "scores and influence need none."
    )


def generated_row(run: Run, seed: int, step: int, row: int) -> list[int]:
    """Token ids of a row that a study generated; they follow from the study's settings alone.

    Raises:
        CacheMissing: the run does not say how its rows were generated.
    """
    facts = run.manifest.get("stages", {}).get("study", {})
    mixture, frequent = (facts.get(n, {}).get(str(seed)) for n in ("mixtures", "frequent"))
    if not mixture or not frequent:
        raise CacheMissing(
            f"Run {run.name} does not say how the rows of seed {seed} were generated, so their "
            "words cannot be written out."
        )
    config = MixtureConfig(**mixture)
    return [int(i) for i in repeated_row(config, np.asarray(frequent, np.int64), step, row)[0]]


def row_texts(run: Run, ids: Sequence[int]) -> list[str]:
    """Text of each token of a row."""
    return Codec.from_folder(run.model_path).texts(ids)


def repeated_in(ids: Sequence[int], vocab_size: int) -> list[RepeatedSpan]:
    """Spans of a sample that repeat earlier tokens; runs of one character are left out."""
    shortest = SHORTEST_SPAN[vocab_size <= BYTES]
    found = nontrivial_spans(np.asarray(ids, np.int64), shortest) if len(ids) else []
    return [RepeatedSpan(s.start, s.stop, s.earlier_start) for s in found]
