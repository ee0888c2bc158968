import torch

from engine.prism.activation import prototype_activations, reconstruct
from engine.prism.suppression import suppress_states


D_MODEL, PROTOTYPES, ACTIVE = 7, 23, 5


def example():
    states = torch.randn(2, 3, D_MODEL)
    prototypes = torch.randn(PROTOTYPES, D_MODEL)
    activations, indices = prototype_activations(states, prototypes, ACTIVE)
    return states, activations, indices, prototypes


def mask(*numbers):
    found = torch.zeros(PROTOTYPES, dtype=torch.bool)
    found[list(numbers)] = True
    return found


def test_strength_zero_returns_the_very_same_states():
    """Off must be bit-identical to baseline."""
    states, activations, indices, prototypes = example()
    everything = torch.ones(PROTOTYPES, dtype=torch.bool)
    assert suppress_states(states, activations, indices, prototypes, everything, 0.0) is states


def test_an_empty_set_or_one_that_is_active_nowhere_returns_the_very_same_states():
    """Nothing was removed, so nothing may round."""
    states, activations, indices, prototypes = example()
    assert suppress_states(states, activations, indices, prototypes, mask(), 1.0) is states
    idle = sorted(set(range(PROTOTYPES)) - set(indices[..., :1].flatten().tolist()))
    first, numbers = activations[..., :1], indices[..., :1]
    assert suppress_states(states, first, numbers, prototypes, mask(*idle), 1.0) is states


def test_tokens_without_a_suppressed_prototype_keep_their_bits():
    """A set that fires on one token must not perturb its neighbours."""
    states, activations, indices, prototypes = example()
    target = int(indices[0, 0, 0])
    found = suppress_states(states, activations, indices, prototypes, mask(target), 1.0)
    touched = ((indices == target) & (activations > 0)).any(-1)
    assert torch.equal(found[~touched], states[~touched])
    assert not torch.equal(found[touched], states[touched])


def test_suppressing_every_active_prototype_leaves_the_residual():
    """What remains is W r."""
    states, activations, indices, prototypes = example()
    everything = torch.ones(PROTOTYPES, dtype=torch.bool)
    found = suppress_states(states, activations, indices, prototypes, everything, 1.0)
    torch.testing.assert_close(found, states - reconstruct(activations, indices, prototypes))


def test_one_prototype_takes_away_its_own_slice_in_proportion_to_strength():
    """z' = z - s a_i p_i."""
    states, activations, indices, prototypes = example()
    target = int(indices[1, 2, 1])
    found = suppress_states(states, activations, indices, prototypes, mask(target), 0.25)
    expected = states[1, 2] - 0.25 * activations[1, 2, 1] * prototypes[target]
    torch.testing.assert_close(found[1, 2], expected)


def test_the_inputs_are_left_alone():
    """Suppression is pure; sessions share the model."""
    states, activations, indices, prototypes = example()
    before = [t.clone() for t in (states, activations, indices, prototypes)]
    suppress_states(states, activations, indices, prototypes, mask(*range(PROTOTYPES)), 1.0)
    after = (states, activations, indices, prototypes)
    assert all(torch.equal(one, other) for one, other in zip(before, after, strict=True))


def test_half_precision_states_keep_their_format():
    """The LM head reads what the decoder writes."""
    states, activations, indices, prototypes = example()
    everything = torch.ones(PROTOTYPES, dtype=torch.bool)
    found = suppress_states(states.bfloat16(), activations, indices, prototypes, everything, 1.0)
    assert found.dtype == torch.bfloat16
