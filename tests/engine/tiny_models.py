"""Tiny random models with a byte-level tokenizer, saved as folders and as runs."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    GPT2Config,
    GPTNeoXConfig,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedConfig,
)

from engine.config import LossWeights
from engine.prism.configuration import PrismConfig
from engine.prism.model import PrismForCausalLM
from engine.store import RunWriter


N_PROTOTYPES, N_ACTIVE, CONTEXT, VOCAB = 37, 5, 29, 311
TEXTS = (
    "the quick brown fox jumps over the lazy dog near the river bank",
    "a river runs through the valley and the dog sleeps by the bank",
    "numbers and words, words and numbers: one two three four five",
)


def tiny_tokenizer() -> Tokenizer:
    """A byte-level BPE with id 0 for the end of a text."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB,
        special_tokens=["<|endoftext|>"],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(TEXTS, trainer)
    return tokenizer


def llama_config(**changes: Any) -> LlamaConfig:
    """A decoder of pairwise different sizes."""
    settings: dict[str, Any] = {
        "vocab_size": VOCAB,
        "hidden_size": 24,
        "intermediate_size": 44,
        "num_hidden_layers": 2,
        "num_attention_heads": 3,
        "num_key_value_heads": 3,
        "max_position_embeddings": CONTEXT,
        "bos_token_id": 0,
        "eos_token_id": None,
        "pad_token_id": None,
        "initializer_range": 0.4,
    }
    return LlamaConfig(**(settings | changes))


def gpt2_config() -> GPT2Config:
    """A decoder with another layout."""
    return GPT2Config(
        vocab_size=VOCAB,
        n_embd=20,
        n_layer=2,
        n_head=2,
        n_positions=CONTEXT,
        eos_token_id=None,
        bos_token_id=None,
        initializer_range=0.4,
    )


def neox_config() -> GPTNeoXConfig:
    """A third one, with an untied head."""
    return GPTNeoXConfig(
        vocab_size=VOCAB,
        hidden_size=28,
        intermediate_size=52,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=CONTEXT,
        eos_token_id=None,
        bos_token_id=None,
        tie_word_embeddings=False,
        initializer_range=0.4,
    )


def save_prism(folder: Path, backbone: PreTrainedConfig | None = None, seed: int = 3) -> Path:
    """Write a random prototype model and its tokenizer."""
    torch.manual_seed(seed)
    config = PrismConfig.for_backbone(
        backbone or llama_config(),
        weights=LossWeights(),
        n_prototypes=N_PROTOTYPES,
        n_active=N_ACTIVE,
    )
    PrismForCausalLM(config).eval().save_pretrained(folder)
    tiny_tokenizer().save(str(folder / "tokenizer.json"))
    return folder


def save_dense(folder: Path, seed: int = 5) -> Path:
    """Write a random model without a bank."""
    torch.manual_seed(seed)
    LlamaForCausalLM(llama_config()).eval().save_pretrained(folder)
    tiny_tokenizer().save(str(folder / "tokenizer.json"))
    return folder


def prototypes_frame() -> pd.DataFrame:
    """A table of prototypes with rates over three decades."""
    rates = np.geomspace(1e-4, 0.3, N_PROTOTYPES)
    return pd.DataFrame(
        {
            "prototype": np.arange(N_PROTOTYPES),
            "category": "grammar",
            "role": [f"role {i}" for i in range(N_PROTOTYPES)],
            "label_score": 0.5,
            "random_label_score": 0.5,
            "firing_rate": rates,
            "n_active_tokens": (rates * 10_000).astype(int),
            "mean_activation": 0.4,
            "max_activation": 0.8,
            "norm": 1.0,
            "top_domain": "fiction",
            "top_domain_share": 0.5,
            "n_documents": 3,
            "unwanted_share": 0.1,
            "x": 0.0,
            "y": 0.0,
        }
    )


def save_run(path: Path, *, corpus: dict[str, Any] | None = None) -> Path:
    """Write an indexed run with a concept around a random prototype model."""
    writer = RunWriter.create(
        path, name=path.name, kind="prism", identity={"corpus": corpus or {"name": "nowhere"}}
    )
    writer.begin_stage("train", {"seed": 0})
    save_prism(path / "model")
    writer.finish_stage("train", {"seconds": 1.0})
    writer.begin_stage("index", {"seed": 0})
    writer.write_table("prototypes", prototypes_frame())
    concept = pd.DataFrame(
        {"concept": "NSFW", "prototype": [2, 11, 30], "score": 1.0, "origin": "planted"}
    )
    writer.write_table("concepts", concept)
    writer.finish_stage("index", {"seconds": 1.0})
    return path
