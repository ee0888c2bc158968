import pytest
import torch
from hypothesis import given, strategies as st
from torch.nn import functional

from engine.prism.activation import (
    column_maximum,
    nearest_prototypes,
    prototype_activations,
    reconstruct,
    scan_bank,
    scatter_sum,
)


TOKENS, D_MODEL, PROTOTYPES, ACTIVE = 71, 7, 23, 5


def units(rows):
    return functional.normalize(torch.randn(rows, D_MODEL, dtype=torch.float64), dim=1)


def test_a_case_worked_by_hand():
    """z = (3, 4): cosine 1 with p0 = (6, 8), 4/5 with p1 = (0, 5), 3/5 with p2 = (1, 0).

    k = 2 keeps p0 and p1; zhat = 1 (6, 8) + 0.8 (0, 5) = (6, 12), with the prototypes' own lengths.
    """
    prototypes = torch.tensor([[6.0, 8.0], [0.0, 5.0], [1.0, 0.0]])
    activations, indices = prototype_activations(torch.tensor([3.0, 4.0]), prototypes, 2)
    assert indices.tolist() == [0, 1]
    torch.testing.assert_close(activations, torch.tensor([1.0, 0.8]))
    rebuilt = reconstruct(activations, indices, prototypes)
    torch.testing.assert_close(rebuilt, torch.tensor([6.0, 12.0]))


@pytest.mark.parametrize("chunk", [1, 3, 32, 64, 70, 71, 72, 4096])
def test_the_chunked_scan_equals_a_brute_force_search(chunk):
    """No chunk border may lose a row's top k or a column's maximum."""
    states, prototypes = units(TOKENS), units(PROTOTYPES)
    scan = scan_bank(states, prototypes, ACTIVE, chunk)
    cosines = states @ prototypes.T
    order = cosines.argsort(dim=1, descending=True)[:, :ACTIVE]
    torch.testing.assert_close(scan.indices, order)
    torch.testing.assert_close(scan.cosines, cosines.gather(1, order))
    for prototype in range(PROTOTYPES):
        column = cosines[:, prototype].tolist()
        nearest = column.index(max(column))
        assert scan.nearest_token[prototype] == nearest
        assert scan.nearest_cosine[prototype].item() == pytest.approx(
            cosines[nearest, prototype].item(), rel=1e-12
        )
    values, indices = nearest_prototypes(states, prototypes, ACTIVE, chunk)
    torch.testing.assert_close(indices, scan.indices)
    torch.testing.assert_close(values, scan.cosines)


@pytest.mark.parametrize("rows", [1, 31, 32, 33, 64, 97])
def test_the_two_level_column_maximum_equals_the_plain_one(rows):
    """Blocks, their remainder and matrices smaller than a block all give one answer."""
    values = torch.randn(rows, PROTOTYPES)
    value, row = column_maximum(values)
    torch.testing.assert_close(value, values.max(dim=0).values)
    torch.testing.assert_close(row, values.max(dim=0).indices)


def test_activations_are_zero_where_fewer_than_k_cosines_are_positive():
    """ReLU after top-k: the rest of the k are listed with activation 0 and add nothing."""
    prototypes = torch.tensor([[1.0, 0.0], [-1.0, 0.1], [-1.0, -0.1]])
    activations, indices = prototype_activations(torch.tensor([[2.0, 0.0]]), prototypes, 3)
    assert activations.tolist() == [[1.0, 0.0, 0.0]]
    rebuilt = reconstruct(activations, indices, prototypes)
    torch.testing.assert_close(rebuilt, torch.tensor([[1.0, 0.0]]))


@given(
    tokens=st.integers(1, 9),
    d_model=st.integers(1, 6),
    prototypes=st.integers(1, 11),
    scale=st.sampled_from([1e-6, 1.0, 1e6]),
    seed=st.integers(0, 2**16),
)
def test_activations_lie_between_0_and_1_and_fall(tokens, d_model, prototypes, scale, seed):
    """They are cosines after ReLU, at any length of state or prototype, the zero state included."""
    generator = torch.Generator().manual_seed(seed)
    states = torch.randn(tokens, d_model, generator=generator) * scale
    states[0] = 0
    bank = torch.randn(prototypes, d_model, generator=generator) / scale
    k = min(3, prototypes)
    activations, indices = prototype_activations(states, bank, k)
    assert bool((activations >= 0).all())
    assert bool((activations <= 1 + 1e-5).all())
    assert bool((activations[:, 1:] <= activations[:, :-1]).all())
    assert bool((activations[0] == 0).all())
    assert all(len(set(row)) == k for row in indices.tolist())


def test_the_same_tokens_in_another_batch_shape_activate_the_same_prototypes():
    """Leading axes are only a layout."""
    states = torch.randn(2, 3, 5, D_MODEL)
    prototypes = torch.randn(PROTOTYPES, D_MODEL)
    together = prototype_activations(states, prototypes, ACTIVE)
    flat = prototype_activations(states.reshape(-1, D_MODEL), prototypes, ACTIVE)
    for one, other in zip(together, flat, strict=True):
        torch.testing.assert_close(one.reshape(-1, ACTIVE), other)


def test_permuting_the_bank_permutes_the_indices_and_nothing_else():
    """A prototype has no place, only a number."""
    states, prototypes = torch.randn(TOKENS, D_MODEL), torch.randn(PROTOTYPES, D_MODEL)
    order = torch.randperm(PROTOTYPES)
    activations, indices = prototype_activations(states, prototypes, ACTIVE)
    permuted, renumbered = prototype_activations(states, prototypes[order], ACTIVE)
    torch.testing.assert_close(permuted, activations)
    torch.testing.assert_close(order[renumbered], indices)


def test_gradients_of_activations_equal_those_of_the_whole_matrix():
    """The picked pairs carry the full derivative, also where a length is not 1."""
    states = torch.randn(TOKENS, D_MODEL, dtype=torch.float64, requires_grad=True)
    prototypes = torch.randn(PROTOTYPES, D_MODEL, dtype=torch.float64, requires_grad=True)
    weights = torch.randn(TOKENS, ACTIVE, dtype=torch.float64)
    activations, indices = prototype_activations(states, prototypes, ACTIVE, 16)
    cosines = functional.normalize(states, dim=1) @ functional.normalize(prototypes, dim=1).T
    dense = cosines.clamp_min(0).gather(1, indices)
    got = torch.autograd.grad((activations * weights).sum(), (states, prototypes))
    want = torch.autograd.grad((dense * weights).sum(), (states, prototypes))
    for one, other in zip(got, want, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-12)


def test_scatter_sum_equals_a_loop():
    """Repeated numbers within a row and across chunks add up."""
    indices = torch.randint(0, 3, (13, 2))
    weights, vectors = torch.randn(13, 2), torch.randn(13, D_MODEL)
    expected = torch.zeros(3, D_MODEL)
    for token in range(13):
        for rank in range(2):
            expected[indices[token, rank]] += weights[token, rank] * vectors[token]
    torch.testing.assert_close(scatter_sum(weights, indices, vectors, 3, chunk=4), expected)


def test_half_precision_states_give_float32_activations():
    """bfloat16 cannot tell 0.996 from 1."""
    activations, _ = prototype_activations(
        torch.randn(3, D_MODEL).bfloat16(), torch.randn(PROTOTYPES, D_MODEL), ACTIVE
    )
    assert activations.dtype == torch.float32
