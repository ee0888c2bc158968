"""How coupled and how well conditioned a K x K matrix of curvature is."""

from dataclasses import dataclass

import numpy as np
import scipy.linalg
from jaxtyping import Bool, Float

from engine.prism.curvature.matrices import Square, TermMatrix


DAMPING = 0.1
"""Share of the mean eigenvalue that is added to every eigenvalue before dividing."""
Eigenvalues = Float[np.ndarray, " prototypes"]


@dataclass(frozen=True, kw_only=True)
class Measures:
    """Figures of one matrix M of K prototypes; None where a figure has no meaning for it."""

    mean_eigenvalue: float
    """trace M / K: the unit of every eigenvalue."""
    coupling: float
    """sum over i != j of |M_ij| over the sum of all |M_ij|, in [0, 1]; 0: nothing is shared."""
    coupling_normalised: float
    """The same of M_ij / sqrt(M_ii M_jj), over prototypes with M_ii > 0."""
    local_share: float | None
    """Share of the diagonal that clustering's local terms make."""
    block_diagonal_share: float | None
    """Squared Frobenius norm of the block diagonal over that of the whole Kd x Kd Hessian."""
    isotropic_share: float | None
    """Share of the squared Frobenius norm that M (x) I_d keeps; 1: the reduction loses nothing."""
    participation: float
    """(sum of eigenvalues)^2 over sum of squares, in [1, K] where none is negative."""
    largest: float
    """Largest eigenvalue."""
    smallest: float
    """Smallest eigenvalue."""
    n_zero: int
    """Eigenvalues that are 0 within rounding: dead prototypes and exact dependencies."""
    damping: float
    """Added to every eigenvalue for the condition numbers below, in the matrix's own unit."""
    condition_number: float | None
    """(largest + damping) / (smallest + damping), >= 1; None where M + damping is not positive."""
    condition_scaled: float | None
    """The same of the correlation-normalised matrix: what a diagonal preconditioner leaves."""
    condition_effective: float | None
    """Largest over smallest eigenvalue above 0 within rounding, without damping."""


def live_prototypes(matrix: Square) -> Bool[np.ndarray, " prototypes"]:
    """Prototypes with curvature of their own, M_ii > 0."""
    return matrix.diagonal() > 0


def normalised(matrix: Square) -> Float[np.ndarray, "live live"]:
    """M_ij / sqrt(M_ii M_jj) over the prototypes with M_ii > 0; ones on the diagonal."""
    live = live_prototypes(matrix)
    kept = matrix[np.ix_(live, live)]
    scale = 1 / np.sqrt(kept.diagonal())
    return kept * scale[:, None] * scale


def coupling(matrix: Float[np.ndarray, "rows rows"]) -> float:
    """Off-diagonal share of the absolute mass, in [0, 1]; 0 of a matrix of zeros."""
    total = float(np.abs(matrix).sum())
    own = float(np.abs(matrix.diagonal()).sum())
    return 0.0 if total == 0 else max(0.0, 1 - own / total)


def eigenvalues(matrix: Float[np.ndarray, "rows rows"]) -> Float[np.ndarray, " rows"]:
    """Eigenvalues of a symmetric matrix, falling."""
    if np.count_nonzero(matrix) == np.count_nonzero(matrix.diagonal()):
        return np.sort(matrix.diagonal())[::-1]
    return scipy.linalg.eigvalsh(matrix)[::-1]


def participation(values: Float[np.ndarray, " rows"]) -> float:
    """(sum)^2 / sum of squares: how many directions the curvature is spread over; 0 of zeros."""
    squares = float((values**2).sum())
    return 0.0 if squares == 0 else float(values.sum()) ** 2 / squares


def condition_number(values: Float[np.ndarray, " rows"], damping: float) -> float | None:
    """(largest + damping) / (smallest + damping); None where that is no positive matrix."""
    low, high = float(values[-1]) + damping, float(values[0]) + damping
    return high / low if low > 0 else None


def measure(
    term: TermMatrix, d_model: int, damping: float = DAMPING
) -> tuple[Measures, Eigenvalues]:
    """Figures and eigenvalues, falling, of one term.

    Args:
        term: The matrix, with what is known of the Hessian it stands for.
        d_model: Width of a state.
        damping: Share of the mean eigenvalue.
    """
    matrix = term.matrix
    values = eigenvalues(matrix)
    mean = float(matrix.trace()) / len(matrix)
    scaled = eigenvalues(normalised(matrix))
    largest = float(values[0])
    rounding = len(values) * np.finfo(np.float64).eps * largest
    positive = values[values > rounding]
    whole = term.squared_norm
    figures = Measures(
        mean_eigenvalue=mean,
        coupling=coupling(matrix),
        coupling_normalised=coupling(normalised(matrix)),
        local_share=_share(term.local, matrix),
        block_diagonal_share=term.diagonal_norm / whole if whole and term.diagonal_norm else None,
        isotropic_share=d_model * float((matrix**2).sum()) / whole if whole else None,
        participation=participation(values),
        largest=largest,
        smallest=float(values[-1]),
        n_zero=int((np.abs(values) <= rounding).sum()),
        damping=damping * mean,
        condition_number=condition_number(values, damping * mean),
        condition_scaled=condition_number(scaled, damping) if len(scaled) else None,
        condition_effective=largest / float(positive[-1]) if len(positive) else None,
    )
    return figures, values


def _share(local: Float[np.ndarray, " prototypes"] | None, matrix: Square) -> float | None:
    """Share of the diagonal that is local; None where there is no diagonal or no such part."""
    trace = float(matrix.trace())
    return None if local is None or trace <= 0 else float(local.sum()) / trace
