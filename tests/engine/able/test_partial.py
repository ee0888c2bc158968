"""A model stopped on its way goes on from there, with the bits of one that was never stopped."""

import numpy as np
import pytest

from engine.able.model import AttributionSettings, embed_model
from engine.able.partial import PartialWork
from engine.able.probes import probe_set
from tests.engine.able.tiny_causal import SHORT, tiny_loaded


PROBES = probe_set("short", SHORT)
SETTINGS = AttributionSettings(device="cpu", dtype="float32", batch_tokens=64)
NAMES = ("words", "paper_words", "slot", "log_probabilities")


def stopping(after, seen):
    """Progress that ends the call as Ctrl-C does, after so many batches."""

    def progress(items, *, label="", total=None):
        for place, item in enumerate(items):
            if place == after:
                raise KeyboardInterrupt
            seen.append(place)
            yield item

    return progress


def same(a, b):
    return all(np.array_equal(getattr(a, n), getattr(b, n), equal_nan=True) for n in NAMES)


@pytest.fixture
def loaded():
    return tiny_loaded("llama")


def test_a_stopped_model_goes_on_with_the_same_bits(tmp_path, loaded, monkeypatch):
    """Batches that were done are not computed again."""
    whole = embed_model(loaded, PROBES, SETTINGS)
    folder = tmp_path / "partial"
    with pytest.raises(KeyboardInterrupt):
        embed_model(
            loaded, PROBES, SETTINGS, progress=stopping(2, []), kept=PartialWork(folder, "mark")
        )
    assert folder.is_dir()
    import engine.able.model as module

    filled: list[int] = []
    fill = module._fill
    monkeypatch.setattr(module, "_fill", lambda *given: (filled.append(1), fill(*given)))
    kept = PartialWork(folder, "mark")
    resumed = embed_model(loaded, PROBES, SETTINGS, kept=kept)
    assert same(whole, resumed)
    seen: list[int] = []
    embed_model(loaded, PROBES, SETTINGS, progress=stopping(-1, seen))
    assert len(filled) == 2 * len(seen) - 2  # the resumed call lacks two, the last one none
    kept.drop()
    assert not folder.exists()


@pytest.mark.parametrize("change", ["mark", "probes", "file"])
def test_what_was_kept_of_something_else_is_not_used(tmp_path, loaded, change):
    """Other weights, other probes and a damaged file start anew."""
    folder = tmp_path / "partial"
    with pytest.raises(KeyboardInterrupt):
        embed_model(
            loaded, PROBES, SETTINGS, progress=stopping(2, []), kept=PartialWork(folder, "mark")
        )
    if change == "file":
        (folder / "words.npy").write_bytes(b"damaged")
        (folder / "stripped.npy").write_bytes(b"damaged")
    probes = probe_set("shorter", SHORT[:4]) if change == "probes" else PROBES
    mark = "other" if change == "mark" else "mark"
    seen: list[int] = []
    resumed = embed_model(
        loaded, probes, SETTINGS, progress=stopping(-1, seen), kept=PartialWork(folder, mark)
    )
    assert same(embed_model(loaded, probes, SETTINGS), resumed)


def test_arrays_are_kept_from_time_to_time_and_when_a_call_ends(tmp_path):
    """A model of hours loses seconds, and one of seconds writes nothing in between."""
    arrays = {"words": np.arange(5.0)}
    kept = PartialWork(tmp_path / "often", "mark", seconds=0.0)
    kept.begin(["plan"], arrays)
    kept.note(1, arrays)
    assert (tmp_path / "often").is_dir()
    seldom = PartialWork(tmp_path / "seldom", "mark", seconds=1e9)
    seldom.begin(["plan"], arrays)
    seldom.note(1, arrays)
    assert not (tmp_path / "seldom").exists()
    seldom.keep()
    found = {"words": np.zeros(5)}
    assert PartialWork(tmp_path / "seldom", "mark").begin(["plan"], found) == 1
    assert found["words"].tolist() == [0, 1, 2, 3, 4]
