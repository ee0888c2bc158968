"""Tiny causal models of many families, and tokenizers of every style, made on the spot."""

from functools import cache
from typing import Any

import torch
from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)

from engine.able.facts import fact_probes
from engine.able.loading import LoadedModel, context_of
from engine.able.probes import Probe


D_MODEL, VOCAB = 24, 307
_SIZES: dict[str, Any] = {
    "vocab_size": VOCAB,
    "hidden_size": D_MODEL,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "num_key_value_heads": 3,
    "head_dim": 8,
    "intermediate_size": 40,
    "max_position_embeddings": 211,
    "initializer_range": 0.2,
    "bos_token_id": 0,
    "eos_token_id": 0,
    "pad_token_id": 0,
}
_EXPERTS = {"num_local_experts": 3, "num_experts_per_tok": 2}
FAMILIES: dict[str, dict[str, Any]] = {
    "llama": {"num_key_value_heads": 1},
    "gpt_neox": {},
    "qwen2": {},
    "qwen3": {"num_key_value_heads": 1},
    "gemma2": {"num_key_value_heads": 1, "query_pre_attn_scalar": 8},
    "mixtral": _EXPERTS,
    "opt": {"ffn_dim": 40, "word_embed_proj_dim": D_MODEL, "init_std": 0.2},
    "bloom": {"n_layer": 2, "n_head": 3},
    "mamba": {"state_size": 5, "expand": 2, "conv_kernel": 3, "num_hidden_layers": 2},
    "rwkv": {"attention_hidden_size": D_MODEL, "context_length": 211},
    "gpt2": {"n_embd": D_MODEL, "n_layer": 2, "n_head": 3, "n_positions": 211},
}
"""Model types with what their configuration needs beside the common sizes."""
SHORT = (
    Probe("t", "Which comes next: 2, 4?\nA. 6 B. 5 C. 8\n", ("A", "B", "C"), 0),
    Probe("t", "The capital of Peru?\n", ("C", "A", "B"), 2),
    Probe("t", "The young of a cow: calf or lamb\n", ("B", "A", "C"), 1),
    Probe("t", "hot and\n", ("A", "C", "B"), 1),
    Probe("t", "Which is a fish?\nA. owl\n", ("A", "B", "C"), 1),
)
"""Prompts of different lengths, all short: some models are slow."""


def tiny_model(family: str, seed: int = 3, **changes: Any) -> PreTrainedModel:
    """A random model in evaluation mode, its parameters frozen."""
    torch.manual_seed(seed)
    config = AutoConfig.for_model(family, **{**_SIZES, **FAMILIES[family], **changes})
    model = AutoModelForCausalLM.from_config(config)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() > 1:
                weight.mul_(1 + 0.3 * torch.rand(weight.shape))
    return model.eval().requires_grad_(False)


@cache
def texts() -> tuple[str, ...]:
    """Prompts that tokenizers are trained on."""
    return tuple(probe.prompt for probe in fact_probes(60))


def _byte_level(trim: bool = False) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=trim)
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB,
        special_tokens=["<s>"],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts(), trainer)
    return tokenizer


def _metaspace() -> Tokenizer:
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=VOCAB, special_tokens=["<unk>", "<s>"], unk_token="<unk>", show_progress=False
    )
    tokenizer.train_from_iterator(texts(), trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", tokenizer.token_to_id("<s>"))]
    )
    return tokenizer


def _word_piece() -> Tokenizer:
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(
        vocab_size=VOCAB, special_tokens=["[UNK]", "[CLS]"], show_progress=False
    )
    tokenizer.train_from_iterator(texts(), trainer)
    return tokenizer


def _characters() -> Tokenizer:
    known = sorted(set("".join(texts())))
    vocabulary = {"<unk>": 0, **{letter: n for n, letter in enumerate(known, start=1)}}
    tokenizer = Tokenizer(models.BPE(vocabulary, [], unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    return tokenizer


TOKENIZERS = {
    "byte_level": _byte_level,
    "byte_level_trimmed": lambda: _byte_level(trim=True),
    "metaspace": _metaspace,
    "word_piece": _word_piece,
    "characters": _characters,
}


@cache
def tiny_tokenizer(style: str = "byte_level") -> PreTrainedTokenizerFast:
    """A tokenizer of one style, as transformers wraps it."""
    return PreTrainedTokenizerFast(tokenizer_object=TOKENIZERS[style]())


def tiny_loaded(family: str = "llama", style: str = "byte_level", seed: int = 3) -> LoadedModel:
    """A model with its tokenizer, ready to be attributed."""
    model = tiny_model(family, seed)
    return LoadedModel(f"{family}-{seed}", model, tiny_tokenizer(style), context_of(model))


def save_tiny(folder: Any, family: str = "llama", style: str = "byte_level", seed: int = 3) -> str:
    """Write model and tokenizer as a folder."""
    tiny_model(family, seed).save_pretrained(folder)
    tiny_tokenizer(style).save_pretrained(folder)
    return str(folder)
