"""Train a prototype language model end to end, or its matched dense twin, by one loop.

Before the bank starts the two are the same model on the same data: cross-entropy gives the bank
no gradient (`docs/decisions`), so its losses are simply off. At `bank_start` the bank is
fitted by k-means to warm states, and its loss weights ramp up.
"""

import json
import logging
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import DistributedDataParallelKwargs, broadcast
from torch import Tensor, nn
from torch.nn import functional

from engine.config import LossWeights, TrainConfig
from engine.corpus.documents import Progress
from engine.devices import join_processes, resolve_device
from engine.errors import ConfigError, EngineError
from engine.prism.backbones import backbone_config
from engine.prism.configuration import PrismConfig
from engine.prism.evaluation import Rows, evaluate, states_and_logits
from engine.prism.kmeans import bank_from_states
from engine.prism.model import PrismForCausalLM
from engine.prism.optimiser import (
    build_optimiser,
    learning_rate_scale,
    loss_weight_scale,
    set_learning_rate,
)
from engine.prism.training_checkpoint import (
    TrainingState,
    checkpoint_path,
    latest_checkpoint,
    load_checkpoint,
    prune_checkpoints,
    save_checkpoint,
)


logger = logging.getLogger(__name__)

BANK_FIT_TOKENS_PER_PROTOTYPE = 24
"""States a prototype gets in the k-means that starts the bank."""

LOG_SECONDS = 20.0
"""Seconds between lines of progress."""


@runtime_checkable
class RowStream(Protocol):
    """Rows of context + 1 tokens, a pure function of the step."""

    def batch(self, step: int) -> np.ndarray:
        """Rows of micro-batch `step`."""
        ...


@dataclass
class TrainingData:
    """What a run reads: its stream of rows, held-out rows and the id that ends a document."""

    stream: RowStream
    held_out: Rows
    end_of_text: int


@dataclass
class Trainer:
    """One run in memory: model, optimiser, data, and the rows it has logged."""

    config: TrainConfig
    data: TrainingData
    folder: Path
    accelerator: Accelerator
    model: nn.Module
    optimiser: torch.optim.Optimizer
    step: int = 0
    bank_fitted: bool = False
    log: list[dict[str, Any]] = field(default_factory=list)
    evaluations: list[dict[str, Any]] = field(default_factory=list)

    @property
    def bare_model(self) -> Any:
        """The model without wrappers of data parallelism or compilation."""
        return self.accelerator.unwrap_model(self.model, keep_torch_compile=False)

    @property
    def checkpoints(self) -> Path:
        """Folder of this run's checkpoints."""
        return self.folder / "checkpoints"

    def run(self, progress: Progress) -> None:
        """Train from where the run stands to its last step."""
        spoken = time.monotonic()
        steps = range(self.step, self.config.steps)
        for step in progress(steps, label="train", total=len(steps)):
            if step == self.config.bank_start and not self.config.dense and not self.bank_fitted:
                self._start_bank()
            self.log.append(self._train_step(step))
            self.step = step + 1
            self._after_step()
            if time.monotonic() - spoken > LOG_SECONDS and self.accelerator.is_main_process:
                spoken = time.monotonic()
                self._speak()

    def _train_step(self, step: int) -> dict[str, Any]:
        started = time.perf_counter()
        config = self.config
        scale, weight_scale = learning_rate_scale(step, config), loss_weight_scale(step, config)
        weights = scaled_weights(config.weights, weight_scale)
        set_learning_rate(self.optimiser, scale)
        torch.manual_seed(config.seed * 1_000_003 + step)
        rows = self._rows(step)
        terms: dict[str, Tensor] = {}
        for index, part in enumerate(rows):
            with self._synchronised(index == len(rows) - 1):
                loss, found = training_loss(self.model, part, weights)
                self.accelerator.backward(loss / len(rows))
            for name, value in found.items():
                terms[name] = terms.get(name, torch.zeros_like(value)) + value / len(rows)
        norm = self.accelerator.clip_grad_norm_(self.model.parameters(), config.clip)
        assert norm is not None
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)
        return self._log_row(step, terms, weight_scale, scale, float(norm), started)

    def _synchronised(self, last: bool) -> AbstractContextManager[Any]:
        """Exchange gradients between processes on the last micro-batch only."""
        return nullcontext() if last else self.accelerator.no_sync(self.model)

    def _rows(self, step: int) -> list[Tensor]:
        """This process's share of each micro-batch of a step."""
        rank, world = self.accelerator.process_index, self.accelerator.num_processes
        parts = []
        for index in range(self.config.accumulate):
            rows = self.data.stream.batch(step * self.config.accumulate + index)[rank::world]
            parts.append(torch.as_tensor(rows, device=self.accelerator.device))
        return parts

    def _log_row(
        self,
        step: int,
        terms: dict[str, Tensor],
        weight_scale: float,
        scale: float,
        norm: float,
        started: float,
    ) -> dict[str, Any]:
        config = self.config
        cross_entropy = float(terms["cross_entropy"])
        if not torch.isfinite(terms["cross_entropy"]):
            raise EngineError(
                f"The loss is {cross_entropy} at step {step + 1}; lower the learning rate and "
                "run the same command again, it goes on from the last checkpoint."
            )
        bank = ("reconstruction", "prototype_to_token", "token_to_prototype")
        return {
            "step": step + 1,
            "cross_entropy": cross_entropy,
            **{name: float(terms[name]) if name in terms else None for name in bank},
            "weight_scale": weight_scale,
            "learning_rate": config.learning_rate * scale,
            "gradient_norm": norm,
            "tokens_seen": (step + 1) * config.accumulate * config.batch_size * config.context,
            "seconds": time.perf_counter() - started,
        }

    def _start_bank(self) -> None:
        """Fit the bank to the states of the rows the next steps will see."""
        config = self.config
        wanted = config.n_prototypes * BANK_FIT_TOKENS_PER_PROTOTYPE
        states: list[Tensor] = []
        batch = config.bank_start * config.accumulate
        self.bare_model.eval()
        while sum(map(len, states)) < wanted:
            rows = torch.as_tensor(self.data.stream.batch(batch), device=self.accelerator.device)
            states.append(states_and_logits(self.bare_model, rows[:, :-1])[0].flatten(0, 1))
            batch += 1
        self.bare_model.train()
        bank = bank_from_states(
            torch.cat(states)[:wanted], config.n_prototypes, config.n_active, seed=config.seed
        )
        bank = broadcast(bank)  # the sums of k-means may differ in the last bit between devices
        with torch.no_grad():
            self.bare_model.prototypes.copy_(bank)
        self.bank_fitted = True
        logger.info("bank fitted by k-means to %d states at step %d", wanted, self.step)

    def _after_step(self) -> None:
        config, last = self.config, self.step == self.config.steps
        if not self.accelerator.is_main_process:
            return
        if last or self.step % config.eval_every == 0:
            found = evaluate(
                self.bare_model, self.data.held_out, self.accelerator.device, bank=self.bank_fitted
            )
            self.evaluations.append(found.row(self.step))
            logger.info("evaluation %s", json.dumps(self.evaluations[-1]))
        fork = self.step == config.bank_start
        if last or fork or self.step % config.checkpoint_every == 0:
            state = TrainingState(self.step, self.bank_fitted, self.log, self.evaluations)
            save_checkpoint(self.checkpoints, self.bare_model, self.optimiser, state)
            prune_checkpoints(self.checkpoints, config.bank_start or None)

    def resume(self, checkpoint: Path) -> None:
        """Go on from a checkpoint, of this run or of the twin it forks from."""
        state = load_checkpoint(checkpoint, self.bare_model, self.optimiser)
        self.step, self.log, self.evaluations = state.step, state.log, state.evaluations
        self.bank_fitted = state.bank_fitted and not self.config.dense

    def _speak(self) -> None:
        """One line of progress with rate and time left."""
        recent = self.log[-20:]
        seconds = sum(row["seconds"] for row in recent) / len(recent)
        tokens = self.config.accumulate * self.config.batch_size * self.config.context
        logger.info(
            "step %d of %d, cross-entropy %.3f, %.0f tokens/s, %.0f min left",
            self.step,
            self.config.steps,
            sum(row["cross_entropy"] for row in recent) / len(recent),
            tokens / seconds,
            (self.config.steps - self.step) * seconds / 60,
        )


def scaled_weights(weights: LossWeights, scale: float) -> LossWeights:
    """Loss weights times the ramp."""
    return LossWeights(
        reconstruction=weights.reconstruction * scale,
        prototype_to_token=weights.prototype_to_token * scale,
        token_to_prototype=weights.token_to_prototype * scale,
    )


def training_loss(
    model: nn.Module, rows: Tensor, weights: LossWeights
) -> tuple[Tensor, dict[str, Tensor]]:
    """Loss of rows of context + 1 tokens, and its terms.

    A bare decoder (the dense twin) has cross-entropy alone.
    """
    inputs, targets = rows[:, :-1], rows[:, 1:].contiguous()
    if hasattr(getattr(model, "module", model), "prototypes"):
        out = model(input_ids=inputs, shift_labels=targets, weights=weights)
        return out.loss, out.loss_terms
    logits = model(input_ids=inputs).logits
    loss = functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
    return loss, {"cross_entropy": loss.detach()}


def build_model(config: TrainConfig, end_of_text: int) -> nn.Module:
    """The model of a run; the dense twin is the decoder of the same seeded initialisation."""
    torch.manual_seed(config.seed)
    decoder = backbone_config(config, end_of_text=end_of_text)
    prism = PrismForCausalLM(
        PrismConfig.for_backbone(
            decoder,
            weights=config.weights,
            n_prototypes=config.n_prototypes,
            n_active=config.n_active,
        )
    )
    return prism.backbone if config.dense else prism


def make_trainer(
    config: TrainConfig, data: TrainingData, folder: Path, fork_of: Path | None = None
) -> Trainer:
    """A run ready to go: fresh, resumed from its last checkpoint, or forked from another run.

    Args:
        config: Settings of the run.
        data: Rows to train and evaluate on.
        folder: Run folder; checkpoints lie in it.
        fork_of: Run folder of a twin with the same seed and data. The run starts from its
            checkpoint at `bank_start`, up to which the two are the same model.

    Raises:
        ConfigError: The twin has no checkpoint at `bank_start`, or there is no such device.
    """
    device = resolve_device(config.device).device
    join_processes(device)
    if config.threads:
        torch.set_num_threads(config.threads)
    on_cpu = device.type == "cpu"
    accelerator = Accelerator(
        cpu=on_cpu,
        mixed_precision="no" if on_cpu else "bf16",
        kwargs_handlers=[DistributedDataParallelKwargs(find_unused_parameters=True)],
    )
    model = build_model(config, data.end_of_text)
    optimiser = build_optimiser(model, config)
    if config.compile:
        model = torch.compile(model)
    model, optimiser = accelerator.prepare(model, optimiser)
    trainer = Trainer(config, data, folder, accelerator, model, optimiser)
    model.train()
    checkpoint = latest_checkpoint(trainer.checkpoints)
    if checkpoint is None and fork_of is not None:
        checkpoint = checkpoint_path(fork_of / "checkpoints", config.bank_start)
        if not checkpoint.is_dir():
            raise ConfigError(
                f"{fork_of} has no checkpoint at step {config.bank_start}; "
                "train it past its bank_start first."
            )
    if checkpoint is not None:
        trainer.resume(checkpoint)
    return trainer
