import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from engine.errors import ConfigError
from engine.prism.activation import prototype_activations
from engine.prism.attribution.gradient import (
    VARIANTS,
    BankGradient,
    Variant,
    query_gradients,
    slopes,
    summed_gradient,
    token_gradients,
)
from engine.prism.attribution.statistics import TokenStatistics, output_errors


TOKENS, D_MODEL, PROTOTYPES, ACTIVE, VOCAB = 13, 7, 23, 5, 31


def example(*, bias=False, factor=1.0):
    """States, a bank, a head and targets in float64, and their statistics."""
    head = nn.Linear(D_MODEL, VOCAB, bias=bias).double()
    states = torch.randn(TOKENS, D_MODEL, dtype=torch.float64) * 3
    bank = torch.randn(PROTOTYPES, D_MODEL, dtype=torch.float64) * 2
    targets = torch.randint(0, VOCAB, (TOKENS,))
    activations, indices = prototype_activations(states, bank, ACTIVE)
    errors, loss = output_errors(states, targets, head, factor)
    found = TokenStatistics(
        row=torch.arange(TOKENS) % 3,
        position=torch.arange(TOKENS) // 3,
        activations=activations,
        indices=indices,
        errors=errors,
        unit_states=functional.normalize(states, dim=1),
        square_norm=states.square().sum(1),
        loss=loss,
    )
    return found, states, bank, head, targets


def autograd(found, states, bank, head, targets, factor, *, path):
    """dL_t/dp_i of every token by autograd, residual and top-k set held constant: [t, k, d]."""
    every = []
    for t in range(TOKENS):
        p = bank.clone().requires_grad_()
        chosen = p[found.indices[t]]
        fixed = found.activations[t]
        moving = functional.cosine_similarity(states[t][None], chosen, dim=1).relu()
        residual = states[t] - fixed @ bank[found.indices[t]]
        rebuilt = (moving if path else fixed) @ chosen
        logits = head(residual + rebuilt)[None] * factor
        loss = functional.cross_entropy(logits, targets[t][None])
        every.append(torch.autograd.grad(loss, p)[0][found.indices[t]])
    return torch.stack(every)


@pytest.mark.parametrize(("bias", "factor"), [(False, 1.0), (True, 0.25)])
def test_the_gradient_with_activations_constant_is_activation_times_error(bias, factor):
    """The rank-one form against autograd in float64, to 4e-10."""
    found, *rest = example(bias=bias, factor=factor)
    expected = autograd(found, *rest, factor, path=False)
    assert (token_gradients(found, rest[1], "errors") - expected).abs().max() < 4e-10


@pytest.mark.parametrize(("bias", "factor"), [(False, 1.0), (True, 0.25)])
def test_the_path_through_the_activations_is_that_of_autograd_through_the_cosine(bias, factor):
    """Residual and top-k set held constant; some cosines of the example are negative."""
    found, *rest = example(bias=bias, factor=factor)
    found = TokenStatistics(**{**vars(found), "activations": found.activations.clone()})
    expected = autograd(found, *rest, factor, path=True)
    assert (token_gradients(found, rest[1], "path") - expected).abs().max() < 4e-10
    assert (
        token_gradients(found, rest[1], "path") - token_gradients(found, rest[1], "errors")
    ).abs().max() > 0.01


def test_a_prototype_of_no_activation_has_no_gradient():
    """ReLU is flat where a cosine is negative: neither the activation nor the path counts."""
    found, states, *_ = example()
    bank = -states[:1].repeat(PROTOTYPES, 1) + 0.01 * torch.randn(PROTOTYPES, D_MODEL).double()
    activations, indices = prototype_activations(states[:1], bank, ACTIVE)
    assert (activations == 0).all()
    alone = TokenStatistics(**{name: value[:1] for name, value in vars(found).items()})
    alone = TokenStatistics(**{**vars(alone), "activations": activations, "indices": indices})
    assert (token_gradients(alone, bank, "path") == 0).all()
    assert (slopes(alone, bank) == 0).all()


def test_errors_are_the_gradient_of_the_loss_in_the_state():
    """e = dL/dz, the decoder's factor in it."""
    found, states, _, head, targets = example(bias=True, factor=0.3)
    z = states.clone().requires_grad_()
    loss = functional.cross_entropy(head(z) * 0.3, targets, reduction="none")
    torch.testing.assert_close(
        found.errors, torch.autograd.grad(loss.sum(), z)[0], atol=1e-12, rtol=0
    )
    torch.testing.assert_close(found.loss, loss.detach())


@pytest.mark.parametrize("statistic", ["activations", "errors", "path"])
def test_a_summed_gradient_adds_the_tokens_up(statistic):
    """Sparse rows in chunks against a dense sum, token by token."""
    found, _, bank, _, _ = example()
    each = token_gradients(found, bank, statistic)
    expected = torch.zeros(PROTOTYPES, each.shape[-1], dtype=torch.float64)
    for t in range(TOKENS):
        for j in range(ACTIVE):
            expected[found.indices[t, j]] += each[t, j]
    got = summed_gradient(found, bank, statistic, chunk=5)
    torch.testing.assert_close(got.dense(PROTOTYPES), expected)
    assert (np.diff(got.prototypes.numpy()) > 0).all()


def test_each_query_gets_its_own_gradient():
    """The rows of the statistics are told apart."""
    found, _, bank, _, _ = example()
    ordered = found.ordered()
    gradients = query_gradients(ordered, bank, "path", 3)
    for query, gradient in enumerate(gradients):
        own = found.row == query
        alone = TokenStatistics(**{name: value[own] for name, value in vars(found).items()})
        expected = summed_gradient(alone, bank, "path").dense(PROTOTYPES)
        torch.testing.assert_close(gradient.dense(PROTOTYPES), expected)
    with pytest.raises(ConfigError, match="no predicted token"):
        query_gradients(ordered, bank, "path", 4)


def test_every_variant_is_found_by_its_name():
    """18 of them: three statistics, three conditionings, with and without the norm."""
    assert len(set(VARIANTS)) == 18
    assert [Variant.parse(name).name for name in VARIANTS] == list(VARIANTS)
    assert Variant.parse("path+diagonal+unit") == Variant("path", "diagonal", True)


@pytest.mark.parametrize("name", ["", "paths", "path+", "path+unit+diagonal", "path+none", "unit"])
def test_an_unknown_variant_is_refused_in_a_sentence(name):
    """The sentence says how names are made."""
    with pytest.raises(ConfigError, match=r"no attribution variant .*path\+diagonal\+unit"):
        Variant.parse(name)


def test_a_gradient_spreads_out_to_the_whole_bank():
    """Rows that are not listed are zero."""
    gradient = BankGradient("errors", torch.tensor([1, 4]), torch.ones(2, 3))
    assert gradient.dense(7).sum(1).tolist() == [0, 3, 0, 0, 3, 0, 0]
