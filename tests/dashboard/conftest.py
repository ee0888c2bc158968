"""Runs that the tests of live pages share."""

import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from unittest.mock import patch

import pytest
import streamlit as st
from streamlit.components.v2 import manifest_scanner


@pytest.fixture(autouse=True)
def _nothing_cached() -> None:
    """Answers cached for another test's house must not be served."""
    st.cache_data.clear()
    st.cache_resource.clear()


@pytest.fixture(autouse=True, scope="session")
def _packages_are_scanned_once() -> Iterator[None]:
    """Every page that is opened would look through all installed packages for components."""
    once = cache(manifest_scanner.scan_component_manifests)
    with patch.object(manifest_scanner, "scan_component_manifests", once):
        yield


@pytest.fixture(scope="session")
def tiny_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of an indexed run with a random model and a concept; read it, never write it."""
    from tests.engine.tiny_models import save_run

    return save_run(tmp_path_factory.mktemp("tiny") / "tiny")


@pytest.fixture
def live_run(tiny_path: Path, house: Path) -> Path:
    """A copy of that run in the cache of `house`."""
    return Path(shutil.copytree(tiny_path, house / "cache" / "tiny"))


@pytest.fixture(scope="session")
def heads_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a run of attention heads with random decoders; read it, never write it."""
    from engine.mda.emergence import DecoderConfig, make_decoder
    from engine.pipeline.synthetic_heads import write_synthetic_heads

    path = write_synthetic_heads(tmp_path_factory.mktemp("heads") / "heads")
    for seed in (0, 1):
        config = DecoderConfig(n_layers=2, d_model=12, n_heads=3, seed=seed)
        make_decoder(config, 257, 128).save_pretrained(path / "model" / f"seed-{seed}")
    return path


@pytest.fixture
def heads_run(heads_path: Path, house: Path) -> Path:
    """A copy of that run in the cache of `house`."""
    return Path(shutil.copytree(heads_path, house / "cache" / "heads"))


@pytest.fixture(scope="session")
def models_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a made-up map of models with every table; read it, never write it."""
    from engine.pipeline.synthetic_map import write_synthetic_models

    return write_synthetic_models(tmp_path_factory.mktemp("models") / "maps")


@pytest.fixture
def models_run(models_path: Path, house: Path) -> Path:
    """A copy of that map in the cache of `house`."""
    return Path(shutil.copytree(models_path, house / "cache" / "maps"))
