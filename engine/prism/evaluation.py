"""Held-out loss by domain and coverage of the bank, in one pass over fixed rows."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional
from transformers import PreTrainedModel

from engine.prism.coverage import Coverage, CoverageReport, StateGeometry
from engine.prism.model import PrismForCausalLM


Rows = Mapping[str, Int[np.ndarray, "rows pos"]]
"""Rows of context + 1 tokens, by domain."""


@dataclass
class Evaluation:
    """Loss by domain, and the geometry of the states, with the bank's coverage if it has one."""

    loss: dict[str, float] = field(default_factory=dict)
    """Mean cross-entropy by domain, nats per token."""
    tokens: dict[str, int] = field(default_factory=dict)
    """Tokens predicted by domain."""
    pair_cosine: float = float("nan")
    """Mean cosine of random pairs of states."""
    participation_ratio: float = float("nan")
    """Participation ratio of the states' covariance."""
    coverage: CoverageReport | None = None
    """Coverage of the bank; None for a dense model."""

    @property
    def mean_loss(self) -> float:
        """Unweighted mean over domains, nats per token."""
        return float(np.mean(list(self.loss.values())))

    @property
    def scanned(self) -> int:
        """Tokens scanned."""
        return sum(self.tokens.values())

    def row(self, step: int) -> dict[str, Any]:
        """This evaluation as a row of the `evaluations` table."""
        covered = self.coverage
        return {
            "step": step,
            "validation_loss": self.mean_loss,
            "coverage_r1": covered.prototype_coverage if covered else None,
            "coverage_r2": covered.token_coverage if covered else None,
            "residual_share": covered.residual_share if covered else None,
            "pair_cosine": self.pair_cosine,
            "participation_ratio": self.participation_ratio,
            "dead_share": covered.dead_share if covered else None,
            "tokens_scanned": self.scanned,
        }


@torch.no_grad()
def states_and_logits(
    model: PreTrainedModel, input_ids: Int[Tensor, "batch pos"]
) -> tuple[Float[Tensor, "batch pos d_model"], Float[Tensor, "batch pos vocab"]]:
    """State z after the final norm and logits W z, of a prototype model or of a bare decoder."""
    if isinstance(model, PrismForCausalLM):
        states = model.backbone.base_model(input_ids=input_ids).last_hidden_state
        return states, model.lm_head(states)
    states = model.base_model(input_ids=input_ids).last_hidden_state
    head = model.get_output_embeddings()
    assert head is not None
    return states, head(states)


@torch.no_grad()
def evaluate(
    model: PreTrainedModel, rows: Rows, device: torch.device, *, bank: bool, batch_size: int = 32
) -> Evaluation:
    """Loss of `model` on `rows`, and with `bank` the coverage of its prototypes.

    Args:
        model: A `PrismForCausalLM` or a bare causal decoder.
        rows: Fixed held-out rows by domain.
        device: Where the model is.
        bank: Whether the bank counts (it does not before it has been fitted).
        batch_size: Rows of a forward pass.
    """
    training = model.training
    model.eval()
    result = Evaluation()
    coverage = None
    if bank and isinstance(model, PrismForCausalLM):
        coverage = Coverage(model.prototypes, model.config.n_active)
    geometry: StateGeometry | None = coverage.geometry if coverage else None
    for domain, table in rows.items():
        total = 0.0
        for start in range(0, len(table), batch_size):
            ids = torch.as_tensor(table[start : start + batch_size], device=device)
            states, logits = states_and_logits(model, ids[:, :-1])
            flat = logits.flatten(0, 1).float()
            total += float(functional.cross_entropy(flat, ids[:, 1:].flatten(), reduction="sum"))
            flat_states = states.flatten(0, 1)
            if coverage is not None:
                coverage.update(flat_states)
            else:
                geometry = geometry or StateGeometry(states.shape[-1], device)
                geometry.update(flat_states)
        result.tokens[domain] = table.shape[0] * (table.shape[1] - 1)
        result.loss[domain] = total / result.tokens[domain]
    if geometry is not None:
        result.pair_cosine = geometry.pair_cosine
        result.participation_ratio = geometry.participation_ratio
    result.coverage = coverage.report() if coverage else None
    model.train(training)
    return result
