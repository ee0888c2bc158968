"""Co-usage C = sum over tokens of a_t a_t^T: how much prototypes are active together.

With activations held constant, (2/N) C (times the identity of the model's width) is the exact
Hessian of the mean squared residual with respect to the bank; see "Prototype Language Models"
(arXiv 2607.00510), its global co-usage term.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Integer
from scipy import sparse


CHUNK = 2**16
"""Tokens multiplied at once."""


@dataclass(frozen=True)
class CoUsage:
    """Co-usage of a bank over some tokens.

    matrix: [prototypes x prototypes], symmetric, float64, entries >= 0; dimensionless.
    n_tokens: tokens summed over.
    """

    matrix: sparse.csr_matrix
    n_tokens: int

    @property
    def n_prototypes(self) -> int:
        """Prototypes of the bank."""
        return len(self.diagonal)

    @property
    def diagonal(self) -> Float[np.ndarray, " prototypes"]:
        """Sum over tokens of each prototype's squared activation."""
        return np.asarray(self.matrix.diagonal())

    def __add__(self, other: "CoUsage") -> "CoUsage":
        return CoUsage(self.matrix + other.matrix, self.n_tokens + other.n_tokens)


def activation_matrix(
    prototypes: Integer[np.ndarray, "tokens k"],
    activations: Float[np.ndarray, "tokens k"],
    n_prototypes: int,
) -> sparse.csr_matrix:
    """Activations as a sparse matrix [tokens x prototypes], float64."""
    n, k = prototypes.shape
    starts = np.arange(0, n * k + 1, k)
    entries = (activations.astype(np.float64).ravel(), prototypes.astype(np.int64).ravel(), starts)
    return sparse.csr_matrix(entries, shape=(n, n_prototypes))


def co_usage(
    prototypes: Integer[np.ndarray, "tokens k"],
    activations: Float[np.ndarray, "tokens k"],
    n_prototypes: int,
) -> CoUsage:
    """Co-usage of a bank over tokens, a chunk at a time.

    Args:
        prototypes: active prototypes of each token; those of activation 0 count for nothing.
        activations: their activations.
        n_prototypes: prototypes of the bank.
    """
    total = sparse.csr_matrix((n_prototypes, n_prototypes))
    for start in range(0, len(prototypes), CHUNK):
        rows = slice(start, start + CHUNK)
        usage = activation_matrix(prototypes[rows], activations[rows], n_prototypes)
        usage.eliminate_zeros()
        total = total + usage.T @ usage
    return CoUsage(sparse.csr_matrix(total), len(prototypes))
