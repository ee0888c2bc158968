import pytest
import torch
from torch import nn

from engine.prism.activation import prototype_activations, reconstruct
from engine.prism.logits import HeadRows, signature_logits, slice_logits, split_logits


TOKENS, D_MODEL, PROTOTYPES, ACTIVE, VOCAB = 13, 7, 23, 5, 31


def example(*, bias=False, factor=1.0, dtype=torch.float32):
    head = nn.Linear(D_MODEL, VOCAB, bias=bias).to(dtype)
    states = torch.randn(TOKENS, D_MODEL, dtype=dtype) * 5
    prototypes = torch.randn(PROTOTYPES, D_MODEL, dtype=dtype)
    bank = prototype_activations(states, prototypes, ACTIVE)
    targets = torch.randint(0, VOCAB, (TOKENS,))
    logits = (head(states) * factor).gather(1, targets[:, None])[:, 0].detach()
    return head, states, prototypes, bank, targets, logits


def test_a_case_worked_by_hand():
    """z = (3, 4), p0 = (6, 8), p1 = (0, 5), W's row (2, 1).

    Slices: 1 x (12 + 8) = 20 and 0.8 x 5 = 4; r = (3, 4) - (6, 12) = (-3, -8), W r = -14.
    Their sum is 10 = 2 x 3 + 4. The absolute summands add up to 38.
    """
    prototypes = torch.tensor([[6.0, 8.0], [0.0, 5.0]])
    states = torch.tensor([[3.0, 4.0]])
    rows = HeadRows(weight=torch.tensor([[2.0, 1.0]]), bias=torch.zeros(1))
    bank = prototype_activations(states, prototypes, 2)
    parts = split_logits(states, *bank, prototypes, rows, torch.tensor([10.0]))
    torch.testing.assert_close(parts.slices, torch.tensor([[20.0, 4.0]]))
    torch.testing.assert_close(parts.residual, torch.tensor([-14.0]))
    assert parts.gap.item() == pytest.approx(0, abs=1e-6)
    off = split_logits(states, *bank, prototypes, rows, torch.tensor([48.0]))
    assert off.gap.item() == pytest.approx(1.0)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("factor", [1.0, 0.25])
def test_slices_and_residual_add_up_to_the_emitted_logit(bias, factor):
    """To 1e-4 of the sum of absolute terms, in float32; a head's bias is a term of its own."""
    head, states, prototypes, bank, targets, logits = example(bias=bias, factor=factor)
    rows = HeadRows.of(head, targets, factor)
    parts = split_logits(states, *bank, prototypes, rows, logits)
    total = parts.slices.sum(1) + parts.residual + parts.bias
    torch.testing.assert_close(total, logits, rtol=1e-4, atol=1e-4)
    assert (parts.bias != 0).all() == bias
    residuals = states - reconstruct(*bank, prototypes)
    torch.testing.assert_close(
        parts.residual, (residuals * rows.weight).sum(1), rtol=1e-5, atol=1e-5
    )
    assert parts.gap.max() < 1e-6


def test_the_gap_sees_a_logit_that_is_wrong():
    """It compares two computations, not one with itself."""
    head, states, prototypes, bank, targets, logits = example()
    rows = HeadRows.of(head, targets)
    parts = split_logits(states, *bank, prototypes, rows, logits + 1)
    assert parts.gap.min() > 1e-3


def test_a_contrast_splits_the_difference_of_two_logits():
    """Why A and not B: rows subtract, and the bias with them."""
    head, states, prototypes, bank, targets, logits = example(bias=True)
    others = (targets + 1) % VOCAB
    other_logits = head(states).gather(1, others[:, None])[:, 0].detach()
    rows = HeadRows.of(head, targets).minus(HeadRows.of(head, others))
    parts = split_logits(states, *bank, prototypes, rows, logits - other_logits)
    assert parts.gap.max() < 1e-6


def test_a_slice_is_its_activation_times_its_signature():
    """Signatures are what a unit of activation adds to each token's logit."""
    head, _, prototypes, (activations, indices), targets, _ = example()
    found = slice_logits(activations, indices, prototypes, head.weight.detach()[targets])
    table = signature_logits(prototypes, head)
    assert table.shape == (PROTOTYPES, VOCAB)
    torch.testing.assert_close(found, activations * table[indices, targets[:, None]])


def test_half_precision_weights_are_split_in_float32():
    """The published tolerance is for float32 arithmetic on whatever the model holds."""
    head, states, prototypes, bank, targets, logits = example(dtype=torch.bfloat16)
    parts = split_logits(states, *bank, prototypes, HeadRows.of(head, targets), logits)
    assert parts.slices.dtype == parts.residual.dtype == torch.float32
