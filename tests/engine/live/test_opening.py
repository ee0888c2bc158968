"""What a name or a folder opens, and what is said of one that opens nothing."""

import json
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

from engine.errors import CacheStale, EngineError
from engine.live import LiveEngine
from tests.engine import tiny_models


@pytest.mark.parametrize("name", ["nothing-here", "../nothing", "a\x00b", ""])
def test_an_unknown_run_is_one_sentence(name: str):
    """No traceback for a name that does not exist."""
    with pytest.raises(EngineError):
        LiveEngine.open(name)


def test_a_folder_that_is_neither_run_nor_model_is_one_sentence(tmp_path: Path):
    """The sentence names both files that it could have had."""
    with pytest.raises(EngineError, match="neither a run"):
        LiveEngine.open(str(tmp_path))
    (tmp_path / "config.json").write_text("{broken")
    with pytest.raises(EngineError, match="cannot be read"):
        LiveEngine.open(str(tmp_path))
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    with pytest.raises(EngineError, match=r"No model can be read .*model\.safetensors"):
        LiveEngine.open(str(tmp_path))
    (tmp_path / "config.json").write_text('{"model_type": "unheard-of"}')
    with pytest.raises(EngineError, match="no causal language model"):
        LiveEngine.open(str(tmp_path))


def test_a_folder_with_the_name_of_a_run_does_not_hide_it(
    house: Path, monkeypatch: pytest.MonkeyPatch
):
    """`--run tiny` means the run wherever it is typed; other folders are found by name."""
    tiny_models.save_run(house / "cache" / "tiny")
    work = house / "work"
    (work / "tiny").mkdir(parents=True)
    tiny_models.save_dense(work / "a model")
    monkeypatch.chdir(work)
    assert LiveEngine.open("tiny").kind == "prism"
    assert LiveEngine.open("a model").kind == "dense"
    with pytest.raises(EngineError, match="neither a run"):
        LiveEngine.open("./tiny")


@pytest.mark.parametrize("change", [{"hidden_size": 36}, {"hidden_size": "wide"}])
def test_a_configuration_that_does_not_fit_dense_weights_is_one_sentence(
    tmp_path: Path, change: dict[str, object]
):
    """Whatever transformers raises at it."""
    folder = tiny_models.save_dense(tmp_path)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | change))
    with pytest.raises(EngineError) as caught:
        LiveEngine.open(str(folder))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("damage", ["not finite", "left out"])
def test_dense_weights_that_would_give_wrong_numbers_are_refused(tmp_path: Path, damage: str):
    """NaN spreads to every number, and a weight that is not there would be drawn at random."""
    file = tiny_models.save_dense(tmp_path) / "model.safetensors"
    weights = load_file(file)
    if damage == "left out":
        del weights["model.norm.weight"]
    else:
        weights["model.norm.weight"][1] = float("nan")
    save_file(weights, file, metadata={"format": "pt"})
    with pytest.raises(CacheStale, match=r"lack model\.norm|1 values .* in model\.norm"):
        LiveEngine.open(str(tmp_path))


def test_weights_in_a_pickle_are_not_opened(tmp_path: Path):
    """Only safetensors are read; a pickle beside the configuration counts as nothing."""
    folder = tiny_models.save_dense(tmp_path)
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(EngineError, match="safetensors"):
        LiveEngine.open(str(folder))


def test_damaged_weights_are_one_sentence(tmp_path: Path):
    """A truncated file is never half-read."""
    folder = tiny_models.save_dense(tmp_path)
    whole = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(EngineError):
        LiveEngine.open(str(folder))
