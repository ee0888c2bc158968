import pytest
import torch

from engine.devices import resolve_device
from engine.errors import ConfigError


def test_without_cuda_auto_is_the_cpu_in_float32(monkeypatch):
    """Half precision is slower there; the reason says what happened."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    found = resolve_device("auto")
    assert found.device.type == "cpu"
    assert found.dtype == torch.float32
    assert "no CUDA device" in found.reason


@pytest.mark.parametrize("name", ["gpu", "cuda0", "", "mps"])
def test_an_unknown_device_lists_what_is_allowed(name):
    """One sentence."""
    with pytest.raises(ConfigError, match="use auto, cpu, cuda or cuda:N"):
        resolve_device(name)


@pytest.mark.parametrize("name", ["cuda", "cuda:1"])
def test_cuda_that_is_not_there_is_refused_rather_than_replaced(name, monkeypatch):
    """Someone who asks for a GPU wants to know that there is none."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ConfigError, match="no CUDA device is visible"):
        resolve_device(name)
