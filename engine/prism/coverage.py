"""How well a bank covers the states it was scanned over, and whether the states collapsed.

Coverage without the other figures can be bought by shrinking the states into a cone, so a report
always holds both, with the number of tokens scanned.
"""

from dataclasses import asdict, dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from engine.numerics import full_precision, unit_vectors
from engine.prism.activation import DEFAULT_CHUNK, reconstruct, scan_bank
from engine.prism.losses import residual_share


@dataclass(frozen=True, kw_only=True)
class CoverageReport:
    """Coverage of one bank over `tokens` states."""

    tokens: int
    """Tokens scanned; both coverages depend on it."""
    n_prototypes: int
    """Size of the bank."""
    n_active: int
    """Active prototypes a token at most."""
    prototype_coverage: float
    """R1-bar: mean over prototypes of the largest cosine with any token, in [-1, 1]."""
    token_coverage: float
    """R2: mean over tokens of the largest cosine with any prototype, in [-1, 1]."""
    residual_share: float
    """Mean over tokens of |z - zhat|^2 / |z|^2; 0 is perfect."""
    mean_active: float
    """Mean number of prototypes with a positive activation, at most n_active."""
    dead_prototypes: int
    """Prototypes that were active on none of the tokens."""
    dead_share: float
    """The same as a share of the bank, in [0, 1]."""
    pair_cosine: float
    """Mean cosine of two different tokens, over all pairs; 1 is total collapse."""
    participation_ratio: float
    """(tr C)^2 / tr C^2 of the states' covariance, in [1, d_model]; small is collapse."""

    def as_dict(self) -> dict[str, float | int]:
        """The figures as plain numbers."""
        return asdict(self)


class StateGeometry:
    """Running first and second moments of states, in float64 where the device has it."""

    def __init__(self, d_model: int, device: torch.device | str = "cpu") -> None:
        zeros = {"dtype": torch.float64, "device": device}
        self.tokens = 0
        self.sum = torch.zeros(d_model, **zeros)
        self.unit_sum = torch.zeros(d_model, **zeros)
        self.outer = torch.zeros(d_model, d_model, **zeros)

    @torch.no_grad()
    def update(self, states: Float[Tensor, "tokens d_model"]) -> None:
        """Count a batch of states in."""
        states = full_precision(states)
        self.tokens += len(states)
        self.sum += states.double().sum(0)
        self.unit_sum += unit_vectors(states).double().sum(0)
        self.outer += (states.T @ states).double()

    @property
    def pair_cosine(self) -> float:
        """Mean cosine over all ordered pairs of different tokens: (|sum u|^2 - n) / (n (n - 1))."""
        n = self.tokens
        if n < 2:
            return float("nan")
        return float((self.unit_sum.square().sum() - n) / (n * (n - 1)))

    @property
    def participation_ratio(self) -> float:
        """(tr C)^2 / tr C^2 of the covariance C of the states."""
        n = self.tokens
        if n < 2:
            return float("nan")
        mean = self.sum / n
        covariance = self.outer / n - torch.outer(mean, mean)
        return float(covariance.trace().square() / covariance.square().sum())


class Coverage:
    """Accumulates a bank's coverage batch by batch; `report` may be called at any time."""

    def __init__(
        self,
        prototypes: Float[Tensor, "prototypes d_model"],
        n_active: int,
        chunk: int = DEFAULT_CHUNK,
    ) -> None:
        self.prototypes = full_precision(prototypes.detach())
        self.unit_prototypes = unit_vectors(self.prototypes)
        self.n_active, self.chunk = n_active, chunk
        n_prototypes, d_model = prototypes.shape
        device = prototypes.device
        self.geometry = StateGeometry(d_model, device)
        self.nearest = torch.full((n_prototypes,), -1.0, device=device, dtype=self.prototypes.dtype)
        self.firings = torch.zeros(n_prototypes, dtype=torch.int64, device=device)
        self.tokens = 0
        self.token_cosine = self.residual = 0.0

    @torch.no_grad()
    def update(self, states: Float[Tensor, "*batch d_model"]) -> None:
        """Scan a batch of states."""
        states = full_precision(states.reshape(-1, states.shape[-1])).to(self.prototypes.dtype)
        if not len(states):
            return
        scan = scan_bank(unit_vectors(states), self.unit_prototypes, self.n_active, self.chunk)
        activations = scan.cosines.clamp_min(0)
        rebuilt = reconstruct(activations, scan.indices, self.prototypes)
        self.geometry.update(states)
        self.nearest = torch.maximum(self.nearest, scan.nearest_cosine)
        fired = scan.indices[activations > 0]
        self.firings += torch.bincount(fired, minlength=len(self.firings))
        self.tokens += len(states)
        self.token_cosine += float(scan.cosines[:, 0].double().sum())
        self.residual += float(residual_share(states, rebuilt).double().sum())

    def report(self) -> CoverageReport:
        """The figures so far; needs at least one token."""
        dead = int((self.firings == 0).sum())
        n_prototypes, tokens = len(self.firings), max(self.tokens, 1)
        return CoverageReport(
            tokens=self.tokens,
            n_prototypes=n_prototypes,
            n_active=self.n_active,
            prototype_coverage=float(self.nearest.double().mean()),
            token_coverage=self.token_cosine / tokens,
            residual_share=self.residual / tokens,
            mean_active=float(self.firings.sum()) / tokens,
            dead_prototypes=dead,
            dead_share=dead / n_prototypes,
            pair_cosine=self.geometry.pair_cosine,
            participation_ratio=self.geometry.participation_ratio,
        )
