"""Train a small decoder with a fixed data order until its heads form, in any arm of a study.

GPT-NeoX shape with full rotary embedding, AdamW at a constant learning rate. The state of a run
(weights and moments) can be kept at any step and taken up by another arm, so all arms of a seed
are the same run until they branch.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.nn import functional
from transformers import GPTNeoXConfig, GPTNeoXForCausalLM

from engine.errors import CacheStale, EngineError
from engine.mda.arms import Arm
from engine.mda.patterns import head_scores, repeated_sequences
from engine.mda.settings import DecoderConfig, ProbeConfig
from engine.mda.stream import MixedStream
from engine.store import atomic_folder


def make_decoder(config: DecoderConfig, vocab_size: int, context: int) -> GPTNeoXForCausalLM:
    """A decoder with random weights from its seed."""
    torch.manual_seed(config.seed)
    shape = GPTNeoXConfig(
        vocab_size=vocab_size,
        hidden_size=config.d_model,
        num_hidden_layers=config.n_layers,
        num_attention_heads=config.n_heads,
        intermediate_size=4 * config.d_model,
        max_position_embeddings=max(2 * context, 512),
        rope_parameters={
            "rope_type": "default",
            "rope_theta": 10_000.0,
            "partial_rotary_factor": 1.0,
        },
        initializer_range=config.initializer_range,
        use_parallel_residual=True,
        hidden_dropout=0.0,
        attention_dropout=0.0,
        bos_token_id=0,
        eos_token_id=0,
        use_cache=False,
    )
    return GPTNeoXForCausalLM(shape)


class EmergenceRun:
    """One arm in memory: decoder, optimiser, and the step it has reached."""

    def __init__(
        self, config: DecoderConfig, stream: MixedStream, vocab_size: int, device: torch.device
    ) -> None:
        self.config = config
        self.stream = stream
        self.device = device
        self.step = 0
        model: Any = make_decoder(config, vocab_size, stream.config.context)
        self.model = model.to(device)
        self.optimiser = torch.optim.AdamW(
            self.model.parameters(),
            lr=config.learning_rate,
            betas=(config.beta1, config.beta2),
            weight_decay=config.weight_decay,
            fused=True,
        )

    def train(self, until: int, arm: Arm) -> Iterator[tuple[int, float]]:
        """Train up to a step; yields the step reached and its mean loss in nats per token."""
        self.model.train()
        while self.step < until:
            rows, weights = arm.rows(self.stream, self.step)
            loss = self._step(torch.as_tensor(rows), torch.as_tensor(weights))
            self.step += 1
            yield self.step, loss

    def _step(self, rows: Int[Tensor, "rows length"], weights: Float[Tensor, " rows"]) -> float:
        rows, weights = rows.to(self.device), weights.to(self.device)
        losses = row_losses(self.model, rows)
        (losses * weights).sum().backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config.clip)
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)
        mean = float(losses.detach().mean())
        if not np.isfinite(mean):
            raise EngineError(
                f"The loss is {mean} at step {self.step + 1}; lower the learning rate."
            )
        return mean

    def save(self, folder: Path) -> None:
        """Keep weights and moments; the folder appears whole or not at all."""
        tensors = {f"model.{n}": v.detach().clone() for n, v in self.model.state_dict().items()}
        for name, parameter in self.model.named_parameters():
            state = self.optimiser.state.get(parameter, {})
            tensors |= {f"optimiser.{name}.{key}": value for key, value in state.items()}
        step = torch.tensor(self.step)
        with atomic_folder(folder) as target:
            contiguous = {name: value.contiguous().cpu() for name, value in tensors.items()}
            save_file({**contiguous, "step": step}, target / "state.safetensors")

    def load(self, folder: Path) -> None:
        """Take up a kept state.

        Raises:
            CacheStale: there is none, or it is of another shape.
        """
        path = folder / "state.safetensors"
        if not path.is_file():
            raise CacheStale(f"There is no kept state in {folder}; run the study again.")
        tensors = load_file(path, device=str(self.device))
        weights = {
            n.removeprefix("model."): v for n, v in tensors.items() if n.startswith("model.")
        }
        self.model.load_state_dict(weights)
        self.optimiser.state.clear()
        for name, parameter in self.model.named_parameters():
            start = f"optimiser.{name}."
            self.optimiser.state[parameter] = {
                key.removeprefix(start): value.cpu() if key.endswith(".step") else value
                for key, value in tensors.items()
                if key.startswith(start)
            }
        self.step = int(tensors["step"])


def row_losses(model: Any, rows: Int[Tensor, "rows length"]) -> Float[Tensor, " rows"]:
    """Mean negative log-likelihood of each row, in nats per token."""
    logits = model(input_ids=rows[:, :-1]).logits
    flat = functional.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten(), reduction="none")
    return flat.view(len(rows), -1).mean(1)


@dataclass(frozen=True)
class Evaluation:
    """What is looked at along a run."""

    held_out: Int[Tensor, "rows length"]
    """Natural held-out rows."""
    vocabulary: Int[np.ndarray, " tokens"]
    """Tokens that probes are drawn from: frequent ones, which the model has seen."""
    probe: ProbeConfig
    """Sizes and seed of the probes."""
    early: int = 50
    """Tokens at the start of a row whose mean loss the in-context score compares with."""
    late: int = 28
    """Tokens at the end of a row that it compares."""

    @torch.inference_mode()
    def measure(self, model: Any) -> dict[str, Any]:
        """Head scores by pattern [layers, heads], and losses in nats per token.

        icl: mean loss of the last tokens minus that of the first ones, on held-out rows; more
            negative is more in-context learning.
        copy_loss: mean loss over the second copy of repeated random sequences.
        """
        model.eval()
        device = next(model.parameters()).device
        rows = self.held_out.to(device)
        logits = model(input_ids=rows[:, :-1]).logits
        losses = functional.cross_entropy(logits.mT, rows[:, 1:], reduction="none")
        repeated = repeated_sequences(self.vocabulary, self.probe).to(device)
        half = repeated.shape[1] // 2
        copied = model(input_ids=repeated[:, :-1]).logits[:, half:]
        copy_loss = functional.cross_entropy(copied.mT, repeated[:, half + 1 :])
        early, late = losses[:, : self.early].mean(), losses[:, -self.late :].mean()
        heads = {n: v.numpy() for n, v in head_scores(model, self.vocabulary, self.probe).items()}
        model.train()
        return {
            "loss": float(losses.mean()),
            "copy_loss": float(copy_loss),
            "icl": float(late - early),
            "heads": heads,
        }
