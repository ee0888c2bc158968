"""Seeds, folders of their own and small runs for every test. The engine is imported in fixtures."""

import os


os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch and OpenMP start
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["HF_DATASETS_OFFLINE"] = "1"
os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"

import random
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings


settings.register_profile("dev", max_examples=20, deadline=None)
settings.register_profile("ci", max_examples=100, deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "dev")

SYNTHETIC_PROTOTYPES = 67
"""Prototypes of the synthetic run; a prime no other size of it equals."""


@pytest.fixture(autouse=True)
def _seeded() -> None:
    """Every test starts from the same random state, with one torch thread if torch is loaded."""
    random.seed(0)
    np.random.seed(0)
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(0)
        torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _own_folders(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads or writes the cache or the assets of the checkout unless it asks for them."""
    empty = tmp_path_factory.getbasetemp() / "empty-house"
    for name in ("cache", "assets"):
        (empty / name).mkdir(parents=True, exist_ok=True)
    monkeypatch.setenv("HEADWATER_CACHE", str(empty / "cache"))
    monkeypatch.setenv("HEADWATER_ASSETS", str(empty / "assets"))


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty house of the test's own: `cache` and `assets` in it, named by the environment."""
    for name in ("cache", "assets"):
        (tmp_path / name).mkdir()
        monkeypatch.setenv(f"HEADWATER_{name.upper()}", str(tmp_path / name))
    return tmp_path


@pytest.fixture(scope="session")
def synthetic_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a run with every table and no model; read it, never write it."""
    from engine.pipeline.synthetic import write_synthetic_run

    path = tmp_path_factory.mktemp("synthetic") / "synthetic"
    return write_synthetic_run(
        path, n_prototypes=SYNTHETIC_PROTOTYPES, n_tokens=3_001, n_active=5, shard_tokens=1_009
    )


@pytest.fixture
def synthetic_run(synthetic_path: Path, house: Path) -> Path:
    """A copy of the synthetic run in the cache of `house`, free to be damaged."""
    return Path(shutil.copytree(synthetic_path, house / "cache" / "synthetic"))
