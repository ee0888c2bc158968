"""AdamW parameter groups and the warm-up-then-cosine schedule."""

import math
from typing import Any

import torch
from torch import nn

from engine.config import TrainConfig


BANK_GROUP = "bank"


def learning_rate_scale(step: int, config: TrainConfig) -> float:
    """Share of the peak learning rate at `step` (counted from 0): linear up, cosine down.

    Returns:
        A value in (0, 1]; the floor after the last step is `config.min_lr_ratio`.
    """
    if step < config.warmup:
        return (step + 1) / config.warmup
    span = max(1, config.steps - config.warmup)
    progress = min(1.0, (step - config.warmup) / span)
    cosine = 0.5 * (1 + math.cos(math.pi * progress))
    return config.min_lr_ratio + (1 - config.min_lr_ratio) * cosine


def loss_weight_scale(step: int, config: TrainConfig) -> float:
    """Ramp of the bank's loss weights at `step` (counted from 0): 0 before the bank, then to 1."""
    if config.dense or step < config.bank_start:
        return 0.0
    return min(1.0, (step - config.bank_start + 1) / max(1, config.bank_ramp))


def build_optimiser(model: nn.Module, config: TrainConfig) -> torch.optim.AdamW:
    """AdamW with weight decay on backbone matrices only, the bank in a group of its own.

    Args:
        model: A `PrismForCausalLM`, or the bare decoder of the dense twin.
        config: Learning rates, betas and decay.

    Returns:
        The optimiser; every group has a `name`, and a `peak` learning rate for the schedule.
    """
    matrices, vectors, bank = [], [], []
    for name, parameter in model.named_parameters():
        if name.endswith("prototypes"):
            bank.append(parameter)
        else:
            (matrices if parameter.ndim >= 2 else vectors).append(parameter)
    rate = config.learning_rate
    groups: list[dict[str, Any]] = [
        {"params": matrices, "weight_decay": config.weight_decay, "name": "matrices", "peak": rate},
        {"params": vectors, "weight_decay": 0.0, "name": "vectors", "peak": rate},
    ]
    if bank:
        peak = config.bank_learning_rate
        groups.append({"params": bank, "weight_decay": 0.0, "name": BANK_GROUP, "peak": peak})
    return torch.optim.AdamW(groups, lr=rate, betas=(config.beta1, config.beta2), fused=True)


def set_learning_rate(optimiser: torch.optim.Optimizer, scale: float) -> None:
    """Put every group at `scale` times its peak."""
    for group in optimiser.param_groups:
        group["lr"] = group["peak"] * scale
