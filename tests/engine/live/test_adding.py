"""Checks of a model before it joins a map: one sentence each, and nothing is written."""

import json
from pathlib import Path

import pytest

from engine.errors import ConfigError
from engine.live import adding
from engine.live.adding import prospect
from tests.engine.able.tiny_causal import save_tiny


@pytest.fixture(scope="module")
def map_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A made-up map; read it, never write it."""
    from engine.pipeline.synthetic_map import write_synthetic_models

    return write_synthetic_models(tmp_path_factory.mktemp("maps") / "maps")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small model of the right kind."""
    return Path(save_tiny(tmp_path_factory.mktemp("models") / "tiny"))


def files(path: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in sorted(path.rglob("*")) if p.is_file()}


def test_a_fit_model_passes_every_check_and_nothing_is_written(map_path: Path, tiny: Path):
    """It is really asked some questions, so gradients and offsets are seen, and time is known."""
    before = files(map_path)
    found = prospect(map_path, f"  {tiny} ")
    assert found.passed
    assert [check.name for check in found.checks] == [
        "Place", "Name", "Kind", "Tokenizer", "Memory and disk", "Gradients",
    ]  # fmt: skip
    assert {check.state for check in found.checks} == {"passed"}
    assert found.name == "tiny"
    assert found.seconds is not None
    assert found.seconds > 0
    assert (found.disk, found.n_probes) == (0, 7)
    assert found.memory is not None
    assert found.memory > 0
    assert files(map_path) == before


def test_a_large_model_is_not_tried(map_path: Path, tiny: Path, monkeypatch):
    """Its gradients are seen when it is loaded."""
    monkeypatch.setattr(adding, "TRIED_BYTES", 0)
    found = prospect(map_path, str(tiny))
    assert found.passed
    assert found.checks[-1].state == "later"
    assert found.seconds is None


def test_a_name_that_the_map_has_is_refused_unless_it_is_the_same_model(map_path: Path, tiny: Path):
    """Another model under it would take its rows' place."""
    found = prospect(map_path, str(tiny), "root-1")
    assert not found.passed
    assert "give this one another name" in found.checks[-1].said


@pytest.mark.parametrize(
    ("change", "check", "said"),
    [
        (None, "Place", "no folder here and no hub id"),
        ({}, "Kind", "no config.json"),
        ({"architectures": ["BertModel"]}, "Kind", "no causal language model"),
        ({"quantization_config": {"quant_method": "gptq"}}, "Kind", "compute no gradients"),
    ],
)
def test_an_unfit_folder_fails_one_check_and_ends(
    map_path: Path, tmp_path: Path, change: dict | None, check: str, said: str
):
    """The sentence says what is wrong."""
    folder = tmp_path / "model"
    if change is not None:
        folder.mkdir()
        if change:
            (folder / "config.json").write_text(json.dumps({"model_type": "llama", **change}))
    found = prospect(map_path, str(folder))
    assert not found.passed
    assert found.checks[-1].name == check
    assert found.checks[-1].state == "failed"
    assert said in found.checks[-1].said


def test_a_hub_that_cannot_be_reached_is_one_sentence(map_path: Path):
    """Without a network nothing is known of a hub id."""
    found = prospect(map_path, "nobody/nothing")
    assert [check.state for check in found.checks] == ["failed"]
    assert "nobody/nothing cannot be read" in found.checks[0].said


@pytest.mark.parametrize("place", ["", "   ", "a\0b"])
def test_no_place_is_refused(map_path: Path, place: str):
    """Before anything is looked at."""
    with pytest.raises(ConfigError, match="Name a folder or a hub id"):
        prospect(map_path, place)
