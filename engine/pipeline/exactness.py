"""Exactness of several models at once: logits of a retrofit, and gaps of decompositions."""

import logging
from pathlib import Path
from typing import Any, cast

import torch
from torch import nn
from transformers import LlamaConfig, PreTrainedModel

from engine.config import LossWeights
from engine.corpus.documents import Progress, no_progress
from engine.errors import EngineError
from engine.live import LiveEngine
from engine.lm.loading import load_weights
from engine.pipeline.measurements import record_measurement
from engine.prism.checkpoints import load_prism
from engine.prism.configuration import PrismConfig
from engine.prism.logits import HeadRows, split_logits
from engine.prism.model import PrismForCausalLM, PrismOutput
from engine.store import list_runs, open_run


logger = logging.getLogger(__name__)
TEXTS = (
    "The court granted the motion and dismissed the complaint.",
    "def add(first, second):\n    return first + second\n",
    "In the beginning God created the heaven and the earth.",
    "<category><pattern>HELLO</pattern><template>Hi there!</template></category>",
    "Patients were randomly assigned to receive either treatment or placebo.",
    "Once upon a time there lived a king who had three daughters.",
)
"""Prompts on which logits are compared; each is read at every position."""
SEED = 0


def measure_exactness(progress: Progress = no_progress) -> None:
    """Record `decomposition-gap` and, for runs whose weights are here, `retrofit-exact`.

    A run that cannot be loaded is left out with a line of log.
    """
    gaps, differing = [], []
    runs = [run for run in list_runs() if run.path.name in ("demo", "smollm2")]
    for run in progress(runs, label="Decomposing", total=len(runs)):
        try:
            engine = LiveEngine.open(run.name)
            gaps.append({"model": run.name, **largest_gap(engine)})
            if run.kind == "retrofit":
                differing.append({"model": run.name, **compare_logits(run.name)})
        except EngineError as error:
            logger.warning("%s is left out: %s", run.name, error)
    gaps.append({"model": "small-llama", **small_llama_gap()})
    setting: dict[str, Any] = {"texts": len(TEXTS), "positions": "all", "dtype": "float32"}
    record_measurement("decomposition-gap", setting, gaps)
    if differing:
        record_measurement("retrofit-exact", setting, differing)


def largest_gap(engine: LiveEngine) -> dict[str, float]:
    """Largest gap of the likeliest token's logit over every position of the texts."""
    found = [
        engine.decompose(text, position).gap
        for text in TEXTS
        for position in range(len(engine.tokens(text)))
    ]
    return {"largest_gap": max(found), "n_positions": len(found)}


def compare_logits(run_name: str) -> dict[str, int]:
    """Logits of a retrofitted model that differ, in any bit, from its base model's."""
    model, tokenizer_path = load_prism(open_run(run_name).model_path)
    base = _base_model(model)
    ids = _encode(tokenizer_path)
    with torch.inference_mode():
        pairs = [(model(input_ids=i).logits, base(input_ids=i).logits) for i in ids]
    return {
        "n_different": sum(int((own != other).sum()) for own, other in pairs),
        "n_logits": sum(own.numel() for own, _ in pairs),
    }


def _base_model(model: PrismForCausalLM) -> PreTrainedModel:
    """The original decoder, loaded anew from its own files."""
    return load_weights(model.config.base or {})[0]


def _encode(tokenizer_path: Path) -> list[torch.Tensor]:
    from engine.corpus.tokenizer import load_tokenizer

    tokenizer = load_tokenizer(tokenizer_path / "tokenizer.json")
    return [torch.tensor([tokenizer.encode(text).ids]) for text in TEXTS]


def small_llama_gap() -> dict[str, float]:
    """Largest gap over every position and token of the vocabulary, small Llama, random bank."""
    torch.manual_seed(SEED)
    decoder = LlamaConfig(
        vocab_size=499,
        hidden_size=64,
        intermediate_size=172,
        num_hidden_layers=3,
        num_attention_heads=4,
        max_position_embeddings=128,
    )
    config = PrismConfig.for_backbone(decoder, weights=LossWeights(), n_prototypes=256, n_active=16)
    model = PrismForCausalLM(config).eval()
    with torch.inference_mode():
        out = model(input_ids=torch.randint(0, 499, (4, 101)), return_prototypes=True)
        gaps = [_gap_of_target(model, out, target) for target in range(499)]
    return {"largest_gap": max(gaps), "n_positions": 4 * 101 * 499}


def _gap_of_target(model: PrismForCausalLM, out: PrismOutput, target: int) -> float:
    """Largest gap of one token's logit over the positions of a forward pass."""
    states, activations, indices, logits = (
        tensor.flatten(0, 1)
        for tensor in (out.states, out.prototype_activations, out.prototype_indices, out.logits)
        if tensor is not None
    )
    head = cast(nn.Linear, model.get_output_embeddings())
    rows = HeadRows.of(head, torch.full((len(states),), target), model.logit_factor)
    found = split_logits(states, activations, indices, model.prototypes, rows, logits[:, target])
    return float(found.gap.max())
