"""The Hessian of the bank's losses against autograd's dense one, in float64."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from engine.config import LossWeights
from engine.numerics import unit_vectors
from engine.prism.activation import scan_bank
from engine.prism.curvature.hessian import (
    head_curvature,
    local_block,
    local_mean_eigenvalues,
    local_squared_norms,
)
from engine.prism.curvature.matrices import term_matrix
from engine.prism.curvature.measures import measure
from engine.prism.curvature.sums import CurvatureSums, Head
from engine.prism.curvature.terms import (
    BANK,
    BANK_COMMON,
    CLUSTERING,
    COMMON_WEIGHTS,
    COUSAGE,
    CROSS_ENTROPY,
    RECONSTRUCTION,
)
from engine.prism.losses import (
    prototype_to_token_loss,
    reconstruction_loss,
    token_to_prototype_loss,
)
from tests.assertions import assert_close


TOKENS, BATCHES, K, ACTIVE, D, VOCAB = 29, 2, 7, 3, 5, 11
FACTOR = 0.625
"""What the decoder multiplies its logits by."""
WEIGHTS = LossWeights(reconstruction=0.3, prototype_to_token=1.7, token_to_prototype=0.9)


@dataclass
class Case:
    """A bank, two batches of states, the head and what was accumulated of them."""

    prototypes: Tensor
    states: Tensor
    head: Tensor
    sums: CurvatureSums


@pytest.fixture(scope="module")
def case() -> Case:
    generator = torch.Generator().manual_seed(2)

    def drawn(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    prototypes, states = drawn(K, D) * 1.3, drawn(BATCHES, TOKENS, D) * 2.1
    head = drawn(VOCAB, D)
    sums = CurvatureSums(prototypes, ACTIVE, Head(head, FACTOR), chunk=13)
    for batch in states:
        sums.update(batch, FACTOR * batch @ head.T)
    return Case(prototypes, states, head, sums)


def dense_hessian(case: Case, weights: LossWeights) -> np.ndarray:
    """Autograd's Hessian [K D K D] of the engine's own losses, mean over the batches.

    Activations and assignments are found first and then held fixed.
    """
    total = torch.zeros(K, D, K, D, dtype=torch.float64)
    for batch in case.states:
        unit_states = unit_vectors(batch)
        scan = scan_bank(unit_states, unit_vectors(case.prototypes), ACTIVE)
        activations = torch.zeros(TOKENS, K, dtype=torch.float64)
        activations.scatter_(1, scan.indices, scan.cosines.clamp_min(0))

        def loss(
            bank: Tensor, batch=batch, unit_states=unit_states, scan=scan, activations=activations
        ) -> Tensor:
            units = unit_vectors(bank)
            nearest = (unit_states * units[scan.indices[:, 0]]).sum(-1)[:, None]
            return (
                weights.reconstruction * reconstruction_loss(batch, activations @ bank)
                + weights.prototype_to_token
                * prototype_to_token_loss(unit_states, units, scan.nearest_token)
                + weights.token_to_prototype * token_to_prototype_loss(nearest)
            )

        total += torch.func.hessian(loss)(case.prototypes)
    return (total / BATCHES).numpy()


def cross_entropy_hessian(case: Case) -> np.ndarray:
    """The same of the cross-entropy with residual and activations held fixed."""
    states = case.states.flatten(0, 1)
    scan = scan_bank(unit_vectors(states), unit_vectors(case.prototypes), ACTIVE)
    activations = torch.zeros(len(states), K, dtype=torch.float64)
    activations.scatter_(1, scan.indices, scan.cosines.clamp_min(0))
    residual = states - activations @ case.prototypes
    targets = torch.arange(len(states)) % VOCAB

    def loss(bank: Tensor) -> Tensor:
        logits = FACTOR * (residual + activations @ bank) @ case.head.T
        return functional.cross_entropy(logits, targets)

    return torch.func.hessian(loss)(case.prototypes).numpy()


def partial_trace(hessian: np.ndarray) -> np.ndarray:
    return np.einsum("idjd->ij", hessian) / D


def weights_of(term: str) -> LossWeights:
    only = {"reconstruction": 0.0, "prototype_to_token": 0.0, "token_to_prototype": 0.0}
    return {
        RECONSTRUCTION: LossWeights(**{**only, "reconstruction": 1.0}),
        CLUSTERING: LossWeights(**{**only, "prototype_to_token": 1.0, "token_to_prototype": 1.0}),
        BANK: WEIGHTS,
        BANK_COMMON: COMMON_WEIGHTS,
    }[term]


@pytest.mark.parametrize("term", [RECONSTRUCTION, CLUSTERING, BANK, BANK_COMMON])
def test_the_matrix_of_a_term_is_the_trace_of_each_block_of_the_dense_hessian(
    case: Case, term: str
):
    """The K x K matrix stands for a Kd x Kd Hessian: its entries are means over d."""
    dense = dense_hessian(case, weights_of(term))
    found = term_matrix(case.sums, term, WEIGHTS)
    assert_close(found.matrix, partial_trace(dense), rtol=1e-9, atol=1e-12)


def test_the_reconstruction_term_is_exactly_the_matrix_times_the_identity(case: Case):
    """(2/N) C (x) I_d with C weighted by 1/|z|^2: no direction of d differs from another."""
    dense = dense_hessian(case, weights_of(RECONSTRUCTION))
    matrix = term_matrix(case.sums, RECONSTRUCTION, WEIGHTS).matrix
    expected = np.einsum("ij,de->idje", matrix, np.eye(D))
    assert_close(dense, expected, rtol=1e-9, atol=1e-12)


def test_the_local_terms_are_the_closed_form_on_each_block_and_nothing_beside(case: Case):
    """All tokens of a prototype act as one weighted sum of their directions."""
    dense = dense_hessian(case, weights_of(CLUSTERING))
    pulls = case.sums.pulls(1.0, 1.0)
    blocks = [local_block(m, p) for m, p in zip(pulls, case.prototypes, strict=True)]
    expected = np.zeros((K, D, K, D))
    for i, block in enumerate(blocks):
        expected[i, :, i, :] = block
    assert_close(dense, expected, rtol=1e-9, atol=1e-12)


def test_the_cross_entropy_term_is_weighted_co_usage(case: Case):
    """Its block of a token is the head's Gauss-Newton matrix, of which the trace is kept."""
    found = term_matrix(case.sums, CROSS_ENTROPY, WEIGHTS)
    expected = partial_trace(cross_entropy_hessian(case))
    assert_close(found.matrix, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("term", [RECONSTRUCTION, CLUSTERING, BANK])
def test_norms_and_shares_are_those_of_the_dense_hessian(case: Case, term: str):
    """Shares of a Kd x Kd matrix are computed without ever making it."""
    dense = dense_hessian(case, weights_of(term))
    whole = float((dense**2).sum())
    blocks = np.einsum("idie->ide", dense)
    found, _ = measure(term_matrix(case.sums, term, WEIGHTS), D)
    kept = D * float((partial_trace(dense) ** 2).sum())
    assert found.block_diagonal_share == pytest.approx(float((blocks**2).sum()) / whole, rel=1e-9)
    assert found.isotropic_share == pytest.approx(kept / whole, rel=1e-9)


def test_the_eigenvalues_of_reconstruction_are_those_of_the_dense_hessian_d_times(case: Case):
    """A Kronecker product with the identity repeats each eigenvalue."""
    dense = dense_hessian(case, weights_of(RECONSTRUCTION)).reshape(K * D, K * D)
    figures, values = measure(term_matrix(case.sums, RECONSTRUCTION, WEIGHTS), D)
    whole = np.linalg.eigvalsh(dense)[::-1]
    assert_close(np.repeat(values, D), whole, rtol=1e-9, atol=1e-12)
    damped = (whole[0] + figures.damping) / (whole[-1] + figures.damping)
    assert figures.condition_number == pytest.approx(damped, rel=1e-9)


def test_co_usage_counts_every_pair_of_every_token(case: Case):
    """Sparse products against loops over tokens and pairs."""
    expected = np.zeros((K, K))
    both = np.zeros((K, K))
    for state in case.states.flatten(0, 1):
        cosines = functional.cosine_similarity(state[None], case.prototypes)
        active = [int(i) for i in cosines.topk(ACTIVE).indices if cosines[i] > 0]
        for i in active:
            for j in active:
                expected[i, j] += float(cosines[i] * cosines[j])
                both[i, j] += 1
    found = term_matrix(case.sums, COUSAGE, WEIGHTS).matrix * TOKENS * BATCHES
    assert_close(found, expected, rtol=1e-9, atol=1e-12)
    assert_close(case.sums.together.matrix, both, rtol=0)
    assert case.sums.together.matrix.trace() < TOKENS * BATCHES * ACTIVE  # some cosine is negative


def test_a_local_block_has_the_eigenvalues_of_the_closed_form():
    """0 or less along the prototype, s beside it: the block is not positive where m leans away."""
    pull = torch.tensor([0.7, 0.4, -0.2, 0.1, 0.3], dtype=torch.float64)
    prototype = torch.tensor([1.1, 0.2, 0.5, -0.4, 0.9], dtype=torch.float64)
    block = local_block(pull, prototype)
    direction = prototype / prototype.norm()
    s = float(pull @ direction)
    g = float((pull - s * direction).norm())
    n = float(prototype.square().sum())
    root = np.sqrt(s**2 + 4 * g**2)
    expected = sorted([(s - root) / 2 / n, *[s / n] * (D - 2), (s + root) / 2 / n])
    assert_close(np.linalg.eigvalsh(block.numpy()), expected, rtol=1e-9, atol=1e-12)
    norms = local_squared_norms(pull[None], prototype[None])
    means = local_mean_eigenvalues(pull[None], prototype[None])
    assert float(norms) == pytest.approx(float(block.square().sum()), rel=1e-12)
    assert float(means) == pytest.approx(float(block.trace()) / D, rel=1e-12)


def test_a_tight_cluster_bends_only_across_the_prototype():
    """With the pull along p the block is |m|/|p|^2 (I - q q^T): no negative eigenvalue."""
    prototype = torch.tensor([3.0, 0.0, 4.0], dtype=torch.float64)
    block = local_block(prototype / 5 * 0.2, prototype)
    direction = prototype / 5
    expected = 0.2 / 25 * (torch.eye(3, dtype=torch.float64) - torch.outer(direction, direction))
    assert_close(block, expected, rtol=1e-12, atol=1e-15)


def test_a_prototype_without_tokens_has_no_local_curvature():
    """A dead prototype bends under nothing."""
    pulls, prototypes = torch.zeros(1, D), torch.ones(1, D)
    assert float(local_mean_eigenvalues(pulls, prototypes)) == 0
    assert float(local_squared_norms(pulls, prototypes)) == 0


def test_a_certain_prediction_has_no_curvature(case: Case):
    """Where one token has all the probability the cross-entropy is flat in the state."""
    logits = torch.full((1, VOCAB), -500.0, dtype=torch.float64)
    logits[0, 3] = 500.0
    assert float(head_curvature(logits, case.head)) == pytest.approx(0, abs=1e-12)
