"""Gaps and bit-equality, measured on models small enough for a test."""

from engine.pipeline import exactness
from engine.pipeline.measurements import latest_measurement


def test_a_small_llama_adds_up_at_every_position_and_token():
    """The bar is 1e-4 of the sum of absolute terms."""
    found = exactness.small_llama_gap()
    assert 0 < found["largest_gap"] < 1e-4


def test_without_runs_the_small_model_is_still_measured(house, monkeypatch):
    """What is not on this machine is left out; nothing else is."""
    path = house / "measurements.json"
    monkeypatch.setattr("engine.pipeline.measurements.MEASUREMENTS", path)
    monkeypatch.setattr(exactness, "small_llama_gap", lambda: {"largest_gap": 1e-7})
    exactness.measure_exactness()
    record = latest_measurement("decomposition-gap", path)
    assert [row["model"] for row in record["rounds"]] == ["small-llama"]
