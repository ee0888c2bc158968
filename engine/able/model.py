"""Attribute one model: from a loaded model and a probe set to a vector of word attributions."""

import logging
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Float32, Int

from engine.able.attribution import (
    Way,
    attribute,
    choose_way,
    is_causal,
    make_batch,
    option_scores,
)
from engine.able.columns import Columns
from engine.able.hook import HookPoint, embedding_of, find_hook_point
from engine.able.loading import LoadedModel, load_model
from engine.able.partial import PartialWork
from engine.able.probes import ProbeSet
from engine.able.rows import Encoded, Row, encode_probes
from engine.able.words import RULES, WordRule, check_falls, word_map
from engine.config import require, require_within
from engine.corpus.documents import Progress, no_progress
from engine.devices import resolve_device
from engine.errors import UnsupportedModel


logger = logging.getLogger(__name__)
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
HOOKS = ("auto", "embedding", "norm")
_CLOSENESS = {torch.float32: 0.9999, torch.float64: 0.999999}
_CLOSENESS_OF_HALF = 0.98
_BATCH_ON_CPU, _BATCH_ON_CUDA = 4096, 65_536
_NO_MEMORY = ("out of memory", "allocate memory", "not enough memory")


@dataclass(frozen=True, kw_only=True)
class AttributionSettings:
    """How models are attributed; all models of a map share them."""

    dtype: str = "auto"
    """float32, bfloat16 (the paper's) or float16; auto: bfloat16 on CUDA with it, else float32."""
    hook: str = "auto"
    """embedding, norm (that directly on the embedding), or auto: the norm where the product at the
    embedding vanishes."""
    batch_tokens: int = 0
    """Tokens times options of a batch; 0: 4,096 on a CPU, 65,536 on CUDA. Moves rounding alone."""
    device: str = "auto"
    """auto, cpu, cuda or cuda:N."""

    def __post_init__(self) -> None:
        require_within(self, 0, math.inf, "batch_tokens")
        known = ("auto", *DTYPES)
        require(self.dtype in known, f"dtype is {self.dtype!r}; use one of {', '.join(known)}.")
        require(self.hook in HOOKS, f"hook is {self.hook!r}; use one of {', '.join(HOOKS)}.")

    @property
    def resolved_batch_tokens(self) -> int:
        """Tokens times options of a batch on this machine."""
        on_cuda = resolve_device(self.device).device.type == "cuda"
        return self.batch_tokens or (_BATCH_ON_CUDA if on_cuda else _BATCH_ON_CPU)

    def resolve(self) -> tuple[torch.device, torch.dtype]:
        """Where and in which format a model computes on this machine."""
        found = resolve_device(self.device)
        return found.device, found.dtype if self.dtype == "auto" else DTYPES[self.dtype]


@dataclass(frozen=True)
class ModelAttribution:
    """What one model's answers depend on."""

    name: str
    """The model."""
    columns: Columns
    """Names of the columns."""
    words: Float32[np.ndarray, " columns"]
    """Attribution of every word, spaces stripped, nats; 0 in probes that were too long."""
    paper_words: Float32[np.ndarray, " columns"]
    """The same by the paper's rule for spaces and for tokens that span nothing."""
    slot: Float32[np.ndarray, " options"]
    """Attribution of tokens that span nothing, by option."""
    log_probabilities: Float32[np.ndarray, " options"]
    """s(n, o), nats, never positive; NaN in probes that were too long."""
    skipped: tuple[int, ...] = ()
    """Probes longer than the model's context."""
    facts: dict[str, Any] = field(default_factory=dict)
    """Hook, homogeneity, way, number format, seconds, architecture, parameters."""

    def of_rule(self, rule: WordRule) -> Float32[np.ndarray, " columns"]:
        """Attributions of words by one of the rules."""
        return self.words if rule == "stripped" else self.paper_words

    def of_probe(
        self, probe: int, rule: WordRule = "stripped"
    ) -> Float32[np.ndarray, "options words"]:
        """Attributions of one probe."""
        shape = (self.columns.n_options[probe], self.columns.n_words[probe])
        return self.of_rule(rule)[self.columns.block(probe)].reshape(shape)

    @property
    def choices(self) -> Int[np.ndarray, " probes"]:
        """Option with the largest log-probability, a byte where texts are scored; -1 if skipped."""
        probes = self.columns.probes
        found = np.full(len(probes), -1)
        for number in set(range(len(probes))) - set(self.skipped):
            scores = self.log_probabilities[self.columns.options_of(number)].astype(np.float64)
            if probes.style == "texts":
                options = probes.probes[number].options
                scores = scores / np.array([len(option.encode()) for option in options])
            found[number] = int(scores.argmax())
        return found

    @property
    def correct(self) -> np.ndarray:
        """Whether each probe was answered right: bool [probes]."""
        return self.choices == np.array([probe.answer for probe in self.columns.probes.probes])


def embed_model(
    source: str | LoadedModel,
    probes: ProbeSet,
    settings: AttributionSettings | None = None,
    *,
    name: str | None = None,
    allow_code: bool = False,
    progress: Progress = no_progress,
    kept: PartialWork | None = None,
) -> ModelAttribution:
    """Attribute one model over a probe set; `engine.able.embedding.embed` makes it short.

    Args:
        source: Folder, adapter folder, hub id or packaged model; or a model already loaded.
        probes: The probe set.
        settings: How.
        name: What to call the model; its source unless given.
        allow_code: Whether Python code that comes with the model may run.
        progress: Wraps the batches.
        kept: Where finished batches are kept, so that a stopped call goes on with the same bits.

    Raises:
        EngineError: The model cannot be loaded, has no gradients, its tokenizer gives no offsets,
            every probe is too long, or an attribution is no finite number. One sentence each.
    """
    settings = settings or AttributionSettings()
    started = time.perf_counter()
    if isinstance(source, LoadedModel):
        loaded = source
    else:
        device, dtype = settings.resolve()
        loaded = load_model(source, name=name, dtype=dtype, device=device, allow_code=allow_code)
    encoded = encode_probes(probes, loaded.tokenizer, loaded.context, loaded.name)
    sorted_rows = sorted(encoded.rows, key=lambda row: (-len(row.options), -len(row.tokens)))
    point, way = _prepare(loaded, sorted_rows, settings)
    filled = _Filled(Columns(probes), loaded.name)
    batches = list(batched_rows(sorted_rows, settings.resolved_batch_tokens))
    listed = progress(batches, label=f"Attributing {loaded.name}", total=len(batches))
    plan = [point.name, way, [[row.probe for row in rows] for rows in batches]]
    done = kept.begin(plan, filled.arrays) if kept else 0
    try:
        for number, rows in enumerate(listed):
            if number >= done:
                _fill(filled, loaded, point, rows, way)
                if kept:
                    kept.note(number + 1, filled.arrays)
    finally:
        if kept:
            kept.keep()
    return filled.finish(encoded, _facts(loaded, point, way, time.perf_counter() - started))


def batched_rows(rows: Sequence[Row], batch_tokens: int) -> Iterator[list[Row]]:
    """Neighbouring rows with equally many options, padded to `batch_tokens` tokens x options."""
    batch: list[Row] = []
    for row in rows:
        longest = max(len(row.tokens), *(len(other.tokens) for other in batch), 1)
        full = longest * (len(batch) + 1) * len(row.options) > batch_tokens
        other_shape = bool(batch) and len(batch[0].options) != len(row.options)
        if batch and (full or other_shape):
            yield batch
            batch = []
        batch.append(row)
    if batch:
        yield batch


def _prepare(
    loaded: LoadedModel, rows: Sequence[Row], settings: AttributionSettings
) -> tuple[HookPoint, Way]:
    """Where to attribute and how to ask, tried on the longest row and its neighbour."""
    model = loaded.model
    same = [row for row in rows if len(row.options) == len(rows[0].options)]
    trial = make_batch(same[:: max(1, len(same) - 1)][:2] if len(same) > 2 else same, loaded.device)
    if not is_causal(model, trial.tokens[:1, :64]):
        raise UnsupportedModel(
            f"{loaded.name} reads text in both directions (an encoder), and a map needs causal "
            "language models."
        )
    point = find_hook_point(model, lambda: option_scores(model, trial))
    if settings.hook == "embedding":
        point = HookPoint(embedding_of(model), "embedding", point.homogeneity)
    if settings.hook == "norm" and point.name != "norm":
        raise UnsupportedModel(f"{loaded.name} has no norm directly on its embedding.")
    dtype = next(model.parameters()).dtype
    closeness = _CLOSENESS.get(dtype, _CLOSENESS_OF_HALF)
    return point, choose_way(model, point.module, trial, closeness)


def _fill(
    filled: "_Filled", loaded: LoadedModel, point: HookPoint, rows: list[Row], way: Way
) -> None:
    """Attribute a batch; where memory ends, its halves."""
    try:
        scores, found = attribute(loaded.model, point.module, make_batch(rows, loaded.device), way)
    except RuntimeError as error:
        if not any(words in str(error) for words in _NO_MEMORY):
            raise
        if len(rows) == 1:
            raise UnsupportedModel(
                f"The memory does not hold {loaded.name} with one probe of "
                f"{len(rows[0].tokens)} tokens; use shorter probes or a larger device."
            ) from error
        half = len(rows) // 2
        _fill(filled, loaded, point, rows[:half], way)
        _fill(filled, loaded, point, rows[half:], way)
        return
    filled.take(rows, scores.cpu().double().numpy(), found.cpu().double().numpy())


class _Filled:
    """Arrays of a model that fill up batch by batch."""

    def __init__(self, columns: Columns, name: str) -> None:
        self.columns, self.name = columns, name
        self.words = {rule: np.zeros(columns.n_columns) for rule in RULES}
        n_options = int(columns.option_starts[-1])
        self.slot = np.zeros(n_options)
        self.scores = np.full(n_options, np.nan)

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays by name."""
        return {**self.words, "slot": self.slot, "scores": self.scores}

    def take(
        self,
        rows: list[Row],
        scores: Float[np.ndarray, "rows options"],
        found: Float[np.ndarray, "rows options pos"],
    ) -> None:
        """Lay the attributions of a batch on words.

        Raises:
            UnsupportedModel: One is no finite number, or a token's offsets fall back.
        """
        for row, own_scores, own in zip(rows, scores, found, strict=True):
            scored = own[:, : row.n_prompt]
            self._refuse_infinite(row, own_scores, scored)
            probe = self.columns.probes.probes[row.probe]
            first, n_words = int(self.columns.starts[row.probe]), probe.n_words
            options = int(self.columns.option_starts[row.probe]) + np.array(row.options)
            check_falls(row.offsets, self.name)
            for rule in RULES:
                mapped = word_map(probe.prompt, probe.word_spans, row.offsets, rule)
                values, slot = mapped.apply(scored)
                for option, of_words in zip(row.options, values, strict=True):
                    start = first + option * n_words
                    self.words[rule][start : start + n_words] = of_words
                if rule == "stripped":
                    self.slot[options] = slot
            self.scores[options] = own_scores

    def finish(self, encoded: Encoded, facts: dict[str, Any]) -> ModelAttribution:
        """The finished attribution."""
        narrow = {rule: values.astype(np.float32) for rule, values in self.words.items()}
        return ModelAttribution(
            name=self.name,
            columns=self.columns,
            words=narrow["stripped"],
            paper_words=narrow["paper"],
            slot=self.slot.astype(np.float32),
            log_probabilities=self.scores.astype(np.float32),
            skipped=encoded.skipped,
            facts=facts,
        )

    def _refuse_infinite(self, row: Row, scores: np.ndarray, found: np.ndarray) -> None:
        wrong = int((~np.isfinite(found)).sum() + (~np.isfinite(scores)).sum())
        if wrong:
            raise UnsupportedModel(
                f"{wrong:,} attributions of {self.name} at probe {row.probe} are no finite number; "
                "its numbers overflow or its weights are damaged. Try --dtype float32."
            )


def _facts(loaded: LoadedModel, point: HookPoint, way: Way, seconds: float) -> dict[str, Any]:
    dtype = str(next(loaded.model.parameters()).dtype).removeprefix("torch.")
    return {
        **loaded.facts,
        "hook": point.name,
        "homogeneity": point.homogeneity,
        "two_parts": way.two_parts,
        "batched": way.batched,
        "positions_only": way.positions_only,
        "dtype": dtype,
        "seconds": seconds,
    }
