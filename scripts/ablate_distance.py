"""Which distance should R1 and R2 take? Fit banks to frozen states with each and compare.

    python -m scripts.ablate_distance --run RUN

The states are those of a trained run on its own corpus; only the bank is fitted, from the same
k-means start, with L_REC + w (L_R1 + L_R2). Prints one JSON line an arm; the figures in
`docs/decisions` come from here.
"""

import argparse
import json

import torch
from jaxtyping import Float
from torch import Tensor

from engine.numerics import unit_vectors
from engine.pipeline.coverage import scan, state_source
from engine.prism.activation import prototype_activations, reconstruct
from engine.prism.kmeans import bank_from_states
from engine.prism.losses import reconstruction_loss
from engine.store import open_run


def distances(
    states: Float[Tensor, "tokens d_model"], bank: Float[Tensor, "prototypes d_model"], kind: str
) -> Float[Tensor, "tokens prototypes"]:
    """1 - cosine, or the squared Euclidean distance over the mean squared length of the states."""
    if kind == "cosine":
        return 1 - unit_vectors(states) @ unit_vectors(bank).T
    return torch.cdist(states, bank).square() / states.square().sum(-1).mean()


def fit(start: Tensor, states: Tensor, kind: str, weight: float, n_active: int) -> Tensor:
    """A bank after 200 steps of Adam on 1,024 states each."""
    bank = start.clone().requires_grad_()
    optimiser = torch.optim.Adam([bank], lr=3e-3)
    generator = torch.Generator().manual_seed(0)
    for _ in range(200):
        batch = states[torch.randint(len(states), (1024,), generator=generator)]
        activations, indices = prototype_activations(batch, bank, n_active)
        away = distances(batch, bank, kind)
        clustering = away.amin(0).mean() + away.amin(1).mean()
        rebuilt = reconstruct(activations, indices, bank)
        loss = reconstruction_loss(batch, rebuilt) + weight * clustering
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return bank.detach()


def main() -> None:
    """Fit and print every arm."""
    parser = argparse.ArgumentParser(description="Compare the distances R1 and R2 may take.")
    parser.add_argument("--run", required=True)
    parser.add_argument("--prototypes", type=int, default=512)
    parser.add_argument("--active", type=int, default=16)
    arguments = parser.parse_args()
    source = state_source(open_run(arguments.run))
    states = source.training_states(arguments.prototypes * 48, seed=0)
    held_out = source.held_out_states()
    start = bank_from_states(states, arguments.prototypes, arguments.active)
    banks = {("k-means", 0.0): start}
    for kind in ("cosine", "euclidean"):
        for weight in (0.1, 1.0):
            banks[kind, weight] = fit(start, states, kind, weight, arguments.active)
    length = float(held_out.norm(dim=-1).mean())
    for (kind, weight), bank in banks.items():
        report = scan(bank, held_out, arguments.active)
        row = {
            "distance": kind,
            "clustering_weight": weight,
            "coverage_r1": round(report.prototype_coverage, 4),
            "coverage_r2": round(report.token_coverage, 4),
            "residual_share": round(report.residual_share, 4),
            "dead_share": round(report.dead_share, 4),
            "relative_norm": round(float(bank.norm(dim=-1).mean()) / length, 4),
            "tokens_scanned": report.tokens,
        }
        print(json.dumps(row))


if __name__ == "__main__":
    main()
