"""Speed of attribution for model maps against captum, one forward and backward pass an option.

The same random models, probes, machine and thread; captum is given a model and its tokens, we the
whole of `embed_model` but loading: encoding, trial of short cuts, attribution, words.
"""

import time
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast

from engine.able.facts import fact_probes
from engine.able.hook import embedding_of
from engine.able.loading import LoadedModel, context_of
from engine.able.model import AttributionSettings, embed_model
from engine.able.probes import ProbeSet, probe_set
from engine.able.rows import Row, encode_probes
from engine.errors import UnsupportedModel
from engine.pipeline.claims_models_speed import ATTRIBUTION
from engine.pipeline.measurements import record_measurement
from scripts.bench.clock import cpu_seconds, ratio, timed


VOCAB = 1024


@dataclass(frozen=True)
class Shape:
    """A random model of one family and size."""

    family: str
    d_model: int
    n_layers: int
    n_heads: int = 4

    @property
    def name(self) -> str:
        """Family and size in a word."""
        return f"{self.family} {self.d_model}x{self.n_layers}"


SHAPES = (
    Shape("gpt2", 64, 2),
    Shape("llama", 64, 2),
    Shape("gpt_neox", 64, 2),
    Shape("opt", 96, 3),
    Shape("qwen2", 128, 4),
)
"""Shapes of the zoo of small models."""


def measure_models(rounds: int, n_probes: int) -> None:
    """Time every shape in turn, and keep the record."""
    torch.set_num_threads(1)
    probes = probe_set("facts", fact_probes(n_probes))
    tokenizer = _tokenizer(probes)
    rows = encode_probes(probes, tokenizer, None).rows
    records: list[dict[str, Any]] = []
    for shape in SHAPES:
        model = _model(shape)
        loaded = LoadedModel(shape.name, model, tokenizer, context_of(model))
        _time_one(loaded, probes, rows[:2])  # both once, unmeasured
        records += [{"shape": shape.name} | _time_one(loaded, probes, rows) for _ in range(rounds)]
    setting = {
        "device": "cpu",
        "threads": torch.get_num_threads(),
        "probes": n_probes,
        "mean_tokens": round(sum(len(row.tokens) for row in rows) / len(rows), 1),
        "vocabulary": VOCAB,
    }
    record_measurement(ATTRIBUTION, setting, records)
    for shape in SHAPES:
        own = [record for record in records if record["shape"] == shape.name]
        factor = ratio(own, "captum_seconds", "own_seconds")
        hourly = 3600 * len(own) / sum(record["own_seconds"] for record in own)
        print(f"{shape.name}: {factor:.1f} times captum, {hourly:,.0f} models an hour")


def _time_one(loaded: LoadedModel, probes: ProbeSet, rows: tuple[Row, ...]) -> dict[str, float]:
    """CPU seconds of both; captum's over the rows given."""
    settings = AttributionSettings(device="cpu", dtype="float32")
    wall = time.perf_counter()
    own = timed(cpu_seconds, lambda: embed_model(loaded, probes, settings))
    wall = time.perf_counter() - wall
    loaded.model.requires_grad_(True)  # captum differentiates in graphs of parameters
    theirs = timed(cpu_seconds, lambda: _captum(loaded, rows))
    loaded.model.requires_grad_(False)
    return {
        "own_seconds": round(own, 4),
        "captum_seconds": round(theirs, 4),
        "own_wall_seconds": round(wall, 4),
    }


def _captum(loaded: LoadedModel, rows: tuple[Row, ...]) -> None:
    """Gradient x Input at the embedding by captum's own class, a call for each option."""
    try:
        attributions = import_module("captum.attr")
    except ImportError as error:
        raise UnsupportedModel(
            "captum is not installed; `pip install -c constraints.txt -e '.[oracle]'` brings it."
        ) from error
    for row in rows:
        tokens = torch.from_numpy(row.tokens)[None]
        for answer in row.answers[0].tolist():

            def score(ids: torch.Tensor, answer: int = answer) -> torch.Tensor:
                logits = loaded.model(ids, use_cache=False).logits[:, -1]
                return logits.log_softmax(-1)[:, answer]

            found: Any = attributions.LayerGradientXActivation(score, embedding_of(loaded.model))
            found.attribute(tokens).sum(-1)


def _model(shape: Shape) -> Any:
    torch.manual_seed(0)
    settings: dict[str, Any] = {
        "vocab_size": VOCAB,
        "hidden_size": shape.d_model,
        "num_hidden_layers": shape.n_layers,
        "num_attention_heads": shape.n_heads,
        "num_key_value_heads": shape.n_heads,
        "intermediate_size": 4 * shape.d_model,
        "ffn_dim": 4 * shape.d_model,
        "word_embed_proj_dim": shape.d_model,
        "max_position_embeddings": 512,
    }
    if shape.family == "gpt2":
        settings = {
            "vocab_size": VOCAB,
            "n_embd": shape.d_model,
            "n_layer": shape.n_layers,
            "n_head": shape.n_heads,
            "n_positions": 512,
        }
    tokens = dict.fromkeys(("bos_token_id", "eos_token_id", "pad_token_id"), 0)
    config = AutoConfig.for_model(shape.family, **settings, **tokens)
    return AutoModelForCausalLM.from_config(config).eval().requires_grad_(False)


def _tokenizer(probes: ProbeSet) -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB,
        special_tokens=["<s>"],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator((probe.prompt for probe in probes.probes), trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer)
