"""Training samples in training order: those of a run of ours, or a corpus's documents in order.

A sample is a row of a step. Of a run of ours both follow from its own settings, as the rows it was
trained on are dealt from its seed; of any other model the order is not known, and the documents'
own order stands in for it where the user says so.
"""

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pandas as pd
from jaxtyping import Int
from tokenizers import Tokenizer

from engine.corpus.batches import BatchStream
from engine.corpus.build import Corpus
from engine.corpus.shards import TokenShards
from engine.corpus.tokenizer import plain_encoder, tokenizer_fingerprint
from engine.errors import ConfigError, CorpusError
from engine.pipeline.heads_influence_settings import InfluenceConfig, Order
from engine.pipeline.heads_models import HeadSource


Steps = Int[np.ndarray, " _steps"]


@runtime_checkable
class SampleOrder(Protocol):
    """Samples by step and row."""

    context: int
    """Tokens that a sample predicts."""
    rows_a_step: int
    """Samples of a step; the last one may have fewer."""
    n_steps: int | None
    """Steps there are; None where they go on for ever."""

    def width(self, step: int) -> int:
        """Samples of a step."""
        ...

    def rows(self, step: int) -> Int[np.ndarray, "rows length"]:
        """Token ids of a step's samples: [rows, context + 1]; the last step may have fewer."""
        ...

    def source(self, step: int, row: int) -> tuple[int, int]:
        """Document of the corpus that a sample begins in, and its first token there.

        The separator in front of a document counts as its token 0.
        """
        ...


class RunOrder:
    """The samples a run of ours was trained on."""

    def __init__(self, shards: TokenShards, settings: dict[str, Any]) -> None:
        """Deal the rows again.

        Args:
            shards: the run's corpus in its own tokens.
            settings: `config.train` of its manifest.
        """
        self.context = int(settings["context"])
        self._accumulate = int(settings["accumulate"])
        self.rows_a_step = int(settings["batch_size"]) * self._accumulate
        self.n_steps: int | None = None
        self._stream = BatchStream(
            shards,
            split="train",
            context=self.context,
            batch_size=int(settings["batch_size"]),
            seed=int(settings["seed"]),
            domain_weights=settings["domain_weights"],
        )

    def width(self, step: int) -> int:  # noqa: ARG002
        """Samples of a step."""
        return self.rows_a_step

    def rows(self, step: int) -> Int[np.ndarray, "rows length"]:
        """Token ids of a step's samples, micro-batch after micro-batch."""
        first = step * self._accumulate
        return np.concatenate([self._stream.batch(first + i) for i in range(self._accumulate)])

    def source(self, step: int, row: int) -> tuple[int, int]:
        """Document of the corpus that a sample begins in, and its first token there."""
        return self._stream.source(step * self.rows_a_step + row)[1:]


class CorpusOrder:
    """Windows of the training documents laid end to end, in the order of the corpus.

    Windows follow each other without gaps, so that every token is predicted once; what is left
    behind the last whole one is not read.
    """

    def __init__(self, shards: TokenShards, context: int, rows_a_step: int) -> None:
        frame = shards.corpus.documents
        self._documents = frame["document"][frame["split"] == "train"].to_numpy(np.int64)
        lengths = shards.offsets[self._documents + 1] - shards.offsets[self._documents]
        self._offsets = np.concatenate([[0], np.cumsum(lengths)])
        self._shards = shards
        self._n_windows = max(0, (int(self._offsets[-1]) - 1) // context)
        self.context = context
        self.rows_a_step = rows_a_step
        self.n_steps: int | None = -(-self._n_windows // rows_a_step)

    def width(self, step: int) -> int:
        """Samples of a step; the last one may have fewer."""
        return min(self.rows_a_step, self._n_windows - step * self.rows_a_step)

    def rows(self, step: int) -> Int[np.ndarray, "rows length"]:
        """Token ids of a step's samples."""
        first = step * self.rows_a_step
        return np.stack([self._window(first + row) for row in range(self.width(step))])

    def source(self, step: int, row: int) -> tuple[int, int]:
        """Document of the corpus that a sample begins in, and its first token there."""
        start = (step * self.rows_a_step + row) * self.context
        at = self._document_at(start)
        return int(self._documents[at]), start - int(self._offsets[at])

    def _document_at(self, start: int) -> int:
        return int(np.searchsorted(self._offsets, start, side="right")) - 1

    def _window(self, window: int) -> Int[np.ndarray, " length"]:
        start = window * self.context
        stop = start + self.context + 1
        at, parts = self._document_at(start), []
        while at < len(self._documents) and self._offsets[at] < stop:
            base = int(self._offsets[at])
            tokens = self._shards.run(int(self._documents[at]))
            parts.append(np.asarray(tokens[max(0, start - base) : stop - base], np.int64))
            at += 1
        return np.concatenate(parts)


@dataclass(frozen=True)
class Samples:
    """The samples that are scored, and those that the curvature is fitted on."""

    order: SampleOrder
    steps: Steps
    """Steps that are scored, rising."""
    fit_steps: Steps
    """Steps the curvature is fitted on, some of these."""

    def places(self, steps: Steps) -> pd.DataFrame:
        """Step, row, document and position of every sample of some steps."""
        found = [
            (int(step), row, *self.order.source(int(step), row))
            for step in steps
            for row in range(self.order.width(int(step)))
        ]
        return pd.DataFrame(found, columns=["step", "row", "document", "position"])

    def rows(self, steps: Steps) -> Int[np.ndarray, "rows length"]:
        """Token ids of every sample of some steps, in the same order."""
        return np.concatenate([self.order.rows(int(step)) for step in steps])


def choose_samples(order: SampleOrder, config: InfluenceConfig, checkpoint_step: int) -> Samples:
    """Whole steps, as many as the settings ask for.

    Args:
        order: samples by step.
        config: settings.
        checkpoint_step: step of the weights that are looked at; samples after it had no part in
            them. 0 where it is not known.

    Raises:
        ConfigError: the steps asked for hold no sample or samples of later steps, or nobody says
            where they end.
    """
    first, last = config.window()
    _check_last(order, last, checkpoint_step)
    ends = [end for end in (last, order.n_steps) if end is not None]
    if order.n_steps is None and last is None:
        if checkpoint_step == 0:
            raise ConfigError(
                "These weights have seen no sample yet, or their step is not known; say which "
                "samples to score with --steps FIRST:LAST."
            )
        ends = [checkpoint_step]
    end = min(ends)
    if first >= end:
        raise ConfigError(
            f"There is no sample from step {first} on: the samples end before step {end}."
        )
    steps = _spread(np.arange(first, end), config.samples, order)
    return Samples(order, steps, _spread(steps, config.fit_samples, order))


def _check_last(order: SampleOrder, last: int | None, checkpoint_step: int) -> None:
    """Refuse samples that a training of ours dealt, or would have dealt, after the checkpoint."""
    if order.n_steps is not None or last is None or checkpoint_step == 0:
        return
    if last > checkpoint_step:
        raise ConfigError(
            f"--steps ends at step {last}, and these weights were trained for {checkpoint_step} "
            f"steps; write FIRST:LAST with a LAST of {checkpoint_step} or less."
        )


def _spread(steps: Steps, samples: int, order: SampleOrder) -> Steps:
    """Whole steps spread evenly that together hold so many samples; all where there are fewer or 0.

    A choice of steps leaves out a last one that is not full.
    """
    wanted = -(-samples // order.rows_a_step)
    if samples == 0 or wanted >= len(steps):
        return steps
    if order.width(int(steps[-1])) < order.rows_a_step:
        steps = steps[:-1]
    return steps[np.linspace(0, len(steps) - 1, wanted).round().astype(int)]


def check_order(source: HeadSource, corpus: Corpus, tokenizer: Tokenizer, order: Order) -> None:
    """Refuse samples whose order is not known.

    Args:
        source: the model.
        corpus: the corpus.
        tokenizer: the model's own.
        order: the order asked for; that of the corpus itself is always known.

    Raises:
        CorpusError: the model was not trained here on this very corpus.
    """
    manifest = source.manifest or {}
    if order == "corpus":
        return
    if manifest.get("config", {}).get("train") is None:
        why = f"{source.name} was not trained here"
    elif manifest["corpus"]["fingerprint"] != corpus.fingerprint:
        theirs = manifest["corpus"]
        why = (
            f"{source.name} was trained on {theirs['name']} ({theirs['fingerprint']}) and not on "
            f"this state of {corpus.name} ({corpus.fingerprint})"
        )
    elif manifest["tokenizer"]["fingerprint"] != tokenizer_fingerprint(plain_encoder(tokenizer)):
        why = f"{source.name} was trained with another tokenizer than the one beside it"
    else:
        return
    raise CorpusError(
        f"The order in which the samples of {corpus.name} were seen is not known: {why}; "
        "--order corpus takes its documents in their own order, so that a step is so many windows "
        "in a row."
    )


def sample_order(source: HeadSource, shards: TokenShards, config: InfluenceConfig) -> SampleOrder:
    """The samples in the order the settings ask for, which `check_order` has let pass."""
    if config.order == "corpus":
        return CorpusOrder(shards, config.context, config.rows_a_step)
    return RunOrder(shards, (source.manifest or {})["config"]["train"])
