import numpy as np
import pytest
import torch
from torch.nn import functional

from engine.config import LossWeights
from engine.errors import ConfigError
from engine.prism.activation import prototype_activations
from engine.prism.attribution.cousage import activation_matrix, co_usage
from engine.prism.attribution.gradient import BankGradient
from engine.prism.attribution.preconditioner import LocalTerms, Preconditioner


TOKENS, D_MODEL, PROTOTYPES, ACTIVE = 29, 5, 11, 3
WEIGHTS = LossWeights(reconstruction=0.7, prototype_to_token=1.3, token_to_prototype=0.6)


def example():
    states = torch.randn(TOKENS, D_MODEL, dtype=torch.float64) * 2
    bank = torch.randn(PROTOTYPES, D_MODEL, dtype=torch.float64) * 1.5
    activations, indices = prototype_activations(states, bank, ACTIVE)
    return states, bank, activations, indices


def hessian_blocks(loss, bank):
    """Dense Hessian of a loss in the bank: [K, d, K, d]."""
    return torch.autograd.functional.hessian(loss, bank)


def test_co_usage_is_the_hessian_of_the_reconstruction_loss():
    """(2/N) C times the identity, with activations constant, to 5e-10 in float64."""
    states, bank, activations, indices = example()

    def loss(p):
        rebuilt = torch.einsum("tk,tkd->td", activations, p[indices])
        return (states - rebuilt).square().sum(1).mean()

    usage = co_usage(indices.numpy(), activations.numpy(), PROTOTYPES)
    expected = np.einsum("ij,ab->iajb", usage.matrix.toarray() * 2 / TOKENS, np.eye(D_MODEL))
    assert np.abs(hessian_blocks(loss, bank).numpy() - expected).max() < 5e-10
    assert usage.n_tokens == TOKENS
    np.testing.assert_allclose(usage.diagonal, np.diag(usage.matrix.toarray()))


def test_chunks_and_sums_of_co_usage_agree(monkeypatch):
    """A pool is read a chunk at a time, and shards add up."""
    _, _, activations, indices = example()
    both = (indices.numpy(), activations.numpy())
    dense = activation_matrix(*both, PROTOTYPES).toarray()
    monkeypatch.setattr("engine.prism.attribution.cousage.CHUNK", 7)
    whole = co_usage(*both, PROTOTYPES)
    np.testing.assert_allclose(whole.matrix.toarray(), dense.T @ dense, atol=1e-12)
    parts = [co_usage(*(x[rows] for x in both), PROTOTYPES) for rows in (slice(9), slice(9, None))]
    total = parts[0] + parts[1]
    np.testing.assert_allclose(total.matrix.toarray(), whole.matrix.toarray(), atol=1e-12)
    assert total.n_tokens == TOKENS


def test_local_terms_are_the_mean_eigenvalues_of_the_clustering_blocks():
    """Trace of each prototype's block of the two 1 - cosine losses, assignments constant."""
    states, bank, activations, indices = example()
    units = functional.normalize(states, dim=1)
    nearest_token = (units @ functional.normalize(bank, dim=1).T).argmax(0)
    # the pool only knows active tokens: hold every prototype to one it is active at
    whole = torch.zeros(TOKENS, PROTOTYPES, dtype=torch.float64).scatter(1, indices, activations)
    used = whole.max(0).values > 0
    nearest_token = torch.where(used, whole.argmax(0), nearest_token)

    def loss(p):
        directions = functional.normalize(p, dim=1)
        to_token = 1 - (units[nearest_token] * directions).sum(1)[used].sum() / PROTOTYPES
        to_prototype = 1 - (units * directions[indices[:, 0]]).sum(1).mean()
        return WEIGHTS.prototype_to_token * to_token + WEIGHTS.token_to_prototype * to_prototype

    hessian = hessian_blocks(loss, bank)
    expected = torch.einsum("iaia->i", hessian).numpy() / D_MODEL
    found = LocalTerms.none(PROTOTYPES)
    for rows in (slice(13), slice(13, None)):
        found = found.add(indices.numpy()[rows], activations.numpy()[rows])
    blocks = found.blocks(bank.norm(dim=1).numpy(), D_MODEL, WEIGHTS)
    np.testing.assert_allclose(blocks, expected, atol=6e-9)
    assert (blocks[used.numpy()] > 0).all()


def preconditioner(damping=0.1):
    _, bank, activations, indices = example()
    usage = co_usage(indices.numpy(), activations.numpy(), PROTOTYPES)
    local = LocalTerms.none(PROTOTYPES).add(indices.numpy(), activations.numpy())
    norms = bank.norm(dim=1).numpy()
    found = Preconditioner.of(
        usage,
        local,
        bank_norms=norms,
        d_model=D_MODEL,
        weights=WEIGHTS,
        inverse_square_norm=0.3,
        damping=damping,
    )
    dense = WEIGHTS.reconstruction * 2 / TOKENS * 0.3 * usage.matrix.toarray()
    dense += np.diag(local.blocks(norms, D_MODEL, WEIGHTS))
    return found, dense


def test_a_gradient_is_divided_by_the_diagonal_or_solved_with_the_matrix():
    """Against a dense solve; damping is a share of the mean of the diagonal."""
    found, dense = preconditioner(damping=0.2)
    np.testing.assert_allclose(found.diagonal, np.diag(dense))
    damped = dense + 0.2 * np.diag(dense).mean() * np.eye(PROTOTYPES)
    numbers, rows = torch.tensor([1, 4, 10]), torch.randn(3, D_MODEL, dtype=torch.float64)
    gradient = BankGradient("path", numbers, rows)
    divided = found.apply(gradient, "diagonal")
    assert torch.equal(divided.prototypes, numbers)
    np.testing.assert_allclose(
        divided.rows.numpy(), rows.numpy() / np.diag(damped)[numbers][:, None]
    )
    solved = found.apply(gradient, "coupled")
    expected = np.linalg.solve(damped, gradient.dense(PROTOTYPES).numpy())
    np.testing.assert_allclose(solved.dense(PROTOTYPES).numpy(), expected, rtol=1e-4, atol=1e-5)
    assert found.apply(gradient, "none") is gradient
    assert found.damped(0.5).added == pytest.approx(2.5 * found.added)


def test_what_has_no_inverse_is_said_in_a_sentence():
    """A bank with dead prototypes and no damping is singular; damping is never negative."""
    usage = co_usage(np.zeros((3, 1), int), np.ones((3, 1)), PROTOTYPES)
    settings = {
        "bank_norms": np.ones(PROTOTYPES),
        "d_model": D_MODEL,
        "weights": LossWeights(reconstruction=1.0, prototype_to_token=0, token_to_prototype=0),
    }
    local = LocalTerms.none(PROTOTYPES)
    with pytest.raises(ConfigError, match="no inverse at damping 0"):
        _ = Preconditioner.of(usage, local, damping=0.0, **settings).inverse
    with pytest.raises(ConfigError, match="damping is -1"):
        Preconditioner.of(usage, local, damping=-1.0, **settings)
