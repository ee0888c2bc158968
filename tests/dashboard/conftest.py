"""Runs that the tests of live pages share."""

import shutil
from pathlib import Path

import pytest
import streamlit as st


@pytest.fixture(autouse=True)
def _nothing_cached() -> None:
    """Answers cached for another test's house must not be served."""
    st.cache_data.clear()
    st.cache_resource.clear()


@pytest.fixture(scope="session")
def tiny_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of an indexed run with a random model and a concept; read it, never write it."""
    from tests.engine.tiny_models import save_run

    return save_run(tmp_path_factory.mktemp("tiny") / "tiny")


@pytest.fixture
def live_run(tiny_path: Path, house: Path) -> Path:
    """A copy of that run in the cache of `house`."""
    return Path(shutil.copytree(tiny_path, house / "cache" / "tiny"))
