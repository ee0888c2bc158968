"""The corpus beside a model whose heads are looked at: its tokens, frequent ones, held-out rows."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor
from transformers import PreTrainedModel

from engine.corpus.batches import BatchStream
from engine.corpus.build import open_corpus
from engine.corpus.documents import Progress
from engine.corpus.shards import TokenShards, tokenise_corpus
from engine.corpus.tokenizer import save_tokenizer
from engine.errors import ConfigError, CorpusError
from engine.mda.stream import frequent_tokens
from engine.pipeline.heads_models import HeadSource
from engine.pipeline.heads_samples import SampleOrder
from engine.pipeline.training import held_out_rows
from engine.store import RunWriter


COUNTED_CONTEXT, COUNTED_BATCH = 256, 32
"""Rows that tokens are counted in to find the frequent ones."""


@dataclass(frozen=True)
class ModelCorpus:
    """A corpus in the tokens of a model."""

    shards: TokenShards

    def frequent(self) -> Int[np.ndarray, " tokens"]:
        """The tokens that make up 99 % of the training split, without the separator."""
        stream = BatchStream(
            self.shards, split="train", context=COUNTED_CONTEXT, batch_size=COUNTED_BATCH, seed=0
        )
        found = frequent_tokens(stream)
        return found[found != self.shards.separator]

    def held_out(self, n_rows: int, context: int) -> Int[Tensor, "rows length"]:
        """About so many rows of the validation split, spread over the domains."""
        rows = held_out_rows(self.shards, context, n_rows * context)
        return torch.as_tensor(np.concatenate(list(rows.values())))


def model_corpus(source: HeadSource, corpus: str, progress: Progress) -> ModelCorpus:
    """A built corpus in the tokens of a model; tokenised if it was not.

    Raises:
        CorpusError: the corpus is not built, or the model's tokenizer has no separator.
        UnsupportedModel: the model has no tokenizer that can be read.
    """
    opened = open_corpus(corpus)
    return ModelCorpus(tokenise_corpus(opened, source.tokenizer(), progress))


def check_vocabulary(model: PreTrainedModel, shards: TokenShards, name: str) -> None:
    """Refuse a tokenizer with more tokens than the model.

    Raises:
        CorpusError: it has more; their rows of the embedding would not exist.
    """
    size = int(model.config.get_text_config().vocab_size)
    if shards.vocab_size > size:
        raise CorpusError(
            f"The tokenizer of {name} has {shards.vocab_size} tokens and its model {size}; "
            "they do not belong together."
        )


def check_context(model: PreTrainedModel, order: SampleOrder, name: str) -> None:
    """Refuse samples that are longer than the model takes.

    Raises:
        ConfigError: they are.
    """
    longest = model_context(model, order.context)
    if longest < order.context:
        raise ConfigError(
            f"{name} takes {longest} tokens and the samples have {order.context}; give "
            f"--context {longest} or less."
        )


def model_context(model: PreTrainedModel, wanted: int) -> int:
    """Tokens of a row: what is wanted, or what the model takes where that is less."""
    config: Any = model.config.get_text_config()
    longest = getattr(config, "max_position_embeddings", None) or wanted
    return min(wanted, int(longest))


def keep_tokenizer(writer: RunWriter, source: HeadSource) -> None:
    """Put the model's tokenizer into a run, so that pages can write out its samples."""
    save_tokenizer(source.tokenizer(), writer.path / "model")
