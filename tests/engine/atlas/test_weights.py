"""Cosines of weights against all matrices written side by side."""

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from engine.atlas.weights import weight_cosines
from engine.errors import CacheMissing, CacheStale
from tests.assertions import assert_close


def save(folder, **tensors):
    folder.mkdir()
    save_file(
        {name: tensor.contiguous() for name, tensor in tensors.items()},
        folder / "model.safetensors",
    )
    return folder


@pytest.fixture
def folders(tmp_path):
    torch.manual_seed(0)
    a, b = torch.randn(3, 5), torch.randn(7, 2)
    return [
        save(tmp_path / "a", first=a, second=b, gain=torch.ones(11)),
        save(tmp_path / "b", first=a + 0.5 * torch.randn(3, 5), second=b, gain=torch.ones(11)),
        save(
            tmp_path / "c", first=torch.randn(3, 5), second=torch.randn(7, 3), gain=torch.ones(11)
        ),
        save(tmp_path / "d", other=a, gain=torch.ones(11)),
    ]


def test_matrices_of_equal_name_and_shape_are_compared(folders):
    """Of the first and third one matrix fits; gains, which are all alike, never count."""
    from safetensors.torch import load_file

    stored = [load_file(folder / "model.safetensors") for folder in folders]

    def by_hand(a, b, names):
        first, second = (
            np.concatenate([stored[k][name].double().numpy().ravel() for name in names])
            for k in (a, b)
        )
        return first @ second / np.linalg.norm(first) / np.linalg.norm(second)

    got = weight_cosines(folders)
    assert_close(got[0, 1], by_hand(0, 1, ("first", "second")), rtol=1e-9)
    assert_close(got[1, 2], by_hand(1, 2, ("first",)), rtol=1e-9)
    assert got[0, 3] == got[2, 3] == 0  # no name in common
    assert_close(np.diag(got), [1, 1, 1, 1], rtol=1e-12)
    assert_close(got, got.T, rtol=1e-12)


def test_missing_and_damaged_weights_are_sentences(folders, tmp_path):
    """Neither counts as a model that is like none."""
    (tmp_path / "empty").mkdir()
    with pytest.raises(CacheMissing, match="no safetensors"):
        weight_cosines([*folders, tmp_path / "empty"])
    (folders[0] / "model.safetensors").write_bytes(b"no weights")
    with pytest.raises(CacheStale, match="damaged"):
        weight_cosines(folders)
