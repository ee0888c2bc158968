"""Which training sequences an attribution pool holds."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Shaped

from engine.config import MAX_SEED, require
from engine.corpus.shards import TokenShards
from engine.influence.frame import Sequences, draw_sequences
from engine.pipeline.index_windows import plan_windows
from engine.prism.attribution.quantise import Bits
from engine.prism.model import PrismForCausalLM


@dataclass(frozen=True, kw_only=True)
class PoolSettings:
    """What a pool holds.

    sequences: how many windows are drawn, spread over the domains; None takes every window of the
        training texts.
    length: tokens of a window, the separator in front included.
    bits: of each number of errors and states, 8 or 4.
    seed: of the draw.
    device: auto, cpu, cuda or cuda:N.
    """

    sequences: int | None = 3_000
    length: int = 128
    bits: Bits = 8
    seed: int = 0
    device: str = "auto"

    def __post_init__(self) -> None:
        require(
            self.sequences is None or self.sequences >= 1,
            f"{self.sequences} sequences were asked for; choose 1 or more.",
        )
        require(self.length >= 2, f"length is {self.length}; choose 2 tokens or more.")
        require(self.bits in (4, 8), f"bits is {self.bits}; choose 8 or 4.")
        require(
            0 <= self.seed <= MAX_SEED, f"seed is {self.seed}; it must lie from 0 to {MAX_SEED}."
        )


def pool_rows(
    shards: TokenShards, settings: PoolSettings, model: PrismForCausalLM
) -> tuple[Sequences, Shaped[np.ndarray, " n"]]:
    """Windows of the training texts, and the document each is taken from.

    Raises:
        CorpusError: The corpus holds too few.
    """
    limit = getattr(model.config.decoder, "max_position_embeddings", None) or settings.length
    length = min(settings.length, int(limit))
    if settings.sequences is None:
        rows = every_window(shards, length)
    else:
        seed = settings.seed
        rows = draw_sequences(shards, settings.sequences, length=length, split="train", seed=seed)
    return rows, shards.corpus.documents["doc_id"].to_numpy(object)[rows.document]


def every_window(shards: TokenShards, length: int) -> Sequences:
    """Every training document cut into windows, the separator in front of each; the last is short.

    Args:
        shards: Tokens of a corpus.
        length: Tokens of a window, the separator included.
    """
    documents = shards.corpus.documents
    plan = plan_windows(
        documents,
        np.diff(shards.offsets) - 1,
        max_tokens=2 * shards.n_tokens,
        context=length,
        seed=0,
    )
    tokens = np.full((len(plan.start), length), shards.separator, np.int64)
    document = plan.corpus_document[plan.document]
    for row, (number, start, size) in enumerate(
        zip(document, plan.start, plan.length, strict=True)
    ):
        tokens[row, 1 : size + 1] = shards.document_tokens(int(number))[start : start + size]
    return Sequences(
        tokens,
        np.arange(length - 1) < plan.length[:, None],
        documents["domain"].to_numpy(object)[document],
        document,
        plan.start,
        plan.length + 1,
    )
