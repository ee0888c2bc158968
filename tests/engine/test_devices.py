import gc
import weakref

import pytest
import torch

from engine.devices import memory_given_back, resolve_device
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


class Knot:
    """Something that holds itself, as a model with hooks does."""

    def __init__(self):
        self.own = self


@memory_given_back()
def tied(fails: bool) -> weakref.ref:
    """A knot that nobody else holds."""
    knot = Knot()
    gc.collect()  # now it is old, and no quick collection would look at it
    if fails:
        raise ValueError(weakref.ref(knot))
    return weakref.ref(knot)


def test_what_a_block_leaves_behind_is_given_back():
    """Cycles among it; and nothing stays set aside."""
    assert tied(fails=False)() is None
    assert gc.get_freeze_count() == 0


def test_it_is_given_back_after_an_error_too():
    """Once the error is dealt with, older collections see everything again."""
    with pytest.raises(ValueError, match="weakref") as raised:
        tied(fails=True)
    assert gc.get_freeze_count() == 0
    left = raised.value.args[0]
    del raised
    gc.collect()
    assert left() is None
