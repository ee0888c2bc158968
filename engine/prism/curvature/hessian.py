"""Hessian of the losses with respect to the bank, activations and assignments held fixed.

The paper states that it is a global co-usage term plus local block-diagonal terms (PRISM, the
curvature section); the formulas below are derived from the losses of `engine.prism.losses` and
compared with autograd in float64. With N tokens, u = z/|z| and q = p/|p|:

    L_REC   (2/N) Cw (x) I_d,  Cw_ij = sum_t a_ti a_tj / |z_t|^2: exact, the loss is quadratic
    L_R1    block of i: B(m_i, p_i), m_i = u_t / K of the token t nearest to i in its batch
    L_R2    block of i: B(m_i, p_i), m_i = (1/N) sum of u_t over the tokens nearest to i
    B(m, p) = (m q^T + q m^T + (m.q) (I - 3 q q^T)) / |p|^2
    L_CE    (1/N) sum_t a_t a_t^T (x) F_t,  F_t = c^2 W^T (diag(p_t) - p_t p_t^T) W

L_CE needs the residual held fixed as well (c is the decoder's factor on its logits): as trained
the bank gets no gradient from it, and no curvature. -cos is linear in u, so all tokens assigned to
a prototype act as their weighted sum m, its *pull*.

B is not positive: along p it is 0 (the cosine does not see the norm), and where m is not parallel
to p one eigenvalue is negative, (s - sqrt(s^2 + 4 g^2)) / 2|p|^2 with s = m.q, g = |m - s q|.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from engine.numerics import unit_vectors


def local_block(
    pull: Float[Tensor, " d_model"], prototype: Float[Tensor, " d_model"]
) -> Float[Tensor, "d_model d_model"]:
    """Hessian of -m.p/|p| at one prototype, B(m, p) of this module.

    Args:
        pull: Weighted sum m of the unit states assigned to the prototype, weights included.
        prototype: The prototype p, not 0.

    Returns:
        Symmetric, trace (d - 1) (m.q) / |p|^2, in losses per squared unit of p.
    """
    norm = prototype.norm()
    direction = prototype / norm
    along = pull @ direction
    crossed = torch.outer(pull, direction)
    identity = torch.eye(len(pull), dtype=pull.dtype, device=pull.device)
    bent = identity - 3 * torch.outer(direction, direction)
    return (crossed + crossed.T + along * bent) / norm.square()


def local_mean_eigenvalues(
    pulls: Float[Tensor, "prototypes d_model"], prototypes: Float[Tensor, "prototypes d_model"]
) -> Float[Tensor, " prototypes"]:
    """Mean eigenvalue of each local block, trace B / d = (1 - 1/d) (m.q) / |p|^2.

    Positive where the assigned states point the prototype's way; 0 where none is assigned.
    """
    along = (pulls * unit_vectors(prototypes)).sum(-1)
    return (1 - 1 / pulls.shape[-1]) * along / prototypes.square().sum(-1)


def local_squared_norms(
    pulls: Float[Tensor, "prototypes d_model"], prototypes: Float[Tensor, "prototypes d_model"]
) -> Float[Tensor, " prototypes"]:
    """Squared Frobenius norm of each local block, ((d - 1) s^2 + 2 g^2) / |p|^4.

    s = m.q and g^2 = |m|^2 - s^2: on the plane of p and m the block is [[0, g], [g, s]], and s
    times the identity on the d - 2 directions left.
    """
    along = (pulls * unit_vectors(prototypes)).sum(-1)
    across = (pulls.square().sum(-1) - along.square()).clamp_min(0)
    size = (pulls.shape[-1] - 1) * along.square() + 2 * across
    return size / prototypes.square().sum(-1).square()


def head_curvature(
    logits: Float[Tensor, "tokens vocab"], head: Float[Tensor, "vocab d_model"], factor: float = 1.0
) -> Float[Tensor, " tokens"]:
    """Mean eigenvalue of F_t = c^2 W^T (diag(p) - p p^T) W, the cross-entropy's Hessian in z_t.

    trace F = c^2 (sum_v p_v |W_v|^2 - |W^T p|^2): the variance of the head's rows under p.

    Args:
        logits: Logits c W z of each token.
        head: W.
        factor: c, the constant the decoder multiplies W z by.

    Returns:
        trace F_t / d, >= 0, nats per squared unit of z.
    """
    probabilities = logits.softmax(-1)
    lengths = head.square().sum(-1)
    variance = probabilities @ lengths - (probabilities @ head).square().sum(-1)
    return factor**2 * variance.clamp_min(0) / head.shape[-1]
