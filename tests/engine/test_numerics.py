import torch

from engine.numerics import full_precision, unit_vectors


def test_unit_vectors_have_length_1_and_zero_stays_zero():
    """A zero state has cosine 0 with everything, not NaN."""
    found = unit_vectors(torch.tensor([[3.0, 4.0], [0.0, 0.0], [1e-8, 0.0]]))
    assert found.tolist()[0] == [0.6000000238418579, 0.800000011920929]
    assert found[1].tolist() == [0.0, 0.0]
    assert found[2].tolist() == [1.0, 0.0]


def test_only_half_formats_are_widened():
    """float64 references must stay float64."""
    for given, expected in (
        (torch.bfloat16, torch.float32),
        (torch.float16, torch.float32),
        (torch.float32, torch.float32),
        (torch.float64, torch.float64),
    ):
        assert full_precision(torch.ones(2, dtype=given)).dtype == expected
