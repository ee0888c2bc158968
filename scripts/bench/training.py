"""Training speed of a prototype model against its dense twin: whole steps that take turns."""

from collections.abc import Callable

import torch
from torch import nn

from engine.config import LossWeights, TrainConfig
from engine.pipeline.measurements import record_measurement
from engine.prism.optimiser import build_optimiser
from engine.prism.training import build_model, training_loss
from engine.store import open_run
from scripts.bench.clock import device_clock, ratio, timed


SHAPES = ("demo", "xl")
"""The shipped demo's shape, and that of the paper's largest model."""
_XL = TrainConfig(
    backbone="gpt2",
    n_layers=48,
    d_model=1600,
    n_heads=25,
    vocab_size=50_257,
    context=1024,
    batch_size=8,
    n_prototypes=16_384,
)
_WARM_UP = 2


def measure_training(shape: str, device: str, rounds: int) -> None:
    """Time `rounds` pairs of optimiser steps and keep the record `training-<shape>`."""
    config = _XL if shape == "xl" else _demo()
    dense = TrainConfig(**{**vars(config), "dense": True})
    arms = {"dense_seconds": _step(dense, device), "prism_seconds": _step(config, device)}
    clock = device_clock(device)
    found: list[dict[str, float]] = []
    for number in range(rounds + _WARM_UP):
        names = list(arms) if number % 2 else list(reversed(arms))
        found.append({name: timed(clock, arms[name]) for name in names})
    found = found[_WARM_UP:]
    name = torch.cuda.get_device_name() if device.startswith("cuda") else ""
    setting = {
        "device": f"{device} {name}".strip(),
        "backbone": config.backbone,
        "layers": config.n_layers,
        "d_model": config.d_model,
        "prototypes": config.n_prototypes,
        "active": config.n_active,
        "tokens_a_step": config.batch_size * config.context,
        "threads": torch.get_num_threads(),
        "expected": round(expected_ratio(config), 4),
    }
    record_measurement(f"training-{shape}", setting, found)
    value = ratio(found, "dense_seconds", "prism_seconds")
    speed = rounds * setting["tokens_a_step"] / sum(r["prism_seconds"] for r in found)
    print(
        f"training {shape} on {setting['device']}: {value:.3f} of the dense model's tokens/s "
        f"({setting['expected']:.3f} by floating-point operations); {speed:,.0f} tokens/s"
    )


def _demo() -> TrainConfig:
    """Settings of the shipped demo."""
    settings = open_run("demo").manifest["config"]["train"]
    return TrainConfig(**{**settings, "weights": LossWeights(**settings["weights"])})


def expected_ratio(config: TrainConfig) -> float:
    """Dense ÷ PRISM floating-point operations of a training step.

    Six operations a weight and token for the backbone and its head, twelve a layer, token of
    context and unit of width for attention (half of them masked); two a prototype and unit of
    width for the bank's cosines, which are scanned without gradient, and twelve for each pair that
    is kept and differentiated.
    """
    model = build_model(TrainConfig(**{**vars(config), "dense": True}), 0)
    weights = sum(p.numel() for p in model.parameters())
    attention = 6 * config.n_layers * config.context * config.d_model
    dense = 6 * weights + attention
    bank = 2 * config.n_prototypes * config.d_model + 12 * config.n_active * config.d_model
    return dense / (dense + bank)


def _step(config: TrainConfig, device: str) -> Callable[[], None]:
    """One whole optimiser step of a fresh model on fixed random tokens."""
    model: nn.Module = build_model(config, 0).to(device)
    optimiser = build_optimiser(model, config)
    generator = torch.Generator().manual_seed(config.seed)
    shape = (config.batch_size, config.context + 1)
    rows = torch.randint(config.vocab_size, shape, generator=generator).to(device)
    weights: LossWeights = config.weights

    def step() -> None:
        with torch.autocast("cuda", torch.bfloat16, enabled=device.startswith("cuda")):
            loss, _ = training_loss(model, rows, weights)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), config.clip)
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)

    return step
