"""The claim on the speed of attribution, from planted records."""

from pathlib import Path

import pytest

from engine.claims import NOT_MEASURED
from engine.pipeline.claims import compute_claims
from engine.pipeline.claims_models_speed import ATTRIBUTION, DEFINITIONS
from engine.pipeline.measurements import record_measurement


SETTING = {"probes": 7, "mean_tokens": 61.5, "device": "cpu", "threads": 1}


def computed(house: Path, factors: dict[str, tuple[float, ...]]):
    """The claim where captum takes so many times as long."""
    rounds = [
        {"shape": shape, "own_seconds": 0.5, "captum_seconds": 0.5 * factor}
        for shape, own in factors.items()
        for factor in own
    ]
    record_measurement(ATTRIBUTION, SETTING, rounds, house / "docs" / "measurements.json")
    return compute_claims(list(DEFINITIONS), house)[0]


@pytest.fixture(autouse=True)
def _docs(tmp_path):
    (tmp_path / "docs").mkdir()


def test_the_shape_that_gains_least_counts(tmp_path):
    """Geometric means: 8 and 2 make 4."""
    found = computed(tmp_path, {"gpt2 8x1": (9.0, 9.0), "llama 32x2": (8.0, 2.0)})
    assert found.value == pytest.approx(4.0)
    assert found.holds is False
    assert found.control == pytest.approx({"gpt2 8x1": 9.0, "llama 32x2": 4.0})
    assert found.interval[0] < 4.0 < found.interval[1]


def test_the_bar_is_met_at_every_shape_or_not(tmp_path):
    """Five and more."""
    assert computed(tmp_path, {"gpt2": (5.5, 5.4), "opt": (6.0, 6.5)}).holds is True


def test_a_single_round_is_no_measurement(tmp_path):
    """Without a second one there is no interval."""
    assert computed(tmp_path, {"gpt2": (7.0,)}).holds == NOT_MEASURED
