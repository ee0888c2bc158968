"""The curvature of the bank's own losses, by which a query's gradient may be divided.

With activations and assignments held constant the Hessian of the weighted losses in the bank is
M times the identity of the model's width, up to what the local blocks have off their mean:

    M = w_rec (2/N) s C + diag(D)
    D_i = (d-1) / (d |p_i|^2) [ w_R1 c_i / K + (w_R2 / N) sum over tokens t nearest to i of a_t0 ]

C is co-usage over N tokens; s the mean of 1/|z|^2, for L_REC is a share of |z|^2; c_i the largest
activation of prototype i, that of the token nearest to it. D_i is the mean eigenvalue of the exact
block of the 1 - cosine losses. M is damped by a multiple of the mean of its diagonal. The two terms
are those named by "Prototype Language Models" (arXiv 2607.00510): global co-usage, local blocks.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.linalg
import torch
from jaxtyping import Float, Integer

from engine.config import LossWeights
from engine.errors import ConfigError
from engine.prism.attribution.cousage import CoUsage
from engine.prism.attribution.gradient import BankGradient, Conditioning


DAMPING = 0.1
"""Added to M, as a share of the mean of its diagonal."""
LARGEST_COUPLED = 16_384
"""Prototypes up to which M is inverted: a square matrix of 1 GB and a minute's work."""


@dataclass(frozen=True)
class LocalTerms:
    """What the local blocks need of the tokens.

    largest: largest activation of each prototype; 0 where it is never active.
    nearest: sum of the activations of the tokens each prototype is nearest to.
    n_tokens: tokens looked at.
    """

    largest: Float[np.ndarray, " prototypes"]
    nearest: Float[np.ndarray, " prototypes"]
    n_tokens: int

    @classmethod
    def none(cls, n_prototypes: int) -> "LocalTerms":
        """Of no token yet."""
        return cls(np.zeros(n_prototypes), np.zeros(n_prototypes), 0)

    def add(
        self,
        prototypes: Integer[np.ndarray, "tokens k"],
        activations: Float[np.ndarray, "tokens k"],
    ) -> "LocalTerms":
        """The same with further tokens; column 0 holds each token's nearest prototype."""
        largest, nearest = self.largest.copy(), self.nearest.copy()
        np.maximum.at(largest, prototypes.astype(np.int64), activations)
        nearest += np.bincount(
            prototypes[:, 0].astype(np.int64), activations[:, 0], minlength=len(nearest)
        )
        return LocalTerms(largest, nearest, self.n_tokens + len(prototypes))

    def blocks(
        self, bank_norms: Float[np.ndarray, " prototypes"], d_model: int, weights: LossWeights
    ) -> Float[np.ndarray, " prototypes"]:
        """D, the mean eigenvalue of each prototype's block."""
        pulled = weights.prototype_to_token * self.largest / len(self.largest)
        pulling = weights.token_to_prototype * self.nearest / max(1, self.n_tokens)
        return (d_model - 1) / d_model * (pulled + pulling) / np.square(bank_norms)


@dataclass(frozen=True)
class Preconditioner:
    """M of a bank over a pool.

    diagonal: m_i before damping.
    damping: what is added to each, as a share of their mean.
    coupling: makes w_rec (2/N) s C, dense [prototypes prototypes]; called once, when asked for.
    """

    diagonal: Float[np.ndarray, " prototypes"]
    coupling: Callable[[], np.ndarray]
    damping: float = DAMPING

    @classmethod
    def of(
        cls,
        usage: CoUsage,
        local: LocalTerms,
        *,
        bank_norms: Float[np.ndarray, " prototypes"],
        d_model: int,
        weights: LossWeights,
        inverse_square_norm: float = 1.0,
        damping: float = DAMPING,
    ) -> "Preconditioner":
        """M from co-usage and the local terms.

        Args:
            usage: C.
            local: what D needs.
            bank_norms: |p_i|.
            d_model: width of the model.
            weights: weights of the bank's losses.
            inverse_square_norm: s, the mean of 1/|z|^2.
            damping: share of the mean of the diagonal that is added to it.

        Raises:
            ConfigError: the damping is negative.
        """
        if not damping >= 0:
            raise ConfigError(f"The damping is {damping}; choose 0 or more.")
        factor = weights.reconstruction * 2 / max(1, usage.n_tokens) * inverse_square_norm
        blocks = local.blocks(bank_norms, d_model, weights)
        return cls(
            diagonal=factor * usage.diagonal + blocks,
            coupling=lambda: (factor * usage.matrix).toarray(),
            damping=damping,
        )

    def damped(self, damping: float) -> "Preconditioner":
        """The same with another damping."""
        return replace(self, damping=damping)

    @property
    def added(self) -> float:
        """What damping adds to the diagonal."""
        return float(self.damping * self.diagonal.mean())

    @cached_property
    def inverse(self) -> Float[np.ndarray, "prototypes prototypes"]:
        """(M + damping)^-1, float32.

        Raises:
            ConfigError: the bank is too large, or M has no inverse without more damping.
        """
        n = len(self.diagonal)
        if n > LARGEST_COUPLED:
            raise ConfigError(
                f"The bank has {n:,} prototypes, and the coupled preconditioner takes up to "
                f"{LARGEST_COUPLED:,}; choose a variant with +diagonal."
            )
        matrix = self.coupling()
        matrix[np.arange(n), np.arange(n)] = self.diagonal + self.added
        try:
            factor = scipy.linalg.cho_factor(matrix, lower=True, overwrite_a=True)
        except np.linalg.LinAlgError as error:
            raise ConfigError(
                f"The coupled preconditioner has no inverse at damping {self.damping}; "
                "choose a larger damping."
            ) from error
        return scipy.linalg.cho_solve(factor, np.eye(n), overwrite_b=True).astype(np.float32)

    def apply(self, gradient: BankGradient, conditioning: Conditioning) -> BankGradient:
        """G' = M^-1 G; the gradient itself with `none`."""
        if conditioning == "none":
            return gradient
        if conditioning == "diagonal":
            divisor = torch.from_numpy(self.diagonal + self.added).to(gradient.rows)
            rows = gradient.rows / divisor[gradient.prototypes, None]
            return BankGradient(gradient.statistic, gradient.prototypes, rows)
        columns = torch.from_numpy(self.inverse[:, gradient.prototypes.cpu().numpy()])
        rows = columns.to(gradient.rows) @ gradient.rows
        every = torch.arange(len(rows), device=rows.device)
        return BankGradient(gradient.statistic, every, rows)
