"""Settings of the study by retraining: pool, queries, model, subsets and removals."""

import math
from dataclasses import dataclass, field

from engine.config import (
    MAX_SEED,
    LossWeights,
    TrainConfig,
    require,
    require_positive,
    require_within,
)


@dataclass(frozen=True, kw_only=True)
class RetrainConfig:
    """A study small enough to train its model more than a hundred times."""

    corpus: str = "full"
    """Built corpus that pool and queries are taken from."""
    pool_sequences: int = 2048
    """Sequences of real text in the pool, as many of each domain as of any other."""
    queries: int = 96
    """Held-out sequences whose loss is predicted."""
    facts: int = 40
    """Invented facts; each has one document in the pool and two queries."""
    length: int = 128
    """Tokens of a sequence, all of one document."""
    subsets: int = 50
    """Random subsets of the pool, each retrained."""
    seeds: int = 2
    """Trainings of each subset; the second one gives the noise ceiling."""
    subset_share: float = 0.5
    """Share of the pool in a subset."""
    epochs: int = 7
    """Passes over what a model is trained on."""
    backbone: str = "llama"
    """transformers model type of the decoder."""
    n_layers: int = 2
    """Decoder layers."""
    d_model: int = 64
    """Hidden size."""
    n_heads: int = 4
    """Attention heads."""
    vocab_size: int = 1024
    """Tokens of the byte-level BPE, one for all domains."""
    n_prototypes: int = 256
    """Prototypes in the bank."""
    n_active: int = 8
    """Active prototypes a token."""
    weights: LossWeights = field(
        default_factory=lambda: LossWeights(
            reconstruction=0.1, prototype_to_token=1.0, token_to_prototype=1.0
        )
    )
    """Loss weights of the bank after the ramp."""
    bank_start_share: float = 0.5
    """Share of the steps after which the bank is fitted and its losses set in."""
    bank_ramp_share: float = 0.05
    """Share of the steps over which the bank's loss weights rise."""
    warmup_share: float = 0.05
    """Share of the steps of linear warm-up; a cosine follows."""
    batch_size: int = 8
    """Sequences a step."""
    learning_rate: float = 8e-3
    """Peak learning rate of AdamW, of decoder and bank."""
    min_lr_ratio: float = 0.0
    """Floor of the cosine schedule, as a share of the peak."""
    weight_decay: float = 0.1
    """Decoupled weight decay of matrices (never of the bank, norms or biases)."""
    beta2: float = 0.95
    """AdamW's second decay."""
    clip: float = 1.0
    """Gradient-norm limit."""
    seed: int = 0
    """Seed of pool, facts, queries, subsets and of the first training; the next train with seed
    + 1 and so on."""
    removed_share: float = 0.025
    """Share of the pool that a removal takes out of each domain studied."""
    removal_domains: int = 8
    """Domains whose sequences are removed; 0 studies no removal."""

    def __post_init__(self) -> None:
        sizes = ("pool_sequences", "queries", "facts", "subsets", "seeds", "epochs", "batch_size")
        require_positive(self, *sizes, "n_layers", "d_model", "n_heads", "learning_rate", "clip")
        require_within(self, 0, MAX_SEED - 1000, "seed")
        require_within(self, 8, 4096, "length")
        require_within(self, 0.01, 0.99, "subset_share")
        require_within(self, 0, 0.5, "removed_share")
        require_within(self, 0, 0.9, "bank_start_share", "bank_ramp_share", "warmup_share")
        require_within(self, 0, math.inf, "removal_domains", "weight_decay")
        rows = math.floor(self.pool_sequences * self.subset_share) * self.epochs
        require(
            rows >= 20 * self.batch_size,
            f"A subset of {math.floor(self.pool_sequences * self.subset_share)} sequences gives "
            f"fewer than 20 steps of {self.batch_size} in {self.epochs} epochs; raise "
            "pool_sequences or epochs.",
        )
        self.training(self.steps_of(rows // self.epochs), 0)  # says what the model does not allow

    def steps_of(self, n_rows: int) -> int:
        """Optimiser steps of a training on `n_rows` sequences."""
        return n_rows * self.epochs // self.batch_size

    def training(self, steps: int, seed: int) -> TrainConfig:
        """The settings of one training as those of any run.

        Args:
            steps: Optimiser steps.
            seed: Seed of its initialisation and order.
        """
        same = (
            "corpus",
            "backbone",
            "n_layers",
            "d_model",
            "n_heads",
            "vocab_size",
            "n_prototypes",
            "n_active",
            "weights",
            "batch_size",
            "learning_rate",
            "min_lr_ratio",
            "weight_decay",
            "beta2",
            "clip",
        )
        return TrainConfig(
            **{name: getattr(self, name) for name in same},
            context=self.length,
            bank_learning_rate=self.learning_rate,
            bank_start=int(steps * self.bank_start_share),
            bank_ramp=math.ceil(steps * self.bank_ramp_share),
            warmup=math.ceil(steps * self.warmup_share),
            steps=steps,
            seed=seed,
            device="cpu",
            threads=1,
        )
