"""Models of a hub, played by stand-ins: fetched, freed, refused; and what a model will take."""

import shutil
from types import SimpleNamespace

import pytest
import torch

from engine.able import hub
from engine.able.estimate import check_room, estimate, free_memory, local_sizes
from engine.able.hub import SCRATCH, fetched, hub_sizes
from engine.able.reach import PATIENCE, is_hub_id
from engine.errors import CacheMissing, ConfigError
from tests.engine.able.tiny_causal import save_tiny, tiny_model


@pytest.fixture
def folder(tmp_path):
    return save_tiny(tmp_path / "made")


def n_parameters(family="llama"):
    return sum(weight.numel() for weight in tiny_model(family).parameters())


def test_what_is_a_hub_id(folder):
    """A folder that is here, a package and a bare name are none."""
    assert is_hub_id("owner/model-1.5")
    assert not any(map(is_hub_id, (folder, "smollm2", "model", "/no/such/folder", "../up/there")))


def test_a_fetched_model_is_gone_when_it_was_read(folder, tmp_path, monkeypatch):
    """Disks hold few models of the catalogue's size."""
    asked = {}

    def snapshot(source, *, local_dir, allow_patterns, **_):
        asked.update(source=source, patterns=allow_patterns)
        return shutil.copytree(folder, local_dir, dirs_exist_ok=True)

    monkeypatch.setattr(hub, "snapshot_download", snapshot)
    with fetched("owner/model", tmp_path) as place:
        assert asked["source"] == "owner/model"
        assert not any(pattern.endswith((".py", ".bin")) for pattern in asked["patterns"])
        assert local_sizes(tmp_path / place).n_parameters == n_parameters()
    assert not list(tmp_path.glob(f"{SCRATCH}*"))
    with fetched("owner/model", tmp_path, code=True):
        assert "*.py" in asked["patterns"]


def test_a_model_that_is_here_is_read_in_place(folder, tmp_path):
    """And never removed."""
    with fetched(folder, tmp_path) as place:
        assert place == folder
    assert local_sizes(tmp_path / "made").n_parameters > 0


def test_a_kept_model_goes_to_the_hubs_cache(folder, tmp_path, monkeypatch):
    """`local_dir` None is that cache."""

    def snapshot(_source, *, local_dir, **_):
        assert local_dir is None
        return folder

    monkeypatch.setattr(hub, "snapshot_download", snapshot)
    with fetched("owner/model", tmp_path, keep=True) as place:
        assert place == folder


@pytest.mark.parametrize("name", ["GatedRepoError", "ConnectError"])
def test_a_repository_that_cannot_be_read_says_why(tmp_path, monkeypatch, name):
    """Whatever the client raises becomes one sentence."""
    error = type(name, (Exception,), {})("no access\nmore lines")

    def fail(*_args, **_settings):
        raise error

    monkeypatch.setattr(hub, "snapshot_download", fail)
    monkeypatch.setattr(hub, "HfApi", lambda: SimpleNamespace(model_info=fail))
    words = "owner/model is gated" if name == "GatedRepoError" else r"cannot be read \(no access\)"
    with pytest.raises(CacheMissing, match=words), fetched("owner/model", tmp_path):
        pass
    with pytest.raises(CacheMissing, match=words):
        hub_sizes("owner/model")
    assert not list(tmp_path.glob(f"{SCRATCH}*"))


def test_a_hub_model_is_sized_before_it_is_fetched(monkeypatch, tmp_path):
    """By its listed files; other weights than safetensors are not read."""
    listed = {"a.safetensors": 300, "b.safetensors": 500, "original/c.safetensors": 9, "d.bin": 7}
    files = [SimpleNamespace(rfilename=name, size=size) for name, size in listed.items()]
    info = SimpleNamespace(siblings=files, safetensors=SimpleNamespace(total=211))
    asked = []

    def model_info(*_arguments, **settings):
        asked.append(settings)
        return info

    monkeypatch.setattr(hub, "HfApi", lambda: SimpleNamespace(model_info=model_info))
    sizes = hub_sizes("owner/model")
    assert (sizes.weight_bytes, sizes.n_parameters, sizes.is_local) == (800, 211, False)
    assert asked[0]["timeout"] == PATIENCE  # without one a silent hub is waited for without end
    needed = estimate("owner/model", torch.bfloat16, 64)
    assert needed.disk == 800
    assert needed.memory > 211 * 2
    info.siblings = files[3:]
    with pytest.raises(CacheMissing, match="no safetensors"):
        hub_sizes("owner/model")


def test_a_folder_is_sized_by_its_headers(folder, tmp_path):
    """Weights in the format asked for, and activations of a batch."""
    small, large = (estimate(folder, torch.float32, tokens) for tokens in (1_000, 9_000))
    halved = estimate(folder, torch.bfloat16, 1_000)
    assert small.disk == 0
    assert small.weights == (tmp_path / "made" / "model.safetensors").stat().st_size
    assert large.memory - small.memory == 8_000 * 2 * 24 * 34 * 4 // 4
    assert small.memory - halved.memory == n_parameters() * 2 + 1_000 * 2 * 24 * 34 * 2 // 4


def test_what_does_not_fit_is_refused_before_it_is_fetched(folder, tmp_path):
    """The sentence says how much is missing."""
    cpu = torch.device("cpu")
    needed = estimate(folder, torch.float32, 1_000)
    check_room("mine", needed, cpu, tmp_path)
    assert free_memory(cpu) > 0
    with pytest.raises(ConfigError, match=r"mine needs about 0\.3 GB of memory and"):
        check_room("mine", needed, cpu, tmp_path, share=1e-9)
