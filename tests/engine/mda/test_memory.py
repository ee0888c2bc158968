"""A full memory halves the batch; any other failure is not swallowed."""

import pytest
import torch

from engine.errors import ConfigError
from engine.mda.memory import BatchSize, is_out_of_memory


def filling(limit: int, error: Exception):
    """An action for which more than `limit` samples are too many."""

    def act(size: int) -> int:
        if size > limit:
            raise error
        return size

    return act


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB."),
        MemoryError(),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: 8 bytes"),
    ],
)
def test_the_batch_halves_until_it_fits_and_stays_so(
    error: Exception, caplog: pytest.LogCaptureFixture
):
    """And every halving is said."""
    assert is_out_of_memory(error)
    size = BatchSize(13)
    with caplog.at_level("WARNING"):
        assert size.run(filling(3, error)) == 3
    assert size.size == 3
    assert [r.getMessage() for r in caplog.records] == [
        "The memory is full with 13 samples at once; going on with 6.",
        "The memory is full with 6 samples at once; going on with 3.",
    ]
    assert size.run(filling(3, error)) == 3


def test_one_sample_that_is_too_much_is_said():
    """There is nothing left to halve."""
    with pytest.raises(ConfigError, match="even with one sample at once; lower the context"):
        BatchSize(5).run(filling(0, MemoryError()))


def test_other_errors_surface():
    """A defect is no full memory."""
    with pytest.raises(RuntimeError, match="shapes"):
        BatchSize(5).run(filling(0, RuntimeError("shapes do not match")))
