"""The K x K matrix of each term: the Hessian averaged over the d directions of a prototype."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from engine.config import LossWeights
from engine.prism.curvature.hessian import local_mean_eigenvalues, local_squared_norms
from engine.prism.curvature.sums import CurvatureSums
from engine.prism.curvature.terms import (
    BANK,
    BANK_COMMON,
    CLUSTERING,
    COMMON_WEIGHTS,
    COUSAGE,
    CROSS_ENTROPY,
    RECONSTRUCTION,
)


Square = Float[np.ndarray, "prototypes prototypes"]


@dataclass(frozen=True)
class TermMatrix:
    """One term of the Hessian, reduced to K x K.

    matrix: M_ij = trace of block (i, j) over d, symmetric.
    local: the part of its diagonal that clustering adds.
    squared_norm: squared Frobenius norm of the whole Kd x Kd term; None where it is not known.
    diagonal_norm: the same of its block diagonal alone.
    """

    matrix: Square
    local: Float[np.ndarray, " prototypes"] | None = None
    squared_norm: float | None = None
    diagonal_norm: float | None = None


def term_matrix(sums: CurvatureSums, term: str, weights: LossWeights) -> TermMatrix:
    """The matrix of one term.

    `cousage` is C / N alone. `reconstruction` and `clustering` are the losses at weight 1 of L_REC,
    and at weight 1 of both L_R1 and L_R2; `bank` is the sum at the weights the bank was trained
    with, `bank-common` at `COMMON_WEIGHTS`. `cross-entropy` holds the residual fixed.

    Args:
        sums: What was accumulated.
        term: One of `TERMS`.
        weights: Weights the bank was trained with.
    """
    tokens = max(sums.tokens, 1)
    if term == COUSAGE:
        shared = sums.usage.matrix / tokens
        norms = (float((shared**2).sum()), float((shared.diagonal() ** 2).sum()))
        d_model = sums.prototypes.shape[1]
        return TermMatrix(shared, None, d_model * norms[0], d_model * norms[1])
    if term == CROSS_ENTROPY:
        return TermMatrix(sums.output.matrix / tokens)
    chosen = {
        RECONSTRUCTION: LossWeights(
            reconstruction=1.0, prototype_to_token=0.0, token_to_prototype=0.0
        ),
        CLUSTERING: LossWeights(reconstruction=0.0, prototype_to_token=1.0, token_to_prototype=1.0),
        BANK: weights,
        BANK_COMMON: COMMON_WEIGHTS,
    }
    return bank_matrix(sums, chosen[term])


def bank_matrix(sums: CurvatureSums, weights: LossWeights) -> TermMatrix:
    """w_REC (2/N) Cw plus the mean eigenvalue of each local block on the diagonal.

    Off its diagonal blocks the Hessian is exactly this times the identity of d; on them it is that
    plus blocks that are not multiples of the identity, whose norm the result keeps.
    """
    d_model = sums.prototypes.shape[1]
    prototypes = sums.prototypes.double()
    pulls = sums.pulls(weights.prototype_to_token, weights.token_to_prototype)
    local = local_mean_eigenvalues(pulls, prototypes).cpu().numpy()
    norms = local_squared_norms(pulls, prototypes).cpu().numpy()
    shared = weights.reconstruction * 2 / max(sums.tokens, 1) * sums.weighted.matrix
    own = shared.diagonal()
    diagonal = float((d_model * own**2 + 2 * d_model * own * local + norms).sum())
    beside = float(d_model * ((shared**2).sum() - (own**2).sum()))
    return TermMatrix(
        matrix=shared + np.diag(local),
        local=local,
        squared_norm=diagonal + beside,
        diagonal_norm=diagonal,
    )
