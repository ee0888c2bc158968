import pytest
import torch
from torch.nn import functional

from engine.config import LossWeights
from engine.prism.losses import bank_losses, residual_share


TOKENS, D_MODEL, PROTOTYPES, ACTIVE = 67, 7, 23, 5


def dense_losses(states, prototypes, n_active):
    """The three terms from the whole cosine matrix, by autograd alone: the slow reference."""
    cosines = functional.normalize(states, dim=1) @ functional.normalize(prototypes, dim=1).T
    top = cosines.topk(n_active, dim=1)
    sparse = torch.zeros_like(cosines).scatter(1, top.indices, top.values.clamp_min(0))
    residual = states - sparse @ prototypes
    return (
        (residual.square().sum(1) / states.square().sum(1)).mean(),
        (1 - cosines).min(dim=0).values.mean(),
        (1 - cosines).min(dim=1).values.mean(),
    )


def example(dtype=torch.float64):
    states = torch.randn(TOKENS, D_MODEL, dtype=dtype, requires_grad=True)
    prototypes = torch.randn(PROTOTYPES, D_MODEL, dtype=dtype, requires_grad=True)
    return states, prototypes


@pytest.mark.parametrize("chunk", [1, 32, 64, 2048])
def test_each_loss_and_its_gradients_equal_the_whole_matrix_reference(chunk):
    """Picking pairs without gradient must not change a single derivative."""
    states, prototypes = example()
    fast = bank_losses(states, prototypes, ACTIVE, chunk)
    terms = (fast.reconstruction, fast.prototype_to_token, fast.token_to_prototype)
    for term, reference in zip(terms, dense_losses(states, prototypes, ACTIVE), strict=True):
        torch.testing.assert_close(term, reference, rtol=1e-10, atol=0)
        got = torch.autograd.grad(term, (states, prototypes), retain_graph=True, allow_unused=True)
        want = torch.autograd.grad(reference, (states, prototypes), retain_graph=True)
        for one, other in zip(got, want, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-12)


def test_a_case_worked_by_hand():
    """z1 = (2, 0), z2 = (0, 1); p1 = (1, 0), p2 = (3, 4), k = 1.

    Cosines: z1 with p1 1, with p2 3/5; z2 with p1 0, with p2 4/5. So z1 takes p1 with activation
    1 and keeps |(1, 0)|^2 / 4 = 1/4; z2 takes p2 with 4/5 and keeps |(-2.4, -2.2)|^2 = 10.6.
    """
    states = torch.tensor([[2.0, 0.0], [0.0, 1.0]])
    prototypes = torch.tensor([[1.0, 0.0], [3.0, 4.0]])
    losses = bank_losses(states, prototypes, 1)
    assert losses.reconstruction.item() == pytest.approx((0.25 + 10.6) / 2, rel=1e-6)
    assert losses.prototype_to_token.item() == pytest.approx((0 + 0.2) / 2, abs=1e-6)
    assert losses.token_to_prototype.item() == pytest.approx((0 + 0.2) / 2, abs=1e-6)
    assert losses.indices.tolist() == [[0], [1]]


def test_losses_do_not_depend_on_the_order_of_tokens_or_prototypes():
    """They are means of minima over sets."""
    states, prototypes = example()
    weights = LossWeights(reconstruction=0.7, prototype_to_token=0.2, token_to_prototype=0.3)
    total = bank_losses(states, prototypes, ACTIVE).total(weights)
    shuffled = bank_losses(
        states[torch.randperm(TOKENS)], prototypes[torch.randperm(PROTOTYPES)], ACTIVE
    ).total(weights)
    torch.testing.assert_close(total, shuffled, rtol=1e-12, atol=0)


@pytest.mark.parametrize("term", ["reconstruction", "prototype_to_token", "token_to_prototype"])
@pytest.mark.parametrize("moved", ["states", "prototypes"])
def test_a_gradient_step_on_a_term_lowers_it(term, moved):
    """Each term pulls states and prototypes towards each other."""
    states, prototypes = example()
    before = getattr(bank_losses(states, prototypes, ACTIVE), term)
    leaf = {"states": states, "prototypes": prototypes}[moved]
    (gradient,) = torch.autograd.grad(before, leaf)
    with torch.no_grad():
        leaf -= 1e-3 * gradient / gradient.norm()
    assert getattr(bank_losses(states, prototypes, ACTIVE), term) < before


def test_half_precision_states_are_compared_in_float32():
    """Clustering distances near 0 would vanish in bfloat16."""
    states, prototypes = example(torch.float32)
    losses = bank_losses(states.bfloat16(), prototypes.bfloat16(), ACTIVE)
    assert losses.reconstruction.dtype == torch.float32


def test_autocast_does_not_coarsen_the_cosines():
    """Mixed precision is for the decoder; the bank keeps float32 within it."""
    states, prototypes = example(torch.float32)
    weights = LossWeights(reconstruction=1.0, prototype_to_token=1.0, token_to_prototype=1.0)
    plain = bank_losses(states, prototypes, ACTIVE).total(weights)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(bank_losses(states, prototypes, ACTIVE).total(weights), plain)


def test_the_residual_share_of_a_zero_state_is_finite():
    """A padding embedding can be exactly zero."""
    zero = torch.zeros(3, D_MODEL)
    assert residual_share(zero, zero).tolist() == [0.0, 0.0, 0.0]
